/** Colors and markers of the classes: Okabe and Ito's palette, and a shape for each class. */

/** @type {Rgb[]} */
const CLASS_COLORS = [
	[0, 114, 178],
	[213, 94, 0],
	[0, 158, 115],
	[204, 121, 167],
	[86, 180, 233],
	[230, 159, 0],
	[128, 128, 128],
	[240, 228, 66],
];

/** Blue for positive and orange for negative values. */
export const SIGN_COLORS = { positive: CLASS_COLORS[0], negative: CLASS_COLORS[5] };

/** The color of a number, weak in the middle of the range. @param {number} value @param {Point} range */
export function valueColor(value, [low, high]) {
	const share = (2 * (value - low)) / (high - low || 1) - 1; // from -1 to 1
	const { positive, negative } = SIGN_COLORS;
	return { color: share > 0 ? positive : negative, opacity: 0.85 * Math.min(1, Math.abs(share)) };
}

/** Lines of the three networks that are compared. */
export const KIND_COLORS = { linear: "--strong-line", quadratic: "--accent", reduced: "--warn" };

/** @param {number[]} color */
export const css = ([r, g, b], opacity = 1) => `rgb(${r} ${g} ${b} / ${opacity})`;

/** @param {number} k */
export const classColor = (k) => CLASS_COLORS[k % CLASS_COLORS.length];

/** The color of class k for lines, lighter on a dark background. @param {number} k */
export function lineColor(k) {
	const share = Number(themeColor("--lighten"));
	return css(classColor(k).map((value) => Math.round(value + share * (255 - value))));
}

/** Of a line for a positive or negative value. @param {number} value */
export const signColor = (value) => lineColor(value > 0 ? 0 : 5);

/** @type {CSSStyleDeclaration | undefined} */
let theme;

/** A color of style.css, for example "--text". @param {string} name */
export function themeColor(name) {
	theme ??= getComputedStyle(document.documentElement); // live: it follows light and dark
	return theme.getPropertyValue(name);
}

/** Markers: number of corners, angle of the first one in degrees, and depth of the dents. */
const SHAPES = [
	[24, 0, 1],
	[4, 45, 1],
	[3, -90, 1],
	[4, 0, 1],
	[3, 90, 1],
	[5, -90, 1],
	[8, 45, 0.45],
	[10, -90, 0.45],
];

/**
 * The outline of class k's marker as the current path.
 * @param {Context} context @param {number} k
 * @param {number} x @param {number} y @param {number} radius
 */
export function marker(context, k, x, y, radius) {
	const [corners, start, dents] = SHAPES[k % SHAPES.length];
	context.beginPath();
	for (let i = 0; i < corners; i++) {
		const angle = ((start + (360 * i) / corners) * Math.PI) / 180;
		const r = radius * (corners === 24 ? 1 : 1.2) * (i % 2 ? dents : 1);
		context.lineTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
	}
	context.closePath();
}

/** A small canvas that shows the marker of class k. @param {number} k */
export function swatch(k) {
	const canvas = document.createElement("canvas");
	canvas.className = "swatch";
	canvas.width = canvas.height = 30;
	const context = /** @type {Context} */ (canvas.getContext("2d"));
	marker(context, k, 15, 15, 10);
	context.fillStyle = css(classColor(k));
	context.fill();
	return canvas;
}
