/** Conics in the plane: their values, kind, center, axes, equation, and changes of units. */

import { canonicalForm, TOLERANCE } from "./canonical_form.js";

/**
 * F(x, y)
 * @param {Conic} conic @param {number} x @param {number} y
 */
export function value({ Q, w, b }, x, y) {
	return (Q[0] * x + Q[1] * y + w[0]) * x + (Q[1] * x + Q[2] * y + w[1]) * y + b;
}

/** @param {Conic} conic @param {number} x @param {number} y @returns {Point} */
export function gradient({ Q, w }, x, y) {
	return [2 * (Q[0] * x + Q[1] * y) + w[0], 2 * (Q[1] * x + Q[2] * y) + w[1]];
}

/**
 * A point near the curve, moved onto it by one Newton step unless the step is longer than `limit`.
 * @param {Conic} conic @param {Point} point @param {number} limit @returns {Point}
 */
export function onto(conic, [x, y], limit) {
	const [gx, gy] = gradient(conic, x, y);
	const t = value(conic, x, y) / (gx * gx + gy * gy);
	return Math.abs(t) * Math.hypot(gx, gy) < limit ? [x - t * gx, y - t * gy] : [x, y];
}

/** The name of the curve, as in quadric.geometry. @param {Conic} conic @returns {ConicKind} */
export function kind(conic) {
	return kindOf(canonicalForm(conic));
}

/** @param {CanonicalForm} form @returns {ConicKind} */
export function kindOf({ eigenvalues, level, slope }) {
	const positive = eigenvalues.filter((one) => one > 0).length;
	const negative = eigenvalues.filter((one) => one < 0).length;
	if (positive + negative === 0) return slope ? "line" : level ? "empty" : "everything";
	if (slope) return "parabola";
	if (positive && negative) return level ? "hyperbola" : "crossing lines";
	const two = positive + negative === 2;
	if (level === 0) return two ? "point" : "coincident lines";
	if (level > 0 === positive > 0) return "empty";
	return two ? (isRound(eigenvalues) ? "circle" : "ellipse") : "parallel lines";
}

/** Whether the half-lengths of the axes are equal. @param {Point} eigenvalues */
function isRound(eigenvalues) {
	const [low, high] = eigenvalues.map(Math.abs).sort((a, b) => a - b);
	return high - low <= 2 * TOLERANCE * high;
}

/**
 * The center of symmetry; null if there is none. If there are several, one of them.
 * @param {Conic} conic
 */
export function center(conic) {
	const { origin, slope, eigenvalues } = canonicalForm(conic);
	return slope || (eigenvalues[0] === 0 && eigenvalues[1] === 0) ? null : origin;
}

/**
 * The principal axes, the longest first. A half-length is the distance from the center to the curve
 * along the axis; infinite where the curve is straight, NaN for a parabola.
 * @param {Conic} conic
 */
export function axes(conic) {
	const { eigenvalues, directions, level, slope } = canonicalForm(conic);
	const list = directions.map((direction, i) => {
		const curved = slope ? NaN : Math.sqrt(Math.abs(level) / Math.abs(eigenvalues[i]));
		return { direction, halfLength: eigenvalues[i] === 0 ? Infinity : curved };
	});
	return list[1].halfLength > list[0].halfLength || Number.isNaN(list[0].halfLength)
		? list.reverse()
		: list;
}

/**
 * The image of the conic under x -> scale x + mean: from standardized features to the user's units.
 * @param {Conic} conic @param {Scaler} scaler @returns {Conic}
 */
export function inUnits(conic, { mean, scale }) {
	const x = -mean[0] / scale[0];
	const y = -mean[1] / scale[1];
	const [gx, gy] = gradient(conic, x, y);
	const [q11, q12, q22] = conic.Q;
	return {
		Q: [q11 / scale[0] / scale[0], q12 / scale[0] / scale[1], q22 / scale[1] / scale[1]],
		w: [gx / scale[0], gy / scale[1]],
		b: value(conic, x, y),
	};
}

/**
 * The equation as quadric.geometry writes it, such as "x² + 4 y² - 3 = 0".
 * @param {Conic} conic @param {string[]} names
 */
export function equation({ Q, w, b }, names) {
	const [x, y] = names.map((name) => (/^[\p{L}\p{N}_]+$/u.test(name) ? name : `[${name}]`));
	const product = names.every((name) => /^\p{L}$/u.test(name)) ? x + y : `${x}·${y}`;
	/** @type {[number, string][]} */
	const monomials = [
		[Q[0], `${x}²`],
		[2 * Q[1], product],
		[Q[2], `${y}²`],
		[w[0], x],
		[w[1], y],
		[b, ""],
	];
	const terms = monomials
		.filter(([coefficient]) => coefficient !== 0)
		.map(([coefficient, monomial]) => term(coefficient, monomial));
	const text = terms.join(" ").replace(/^\+ /, "").replace(/^- /, "-");
	return `${text || "0"} = 0`;
}

/** @param {number} coefficient @param {string} monomial */
function term(coefficient, monomial) {
	const number = significant(Math.abs(coefficient));
	const product = monomial === "" ? number : number === "1" ? monomial : `${number} ${monomial}`;
	return `${coefficient < 0 ? "-" : "+"} ${product}`;
}

/** Three significant digits without trailing zeros, like "%.3g" in Python. @param {number} number */
export function significant(number) {
	const [digits, exponent] = number.toExponential(2).split("e");
	const power = Number(exponent);
	if (power >= -4 && power < 3) return String(+number.toFixed(2 - power));
	const short = digits.replace(/\.?0+$/, "");
	return `${short}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}
