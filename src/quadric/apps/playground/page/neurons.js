/** The network: inputs, neurons and the lines between them, and the settings of each layer. */
import { byId, make, onClick, sharpContext, showPixels, stroke } from "./dom.js";
import { strengths } from "./net.js";
import { signColor } from "./palette.js";
import { KINDS, LIMITS } from "./settings.js";

export class NetworkPanel {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		/** @type {HTMLElement[][]} the inputs, then the thumbnails of each layer */
		this.columns = [];
		this.lines = make("canvas", { role: "img", "aria-label": "Connections" });
		this.shape = "";
		new ResizeObserver(() => this.drawLines()).observe(byId("diagram"));
		onClick("add-layer", () => {
			app.change({ layers: [...app.settings.layers, { kind: "quadratic", outputs: 4 }] });
		});
	}

	get thumbs() {
		return this.columns.slice(1).flat();
	}

	/**
	 * Builds the network anew if it has another shape.
	 * @param {Settings} settings @param {string[]} inputNames @param {string[]} outputNames
	 */
	show({ layers, lastKind, compare }, inputNames, outputNames) {
		const shape = JSON.stringify([layers, lastKind, inputNames, outputNames, compare]);
		if (shape === this.shape) return this.drawLines();
		this.shape = shape;
		const focused = document.activeElement?.id;
		const toNames = (/** @type {string[]} */ names) =>
			names.map((name) => make("span", { class: "name", title: name }, name));
		this.columns = [toNames(inputNames)];
		const rows = layers.map((layer, l) => {
			const title = `Hidden layer ${l + 1}`;
			const { outputs } = layer;
			const numbered = Array.from(Array(outputs), (_, k) => `neuron ${k + 1}`);
			this.addColumn(title, numbered);
			/** @param {string} id @param {string} sign @param {Settings["layers"]} changed */
			const button = (id, sign, changed) => {
				const label = `${title}: ${id === "remove" ? id : `${id} neurons`}`;
				const made = makeButton(`${id}-${l}`, label, sign);
				made.onclick = () => this.app.change({ layers: changed });
				made.disabled = changed[l]?.outputs < 1 || changed[l]?.outputs > LIMITS.neurons;
				return made;
			};
			const resized = (by = 0) => layers.with(l, { ...layer, outputs: outputs + by });
			const row = makeRow(l, title, layer.kind, (kind) => {
				this.app.change({ layers: layers.with(l, { ...layer, kind }) });
			});
			row.append(button("fewer", "−", resized(-1)), String(outputs));
			row.append(button("more", "+", resized(1)), button("remove", "×", layers.toSpliced(l, 1)));
			return row;
		});
		this.addColumn("Output", outputNames);
		const l = layers.length;
		rows.push(makeRow(l, "Output", lastKind, (lastKind) => this.app.change({ lastKind })));
		byId("layers").replaceChildren(...rows);
		const columns = [...this.columns, toNames(outputNames)].map((column) => {
			const element = make("div", {}, ...column);
			element.style.setProperty("--count", String(column.length));
			return element;
		});
		byId("diagram").style.setProperty("--layers", String(rows.length));
		byId("diagram").replaceChildren(this.lines, ...columns);
		// Side by side, each network has its own kind.
		for (const select of byId("layers").querySelectorAll("select")) select.disabled = compare;
		byId("add-layer").hidden = layers.length >= LIMITS.hiddenLayers;
		if (focused) byId(focused)?.focus();
		this.drawLines();
	}

	/** @param {string} title @param {string[]} names of the neurons */
	addColumn(title, names) {
		const l = this.columns.length - 1;
		this.columns[l + 1] = names.map((name, k) => {
			const label = `${title}, ${name}: show its weights`;
			const button = makeButton(`thumb-${l}-${k}`, label, make("canvas"));
			button.className = "thumb";
			button.onclick = () => this.app.select(button.ariaPressed === "true" ? null : [l, k]);
			return button;
		});
	}

	/** @param {Selected | null} selected */
	mark(selected) {
		for (const button of this.thumbs) {
			button.ariaPressed = String(button.id === `thumb-${selected?.join("-")}`);
		}
		this.drawLines();
	}

	/** @param {NonNullable<Painting["thumbs"]>} thumbs */
	draw({ nx, ny, pixels }) {
		pixels.flat().forEach((image, i) => {
			const canvas = this.thumbs[i]?.querySelector("canvas");
			if (canvas) showPixels(canvas, image, nx, ny);
		});
		this.drawLines();
	}

	/** A line for each input of each neuron, wider if the connection is stronger. */
	drawLines() {
		const { layers } = this.app.stage.main.run.net;
		if (layers.length !== this.columns.length - 1) return; // of another shape
		const { selected } = this.app;
		const context = sharpContext(this.lines);
		layers.forEach((layer, l) => {
			const values = strengths(layer);
			const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-12);
			const order = [...values.keys()].sort((a, b) => Math.abs(values[a]) - Math.abs(values[b]));
			for (const place of order) {
				const k = Math.floor(place / layer.inputs);
				const from = this.columns[l][place % layer.inputs];
				const to = this.columns[l + 1][k];
				if (!from || !to) return;
				const share = Math.abs(values[place]) / largest;
				const faded = selected && (selected[0] !== l || selected[1] !== k);
				context.globalAlpha = (0.12 + 0.88 * share) * (faded ? 0.2 : 1);
				connect(context, from, to);
				stroke(context, signColor(values[place]), 0.5 + 4 * share);
			}
		});
	}
}

/** @param {Context} context @param {HTMLElement} from @param {HTMLElement} to */
function connect(context, from, to) {
	const [x0, x1] = [from.offsetLeft + from.offsetWidth, to.offsetLeft];
	const [y0, y1] = [from, to].map((one) => one.offsetTop + one.offsetHeight / 2);
	const middle = (x0 + x1) / 2;
	context.beginPath();
	context.moveTo(x0, y0);
	context.bezierCurveTo(middle, y0, middle, y1, x1, y1);
}

/**
 * @param {number} l @param {string} title @param {Kind} kind @param {(kind: Kind) => void} onKind
 */
function makeRow(l, title, kind, onKind) {
	const select = make("select", { id: `kind-${l}`, "aria-label": `${title}: kind of neurons` });
	for (const name of KINDS) select.append(make("option", {}, name));
	select.value = kind;
	select.onchange = () => onKind(/** @type {Kind} */ (select.value));
	return make("div", { class: "layer" }, make("h3", {}, title.replace(" layer", "")), select);
}

/** @param {string} id @param {string} label @param {string | Node} content */
function makeButton(id, label, content) {
	return make("button", { id, "aria-label": label, title: label }, content);
}
