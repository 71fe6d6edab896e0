/** Connects the page's buttons, keys and files to the app. */
import { App } from "./app.js";
import { byId, dialogById, inputById, make, onClick } from "./dom.js";
import { connectExports } from "./exports.js";
import { Imports } from "./imports.js";

export const app = new App();

/** Button, key, description and action. @type {[string, string, string, () => void][]} */
const actions = [
	["run", " ", "Run or pause", () => app.toggle()],
	["sample", "s", "Train on one sample", () => app.step("sample")],
	["epoch", "e", "Train for one epoch", () => app.step("epoch")],
	["rewind", "r", "Rewind to the same start", () => app.step("rewind")],
	["new-seed", "n", "Another start: new seed", () => app.newSeed()],
	["help-button", "?", "Help", () => dialogById("help-dialog").showModal()],
];
for (const [id, key, text, action] of actions.toReversed()) {
	const name = key.replace(" ", "Space");
	onClick(id, action);
	byId(id).title = `${text} (${name})`;
	byId(id).setAttribute("aria-keyshortcuts", name);
	byId("shortcuts").prepend(make("dt", {}, make("kbd", {}, name)), make("dd", {}, text));
}
document.addEventListener("keydown", (event) => {
	const target = /** @type {Element} */ (event.target);
	const typing = target.matches("select, textarea, [type=number], [type=text]");
	const pressing = event.key === " " && target.matches("button, input, a");
	const busy = typing || pressing || document.querySelector("dialog[open]");
	const action = actions.find(([, key]) => key === event.key.toLowerCase());
	if (!action || busy || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
	event.preventDefault();
	action[3]();
});
onClick("compare", () => app.change({ compare: inputById("compare").checked }));

connectExports(app);
new Imports(app);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.stage.fit());
window.addEventListener("hashchange", () => app.open());
app.open();
