/** Drawing points into the picture. */
import { byId, make, onClick } from "./dom.js";
import { swatch } from "./palette.js";
import { LIMITS } from "./settings.js";

const REACH = 24; // pixels within which shift-click finds a point

/** Short numbers keep links short. @param {number} value */
const rounded = (value) => +value.toPrecision(7);

/** @param {Data} data @returns {Points} */
export function pointsOf({ X, classes, names, features }) {
	const [x, y] = [0, 1].map((j) =>
		Array.from(
			X.filter((_, i) => i % 2 === j),
			rounded,
		),
	);
	return { x, y, classes: Array.from(classes), names: [...names], features };
}

/** @returns {Points} */
export function noPoints(names = ["A", "B"], features = ["x1", "x2"]) {
	return { x: [], y: [], classes: [], names, features };
}

export class Drawing {
	/** @param {() => Data} getData @param {(points: Points) => void} onPoints */
	constructor(getData, onPoints) {
		this.getData = getData;
		this.onPoints = onPoints;
		this.active = false;
		this.current = 0; // the class that is drawn
		onClick("draw-toggle", () => this.setActive(!this.active));
		onClick("draw-undo", () => this.remove(getData().classes.length - 1));
		onClick("draw-clear", () => onPoints(noPoints(getData().names, getData().features)));
		onClick("draw-add", () => {
			const points = pointsOf(getData());
			const name = Array.from("ABCDEFGHIJ").find((letter) => !points.names.includes(letter));
			this.current = points.names.push(String(name)) - 1;
			onPoints(points);
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
		const points = pointsOf(this.getData());
		points.x.push(rounded(at[0]));
		points.y.push(rounded(at[1]));
		points.classes.push(this.current);
		this.onPoints(points);
	}

	/** @param {number} row */
	remove(row) {
		if (row < 0) return;
		const points = pointsOf(this.getData());
		for (const list of [points.x, points.y, points.classes]) list.splice(row, 1);
		this.onPoints(points);
	}

	showClasses() {
		const { names } = this.getData();
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
