/** The network as rows of thumbnails, with the settings of each layer. */
import { byId, make, onClick, showPixels } from "./dom.js";
import { KINDS, LIMITS } from "./settings.js";

export class NetworkPanel {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		/** @type {HTMLButtonElement[]} */
		this.thumbs = [];
		this.shape = "";
		onClick("add-layer", () => {
			app.change({ layers: [...app.settings.layers, { kind: "quadratic", outputs: 4 }] });
		});
	}

	/**
	 * Builds the rows anew if the network has another shape.
	 * @param {Settings} settings @param {string[]} outputNames
	 */
	show({ layers, lastKind, compare }, outputNames) {
		const shape = JSON.stringify([layers, lastKind, outputNames, compare]);
		if (shape === this.shape) return;
		this.shape = shape;
		const focused = document.activeElement?.id;
		this.thumbs = [];
		const rows = layers.map((layer, l) => {
			const title = `Hidden layer ${l + 1}`;
			const { kind, outputs } = layer;
			const names = Array.from({ length: outputs }, (_, k) => `neuron ${k + 1}`);
			const change = (/** @type {Partial<typeof layer>} */ change) => {
				this.app.change({ layers: layers.with(l, { ...layer, ...change }) });
			};
			const fewer = makeButton(`fewer-${l}`, `${title}: fewer neurons`, "−");
			const more = makeButton(`more-${l}`, `${title}: more neurons`, "+");
			const remove = makeButton(`remove-${l}`, `${title}: remove`, "×");
			fewer.disabled = outputs <= 1;
			more.disabled = outputs >= LIMITS.neurons;
			fewer.onclick = () => change({ outputs: outputs - 1 });
			more.onclick = () => change({ outputs: outputs + 1 });
			remove.onclick = () => this.app.change({ layers: layers.toSpliced(l, 1) });
			const row = this.makeRow(l, title, kind, names, (kind) => change({ kind }));
			row.firstElementChild?.append(fewer, String(outputs), more, remove);
			return row;
		});
		const onKind = (/** @type {Kind} */ lastKind) => this.app.change({ lastKind });
		rows.push(this.makeRow(layers.length, "Output", lastKind, outputNames, onKind));
		byId("layers").replaceChildren(...rows);
		// Side by side, each network has its own kind.
		for (const select of byId("layers").querySelectorAll("select")) select.disabled = compare;
		byId("add-layer").hidden = layers.length >= LIMITS.hiddenLayers;
		if (focused) byId(focused)?.focus();
	}

	/**
	 * @param {number} l @param {string} title @param {Kind} kind @param {string[]} names
	 * @param {(kind: Kind) => void} onKind
	 */
	makeRow(l, title, kind, names, onKind) {
		const select = make("select", { id: `kind-${l}`, "aria-label": `${title}: kind of neurons` });
		for (const name of KINDS) select.append(make("option", {}, name));
		select.value = kind;
		select.onchange = () => onKind(/** @type {Kind} */ (select.value));
		const thumbs = names.map((name, k) => {
			const label = `${title}, ${name}: show its weights`;
			const button = makeButton(`thumb-${l}-${k}`, label, make("canvas"));
			button.className = "thumb";
			button.onclick = () => this.app.select(button.ariaPressed === "true" ? null : [l, k]);
			return button;
		});
		this.thumbs.push(...thumbs);
		const settings = make("div", { class: "layer-settings" }, make("h3", {}, title), select);
		return make("div", { class: "layer" }, settings, make("div", { class: "thumbs" }, ...thumbs));
	}

	/** @param {Selected | null} selected */
	mark(selected) {
		for (const button of this.thumbs) {
			button.ariaPressed = String(button.id === `thumb-${selected?.join("-")}`);
		}
	}

	/** @param {NonNullable<Painting["thumbs"]>} thumbs */
	draw({ nx, ny, pixels }) {
		pixels.flat().forEach((image, i) => {
			const canvas = this.thumbs[i]?.querySelector("canvas");
			if (canvas) showPixels(canvas, image, nx, ny);
		});
	}
}

/** @param {string} id @param {string} label @param {string | Node} content */
function makeButton(id, label, content) {
	return make("button", { id, "aria-label": label, title: label }, content);
}
