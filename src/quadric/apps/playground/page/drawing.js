/** Drawing points into the picture. */
import { noPoints } from "./datasets.js";
import { byId, make, onClick } from "./dom.js";
import { swatch } from "./palette.js";
import { LIMITS } from "./settings.js";

const REACH = 24; // pixels within which shift-click finds a point

/** Short numbers keep links short. @param {Data} data @returns {Data} */
export const rounded = (data) => ({ ...data, X: data.X.map((x) => +x.toPrecision(7)) });

export class Drawing {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.active = false;
		this.current = 0; // the class that is drawn
		onClick("draw-toggle", () => this.setActive(!this.active));
		onClick("draw-undo", () => this.remove(app.data.classes.length - 1));
		onClick("draw-clear", () => this.use(noPoints(app.data.names, app.data.features)));
		onClick("draw-add", () => {
			const { names } = app.data;
			const name = Array.from("ABCDEFGHIJ").find((letter) => !names.includes(letter));
			this.current = names.length;
			this.use({ ...app.data, names: [...names, String(name)] });
		});
	}

	/** @param {boolean} active */
	setActive(active) {
		this.active = active;
		byId("draw-toggle").ariaPressed = String(active);
		byId("draw-tools").hidden = !active;
		byId("pictures").classList.toggle("drawing", active);
		this.showClasses();
	}

	/** @param {Picture} picture */
	attach(picture) {
		picture.frame.addEventListener("click", (event) => {
			if (!this.active) return;
			const pixel = picture.pixelOf(event);
			if (event.shiftKey) this.remove(picture.nearestRow(pixel, REACH));
			else this.add(picture.toUnits(...pixel));
		});
		picture.frame.addEventListener("keydown", (event) => {
			if (this.active && event.key === "Enter" && picture.cursor) this.add(picture.cursor);
		});
	}

	/** @param {Point} at */
	add(at) {
		const { data } = this.app;
		const classes = Int32Array.from([...data.classes, this.current]);
		this.use({ ...data, X: Float64Array.from([...data.X, ...at]), classes });
	}

	/** @param {number} row */
	remove(row) {
		if (row < 0) return;
		const { data } = this.app;
		const X = data.X.filter((_, i) => i >> 1 !== row);
		this.use({ ...data, X, classes: data.classes.filter((_, i) => i !== row) });
	}

	/** @param {Data} points */
	use(points) {
		this.app.change({ data: "points", points: rounded(points) });
	}

	showClasses() {
		const { names } = this.app.data;
		if (this.current >= names.length) this.current = 0;
		const chips = names.map((name, k) => {
			const click = () => {
				this.current = k;
				this.showClasses();
				byId(id).focus();
			};
			const id = `draw-class-${k}`;
			const checked = { role: "radio", "aria-checked": String(k === this.current) };
			return make("button", { id, class: "chip", ...checked, click }, swatch(k), name);
		});
		byId("draw-classes").replaceChildren(...chips);
		byId("draw-add").hidden = names.length >= LIMITS.classes;
	}
}
