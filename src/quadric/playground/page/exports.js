/** Downloads, the Python lines and the link. */
import { byId, dialogById, inputById, onClick, setText } from "./dom.js";

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

/**
 * @param {Record<string, [name: string, make: () => BlobPart | Promise<BlobPart>]>} files by the
 *   id of the button
 * @param {() => string} python @param {() => string} note
 */
export function connectExports(files, python, note) {
	onClick("export-button", () => {
		setText(byId("python-lines"), python());
		setText(byId("export-note"), note());
		dialogById("export-dialog").showModal();
	});
	for (const [id, [name, content]] of Object.entries(files)) {
		onClick(id, async () => download(await content(), name));
	}
	onClick("copy-python", async () => {
		const copied = await copy(python());
		const text = copied ? "Copied." : "Copying is not allowed here; select the text instead.";
		setText(byId("export-note"), text);
	});
}

/**
 * @param {() => {url: string, note: string}} makeLink
 * @param {Say} announce
 */
export function connectLink(makeLink, announce) {
	const button = byId("link-button");
	onClick("link-button", async () => {
		const { url, note } = makeLink();
		if ((await copy(url)) && !note) {
			announce("Link copied");
			button.textContent = "Copied";
			setTimeout(() => (button.textContent = "Copy link"), 1500);
			return;
		}
		inputById("link-text").value = url;
		setText(byId("link-note"), note);
		dialogById("link-dialog").showModal();
		inputById("link-text").select();
	});
}
