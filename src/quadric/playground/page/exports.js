/** Downloads, the Python lines and the link. */
import { writeCsv } from "./csv.js";
import { byId, dialogById, inputById, onClick, setText } from "./dom.js";
import { messageOf } from "./expect.js";
import { writeModel } from "./model_writer.js";
import { pythonLines } from "./python_lines.js";

/** @param {BlobPart} content @param {string} name */
function download(content, name) {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(new Blob([content]));
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** False where the browser forbids it, for example on plain http. @param {string} text */
const copy = (text) =>
	Promise.resolve(navigator.clipboard?.writeText(text)).then(
		() => Boolean(navigator.clipboard),
		() => false,
	);

/** @param {App} app */
export function connectExports(app) {
	/** By the id of the button. @type {Record<string, [string, () => string | Promise<BlobPart>]>} */
	const files = {
		"export-png": ["quadric.png", () => app.stage.main.picture.toBlob()],
		"export-model": ["model.quadric", () => modelBytes(app, "net")],
		"export-start": ["initial.quadric", () => modelBytes(app, "initial")],
		"export-data": ["data.csv", () => writeCsv(app.data, app.stage.main.run.problem?.test)],
	};
	/** @type {Say} */
	const note = (text) => setText(byId("export-note"), text);
	for (const [id, [name, content]] of Object.entries(files)) {
		onClick(id, async () => {
			try {
				download(await content(), name);
			} catch (error) {
				note(messageOf(error));
			}
		});
	}
	const python = () => pythonLines(app.settings, app.stage.main.run.state?.epoch);
	onClick("export-button", () => {
		setText(byId("python-lines"), python());
		note(app.settings.compare ? "Side by side: the quadratic network is exported." : "");
		dialogById("export-dialog").showModal();
	});
	onClick("copy-python", async () => {
		const copied = await copy(python());
		note(copied ? "Copied." : "Copying is not allowed here; select the text instead.");
	});
	onClick("link-button", async () => {
		const { url, note } = app.makeLink();
		if ((await copy(url)) && !note) {
			app.announce("Link copied");
			setText(byId("link-button"), "Copied");
			setTimeout(() => setText(byId("link-button"), "Copy link"), 1500);
			return;
		}
		inputById("link-text").value = url;
		setText(byId("link-note"), note);
		dialogById("link-dialog").showModal();
		inputById("link-text").select();
	});
}

/** @param {App} app @param {"net" | "initial"} which */
function modelBytes({ stage, settings, data }, which) {
	const { run } = stage.main;
	const net = run[which];
	if (net === null) throw new Error("There is no network to export.");
	const scaler = settings.standardize ? run.scaler : null;
	const { names: classes, features } = data;
	return writeModel({ net, scaler, classes, features });
}
