/**
 * The picture: decision regions, boundaries with their names, points, and what the cursor reads.
 *
 * Four canvases lie on top of each other, so that a frame of training redraws only what it must:
 * the regions are a small image that the browser scales up, and the points stay as they are.
 */
import { noPoints } from "./datasets.js";
import { make, sharpContext, showPixels, stroke } from "./dom.js";
import { nearestOf, placeLabels } from "./labels.js";
import { classColor, css, lineColor, marker, themeColor, valueColor } from "./palette.js";
import { number, ticks } from "./view.js";

const FONT = "px system-ui, 'Segoe UI', Roboto, sans-serif";
const MOST_AVOIDED = 300; // labels avoid at most this many points

export class Picture {
	/** @param {HTMLElement} place @param {string} name for screen readers */
	constructor(place, name) {
		this.regions = make("canvas");
		this.points = make("canvas");
		this.lines = make("canvas");
		this.overlay = make("canvas");
		this.probe = make("div", { class: "probe", hidden: "" });
		const hint = "Choose Draw points, then click or drag here.";
		this.empty = make("p", { class: "empty-text", hidden: "" }, hint);
		this.frame = make(
			"div",
			{ class: "frame", role: "application", tabindex: 0, "aria-label": name },
			...[this.regions, this.points, this.lines, this.overlay, this.empty, this.probe],
		);
		this.caption = make("figcaption");
		this.figure = make("figure", { class: "picture" }, this.caption, this.frame);
		place.append(this.figure);
		/** @type {View} */
		this.view = { x0: -1, x1: 1, y0: -1, y1: 1, equal: true };
		this.data = noPoints();
		/** @type {Point | null} */
		this.range = null;
		/** @type {Set<number>} */
		this.testRows = new Set();
		/** @type {Painting | null} */
		this.painting = null;
		/** @type {Map<string, Place>} */
		this.labelPlaces = new Map();
		/** @type {Place[]} */
		this.avoid = [];
		/** @type {Point | null} where the cursor is, in the user's units */
		this.cursor = null;
	}

	get width() {
		return this.frame.clientWidth;
	}

	get height() {
		return this.frame.clientHeight;
	}

	/** From the user's units. @param {number} x @param {number} y @returns {Place} */
	toPixels(x, y) {
		const { x0, x1, y0, y1 } = this.view;
		return { x: ((x - x0) / (x1 - x0)) * this.width, y: ((y1 - y) / (y1 - y0)) * this.height };
	}

	/** From pixels. @param {number} x @param {number} y @returns {Point} */
	toUnits(x, y) {
		const { x0, x1, y0, y1 } = this.view;
		return [x0 + ((x1 - x0) * x) / this.width, y1 - ((y1 - y0) * y) / this.height];
	}

	/** The pixel of an event. @param {MouseEvent} event @returns {Point} */
	pixelOf(event) {
		const box = this.frame.getBoundingClientRect();
		return [event.clientX - box.left - 1, event.clientY - box.top - 1];
	}

	/** @param {Float64Array} X @returns {Place[]} */
	placesOf(X) {
		return Array.from({ length: X.length / 2 }, (_, i) => this.toPixels(X[2 * i], X[2 * i + 1]));
	}

	/** The row of the nearest point, or -1. @param {Point} pixel @param {number} reach in pixels */
	nearestRow([x, y], reach, X = this.data.X) {
		const [row, distance] = nearestOf(this.placesOf(X), { x, y });
		return distance < reach ? row : -1;
	}

	/**
	 * @param {Data} data @param {Point | null} range of the target, for regression
	 * @param {Iterable<number>} testRows @param {View} view
	 */
	setData(data, range, testRows, view) {
		this.data = data;
		this.range = range;
		this.testRows = new Set(testRows);
		this.view = view;
		this.labelPlaces.clear();
		this.redraw();
	}

	hideCursor() {
		this.cursor = null;
		this.probe.hidden = true;
		sharpContext(this.overlay);
	}

	/** @param {Painting | null} painting */
	show(painting) {
		this.painting = painting;
		// The labels of a still picture must not depend on earlier frames.
		if (painting?.stamp.still) this.labelPlaces.clear();
		if (painting) showPixels(this.regions, painting.pixels, painting.nx, painting.ny);
		else this.regions.width = 1;
		for (const [side, length] of Object.entries(this.regionsBox())) {
			this.regions.style.setProperty(side, `${length}px`);
		}
		this.drawLines();
	}

	redraw() {
		this.drawPoints();
		this.show(this.painting);
	}

	/** Where the regions' image lies: the centers of its outermost pixels are on the frame. */
	regionsBox() {
		const cellX = this.width / Math.max(1, this.regions.width - 1);
		const cellY = this.height / Math.max(1, this.regions.height - 1);
		const [width, height] = [this.width + cellX, this.height + cellY];
		return { left: -cellX / 2, top: -cellY / 2, width, height };
	}

