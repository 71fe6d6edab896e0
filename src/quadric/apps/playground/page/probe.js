/** Reads the network at the cursor: probabilities, and the nearest point of the boundary. */
import { read } from "./boundaries.js";
import { make, sharpContext, stroke } from "./dom.js";
import { themeColor } from "./palette.js";
import { number } from "./view.js";

const SNAP = 14; // pixels within which the cursor snaps to a point

/** @type {Record<string, Point>} */
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Probe {
	/** @param {Picture} picture @param {Run} run @param {Say} announce */
	constructor(picture, run, announce) {
		this.picture = picture;
		this.run = run;
		this.row = -1; // of the point under the cursor
		const { frame } = picture;
		frame.addEventListener("pointermove", (event) => this.moveTo(picture.pixelOf(event), true));
		frame.addEventListener("pointerleave", () => picture.hideCursor());
		frame.addEventListener("blur", () => picture.hideCursor());
		frame.addEventListener("keydown", (event) => {
			if (event.key === "Escape") picture.hideCursor();
			if (!(event.key in MOVES)) return;
			event.preventDefault();
			const [dx, dy] = MOVES[event.key];
			const { width, height, cursor } = picture;
			const step = event.shiftKey ? 40 : 8;
			const from = cursor ? picture.toPixels(...cursor) : { x: width / 2, y: height / 2 };
			const x = Math.min(width, Math.max(0, from.x + dx * step));
			const y = Math.min(height, Math.max(0, from.y + dy * step));
			this.moveTo([x, y], false); // small steps must be able to leave a point
			announce(picture.probe.innerText);
		});
	}

	/** @param {Point} pixel @param {boolean} snap to a point */
	moveTo(pixel, snap) {
		const { picture } = this;
		const row = (this.row = picture.nearestRow(pixel, SNAP));
		const { X } = picture.data;
		picture.cursor = snap && row >= 0 ? [X[2 * row], X[2 * row + 1]] : picture.toUnits(...pixel);
		this.show();
	}

	/** Also called when the network has changed. */
	show() {
		const { cursor, painting, data, view } = this.picture;
		const { net, scaler } = this.run;
		if (!cursor) return;
		const reading = painting && read(net, scaler, cursor, view.equal);
		this.draw(cursor, reading?.nearest ?? null);
		this.write(cursor, reading, data);
	}

	/** @param {Point} at @param {Nearest | null} nearest */
	draw(at, nearest) {
		const { picture } = this;
		const context = sharpContext(picture.overlay);
		const { x, y } = picture.toPixels(...at);
		const color = (context.fillStyle = themeColor("--text"));
		context.beginPath();
		context.arc(x, y, this.row >= 0 ? 11 : 5, 0, 2 * Math.PI);
		stroke(context, color, 1.5);
		if (nearest === null) return;
		const there = picture.toPixels(...nearest.point);
		context.beginPath();
		context.moveTo(x, y);
		context.lineTo(there.x, there.y);
		stroke(context, color, 1.5, [3, 3]);
		context.beginPath();
		context.arc(there.x, there.y, 4, 0, 2 * Math.PI);
		context.fill();
	}

	/** @param {Point} at @param {Reading | null} reading @param {Data} data */
	write(at, reading, { names, features, classes, values }) {
		const { picture, row } = this;
		const { probe } = picture;
		const part = picture.testRows.has(row) ? "test" : "training";
		const truth = values
			? `with ${names[0]} = ${number(values[row], 4)}`
			: `of class ${names[classes[row]]}`;
		const { value = null, probabilities = [], predicted = 0, nearest = null } = reading ?? {};
		const texts = value === null ? probabilities.map(probability) : [number(value, 4)];
		const rows = texts.map((text, k) => {
			const tag = k === predicted || value !== null ? "th" : "td";
			return make("tr", {}, make(tag, {}, names[k]), make("td", {}, text));
		});
		const table = make("table", {}, ...rows);
		probe.replaceChildren(
			make("div", {}, features.map((name, j) => `${name} = ${number(at[j])}`).join(", ")),
			make("div", {}, row >= 0 ? `${part} point ${truth}` : ""),
			table,
			distanceText(nearest, picture.view.equal),
		);
		probe.hidden = false;
		const { x, y } = picture.toPixels(...at);
		const { offsetWidth: width, offsetHeight: height } = probe;
		const left = x + 18 + width < picture.width ? x + 18 : Math.max(4, x - 18 - width);
		const top = y + 18 + height < picture.height ? y + 18 : Math.max(4, y - 18 - height);
		probe.style.transform = `translate(${left}px, ${top}px)`;
	}
}

/** @param {number} p */
function probability(p) {
	if (p < 0.0005) return "<0.1%";
	return p > 0.9995 ? ">99.9%" : `${(100 * p).toFixed(1)}%`;
}

/** @param {Nearest | null} nearest @param {boolean} equal */
function distanceText(nearest, equal) {
	if (nearest === null) return "";
	const unit = equal ? "" : " standard deviations";
	return `distance to the ${nearest.kind}: ${number(nearest.distance, 4)}${unit}`;
}
