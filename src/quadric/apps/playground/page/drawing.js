/** Drawing points into the picture: one by a click, a cloud by dragging. */
import { noPoints } from "./datasets.js";
import { byId, inputById, make, onClick } from "./dom.js";
import { swatch } from "./palette.js";
import { Random } from "./random.js";
import { LIMITS } from "./settings.js";

const REACH = 24; // pixels within which a point is found and removed
const SPACING = 9; // pixels of dragging for each point of a cloud
const SPREAD = 12; // standard deviation of the points of a cloud, in pixels
const ERASER = -1; // in place of a class

/** Short numbers keep links short. @param {Data} data @returns {Data} */
export function rounded(data) {
	const short = (/** @type {number} */ x) => +x.toPrecision(7);
	const { X, values } = data;
	return { ...data, X: X.map(short), ...(values ? { values: values.map(short) } : {}) };
}

const random = new Random(0, "clouds");

export class Drawing {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.active = false;
		this.current = 0; // the class that is drawn
		/** @type {Data[]} the points before each stroke */
		this.past = [];
		/** @type {Point | null} the pixel that the stroke has reached */
		this.stroke = null;
		/** @type {Mark[]} that wait until the points before them are being trained on */
		this.marks = [];
		this.shown = "";
		onClick("draw-toggle", () => this.toggle());
		onClick("draw-undo", () => this.use(this.past.pop() ?? app.data));
		onClick("draw-clear", () => this.clear(app.data.names, app.data.features));
		onClick("draw-add", () => {
			const { names } = app.data;
			const name = [..."ABCDEFGHIJ"].find((letter) => !names.includes(letter));
			this.current = names.length;
			this.use({ ...app.data, names: [...names, String(name)] });
		});
	}

	/** Removes the points of a data set; Undo brings them back. */
	toggle() {
		if (!this.active && !this.app.settings.points) this.clear();
		this.setActive(!this.active);
	}

	/** @param {string[]} [names] @param {string[]} [features] */
	clear(names, features) {
		this.past.push(this.app.data);
		this.use(noPoints(names, features));
	}

	/** @param {boolean} active */
	setActive(active) {
		this.active = active;
		if (!active) [this.past, this.marks] = [[], []];
		byId("draw-toggle").ariaPressed = String(active);
		byId("draw-tools").hidden = !active;
		byId("pictures").classList.toggle("drawing", active);
		this.showClasses();
	}

	/** @param {Picture} picture */
	attach(picture) {
		const { frame } = picture;
		/** @param {Point} pixel @param {boolean} erase */
		const mark = (pixel, erase) => this.mark({ picture, pixel, erase });
		frame.addEventListener("pointerdown", (event) => {
			if (!this.active || event.button) return;
			frame.setPointerCapture(event.pointerId);
			this.past.push(this.app.data);
			this.stroke = picture.pixelOf(event);
			picture.hideCursor();
			mark(this.stroke, event.shiftKey);
		});
		frame.addEventListener("pointermove", (event) => {
			if (!this.stroke) return;
			event.stopImmediatePropagation(); // nothing is read while one draws
			const [x, y] = picture.pixelOf(event);
			const [x0, y0] = this.stroke;
			const count = Math.floor(Math.hypot(x - x0, y - y0) / SPACING);
			for (let i = 1; i <= count; i++) {
				this.stroke = [x0 + ((x - x0) * i) / count, y0 + ((y - y0) * i) / count];
				const [u, v] = this.stroke.map((at) => at + SPREAD * random.normal());
				mark([u, v], event.shiftKey);
			}
		});
		for (const type of ["pointerup", "pointercancel"]) {
			frame.addEventListener(type, () => (this.stroke = null));
		}
		frame.addEventListener("keydown", ({ key }) => {
			if (!this.active || !picture.cursor || !["Enter", "Delete"].includes(key)) return;
			const { x, y } = picture.toPixels(...picture.cursor);
			this.past.push(this.app.data);
			mark([x, y], key === "Delete");
		});
	}

	/** @param {Mark} mark */
	mark(mark) {
		const { width, height } = mark.picture;
		const [x, y] = mark.pixel;
		if (Math.min(x, y, width - x, height - y) < 0) return; // outside
		this.marks.push({ ...mark, erase: mark.erase || this.current === ERASER });
		if (this.marks.length === 1) this.apply();
	}

	/** Uses all waiting marks at once, so that training keeps up with the hand. */
	apply() {
		if (!this.marks.length) return; // dropped
		const { data, stage } = this.app;
		const { problem, state } = stage.main.run;
		if (problem && !state) return void requestAnimationFrame(() => this.apply());
		const [X, classes] = [[...data.X], [...data.classes]];
		for (const { picture, pixel, erase } of this.marks.splice(0)) {
			if (erase) {
				const row = picture.nearestRow(pixel, REACH, Float64Array.from(X));
				if (row < 0) continue;
				X.splice(2 * row, 2);
				classes.splice(row, 1);
			} else {
				X.push(...picture.toUnits(...pixel));
				classes.push(this.current);
			}
		}
		this.use({ ...data, X: Float64Array.from(X), classes: Int32Array.from(classes) });
	}

	/** @param {Data} points */
	use(points) {
		this.app.change({ data: "points", points: rounded(points) });
	}

	showClasses() {
		const { names } = this.app.data;
		if (this.current >= names.length) this.current = 0;
		inputById("draw-undo").disabled = !this.past.length;
		byId("draw-add").hidden = names.length >= LIMITS.classes;
		const shown = [this.current, ...names].join("\n");
		if (shown === this.shown) return;
		this.shown = shown;
		/** @param {number} k @param {string} id @param {...(Node | string)} content */
		const chip = (k, id, ...content) => {
			const click = () => {
				this.current = k;
				this.showClasses();
				byId(id).focus();
			};
			const checked = { role: "radio", "aria-checked": String(k === this.current) };
			return make("button", { id, class: "chip", ...checked, click }, ...content);
		};
		const chips = names.map((name, k) => chip(k, `draw-class-${k}`, swatch(k), name));
		byId("draw-classes").replaceChildren(...chips, chip(ERASER, "draw-erase", "Erase"));
	}
}
