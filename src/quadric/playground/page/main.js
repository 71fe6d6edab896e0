/** Connects the page's buttons, keys and files to the app. */
import { App } from "./app.js";
import { writeCsv } from "./csv.js";
import { dialogById, inputById, onClick } from "./dom.js";
import { connectExports, connectLink } from "./exports.js";
import { Imports } from "./imports.js";
import { writeModel } from "./model_writer.js";
import { pythonLines } from "./python_lines.js";

const app = new App();

/** Button, key and action. @type {[string, string, () => void][]} */
const actions = [
	["run", " ", () => app.toggle()],
	["sample", "s", () => app.step("sample")],
	["epoch", "e", () => app.step("epoch")],
	["rewind", "r", () => app.step("rewind")],
	["new-seed", "n", () => app.newSeed()],
	["help-button", "?", () => dialogById("help-dialog").showModal()],
];
for (const [id, , action] of actions) onClick(id, action);
document.addEventListener("keydown", (event) => {
	const target = /** @type {Element} */ (event.target);
	const typing = target.matches("select, textarea, [type=number], [type=text]");
	const pressing = event.key === " " && target.matches("button, input, a");
	const busy = typing || pressing || document.querySelector("dialog[open]");
	const action = actions.find(([, key]) => key === event.key.toLowerCase());
	if (!action || busy || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
	event.preventDefault();
	action[2]();
});
onClick("compare", () => app.change({ compare: inputById("compare").checked }));

/** @param {"net" | "initial"} which */
function modelBytes(which) {
	const { run } = app.stage.main;
	const net = run[which];
	if (net === null) throw new Error("There is no network to export.");
	const scaler = app.settings.standardize ? run.scaler : null;
	const { names: classes, features } = app.data;
	return /** @type {BlobPart} */ (writeModel({ net, scaler, classes, features }));
}

/** @returns {Promise<Blob>} */
function png() {
	return new Promise((resolve) => {
		app.stage.main.picture.toCanvas().toBlob((blob) => blob && resolve(blob));
	});
}

connectExports(
	{
		"export-png": ["quadric.png", png],
		"export-model": ["model.quadric", () => modelBytes("net")],
		"export-start": ["initial.quadric", () => modelBytes("initial")],
		"export-data": [
			"data.csv",
			() => writeCsv(app.data, app.stage.main.run.problem?.test ?? new Int32Array(0)),
		],
	},
	() => {
		const epochs = app.stage.main.run.state?.epoch || undefined;
		const names = { modelFile: "initial.quadric", dataFile: "data.csv", epochs };
		return pythonLines(app.settings, names);
	},
	() => (app.settings.compare ? "Side by side: the quadratic network is exported." : ""),
);
connectLink(
	() => app.makeLink(),
	(text) => app.announce(text),
);
new Imports(
	(data, note) => app.useData(data, note),
	(model, name) => app.useModel(model, name),
);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.stage.fit());
window.addEventListener("hashchange", () => app.open());
app.open();