	drawLines() {
		const context = sharpContext(this.lines);
		this.drawAxes(context);
		if (this.painting === null) return;
		const { lines, selectedLine } = this.painting;
		if (selectedLine) this.drawLine(context, selectedLine, themeColor("--text"), 1.75, [6, 5]);
		for (const line of lines) {
			const [color = themeColor("--text"), other] = line.classes.map(lineColor);
			this.drawLine(context, line, color, line.label ? 1.25 : line.kind ? 3 : 2);
			// A tie belongs to both classes: dashes of one color on a line of the other.
			if (other) stroke(context, other, 3, [9, 9]);
		}
		this.drawLabels(context, lines);
	}

	/**
	 * @param {Context} context @param {Line} line @param {string} color
	 * @param {number} width @param {number[]} dashes
	 */
	drawLine(context, { arcs }, color, width, dashes = []) {
		context.beginPath();
		for (const arc of arcs) {
			this.placesOf(arc).forEach(({ x, y }, i) => {
				if (i === 0) context.moveTo(x, y);
				else context.lineTo(x, y);
			});
		}
		context.lineJoin = "round";
		context.globalAlpha = 0.7;
		stroke(context, themeColor("--card"), width + 2.5);
		context.globalAlpha = 1;
		stroke(context, color, width, dashes);
	}

	/** @param {Context} context @param {Line[]} lines */
	drawLabels(context, lines) {
		context.font = `13${FONT}`;
		context.textAlign = "center";
		context.textBaseline = "middle";
		const labels = lines.flatMap(({ classes, kind, arcs, label }) => {
			if (kind === null && !label) return [];
			const names = classes.map((k) => this.data.names[k]).join(", ");
			const text = label ?? (lines.length === 1 ? String(kind) : `${names}: ${kind}`);
			const places = arcs.flatMap((arc) => this.placesOf(arc));
			const width = context.measureText(text).width + 16;
			const color = label ? themeColor("--strong-line") : lineColor(classes[0]);
			return { key: label ?? classes.join(), text, color, places, width };
		});
		const placed = placeLabels(labels, this.labelPlaces, this.width, this.height, this.avoid);
		for (const { text, x, y, width, color } of placed) {
			context.beginPath();
			context.roundRect(x - width / 2, y - 11, width, 22, 11);
			context.fillStyle = themeColor("--card");
			context.fill();
			stroke(context, color, 1.5);
			context.fillStyle = themeColor("--text");
			context.fillText(text, x, y + 0.5);
		}
	}

	/** @param {Context} context */
	drawAxes(context) {
		const { width, height, view } = this;
		const [xName, yName] = this.data.features;
		context.fillStyle = themeColor("--muted");
		context.font = `600 12${FONT}`;
		context.fillText(yName, 9, 18);
		const end = width - context.measureText(xName).width - 9;
		context.fillText(xName, end, height - 9);
		context.font = `12${FONT}`;
		for (const value of ticks(view.y0, view.y1, Math.max(3, height / 90))) {
			const { y } = this.toPixels(0, value);
			if (y < 34 || y > height - 26) continue;
			context.fillRect(0, y, 5, 1);
			context.fillText(number(value), 9, y + 4);
		}
		context.textAlign = "center";
		for (const value of ticks(view.x0, view.x1, Math.max(3, width / 110))) {
			const { x } = this.toPixels(value, 0);
			if (x < 34 || x > end - 25) continue;
			context.fillRect(x, height - 5, 1, 5);
			context.fillText(number(value), x, height - 9);
		}
	}

	drawPoints() {
		const context = sharpContext(this.points);
		const { X, classes, values } = this.data;
		const { range } = this;
		const radius = classes.length <= 20 ? 8.5 : classes.length <= 600 ? 4.5 : 3.2;
		const places = this.placesOf(X);
		const stride = Math.ceil(places.length / MOST_AVOIDED);
		this.avoid = places.filter((_, i) => i % stride === 0);
		places.forEach(({ x, y }, i) => {
			const test = this.testRows.has(i);
			if (values && range) {
				const { color, opacity } = valueColor(values[i], range);
				marker(context, test ? 1 : 0, x, y, radius); // a square for a test point
				for (context.fillStyle of [themeColor("--card"), css(color, opacity)]) context.fill();
				return stroke(context, themeColor("--muted"), 1);
			}
			marker(context, classes[i], x, y, radius);
			context.fillStyle = css(classColor(classes[i]));
			if (!test) context.fill();
			stroke(context, themeColor(test ? "--card" : "--outline"), test ? 3.5 : 1.25);
			if (test) stroke(context, lineColor(classes[i]), 1.6);
		});
	}

	/** All canvases as one image, for export. @returns {Promise<Blob>} */
	toBlob() {
		const canvas = make("canvas", { width: this.lines.width, height: this.lines.height });
		const context = /** @type {Context} */ (canvas.getContext("2d"));
		context.fillStyle = themeColor("--card");
		context.fillRect(0, 0, canvas.width, canvas.height);
		const ratio = canvas.width / this.width;
		const { left, top, width, height } = this.regionsBox();
		context.drawImage(this.regions, left * ratio, top * ratio, width * ratio, height * ratio);
		context.drawImage(this.points, 0, 0);
		context.drawImage(this.lines, 0, 0);
		return new Promise((resolve) => canvas.toBlob((blob) => blob && resolve(blob)));
	}
}
