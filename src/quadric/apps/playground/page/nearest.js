/**
 * The point of a conic nearest to a point p, found with the secular equation.
 * quadric/geometry/_function_and_nearest.py derives it.
 */

import { canonicalForm, combine, dot } from "./canonical_form.js";
import { kindOf, onto } from "./conic.js";

const EPS = 2 ** -52;
const MAX_R = 1e100; // at larger r, a component of the gradient is practically zero
const BISECTIONS = 64;
const STRAIGHTFORWARD = ["line", "point", "coincident lines"]; // no equation to solve

/**
 * @param {Conic} conic @param {Point} p
 * @returns {{distance: number, point: Point | null}} infinity and null if the conic has no points
 */
export function nearest(conic, p) {
	const form = canonicalForm(conic);
	const kind = kindOf(form);
	if (kind === "empty") return { distance: Infinity, point: null };
	if (kind === "everything") return { distance: 0, point: p };
	const [dx, dy] = stepTo(form, kind, p);
	/** @type {Point} */
	let point = [p[0] + dx, p[1] + dy];
	const limit = 0.03 * Math.hypot(dx, dy);
	if (!STRAIGHTFORWARD.includes(kind)) point = onto(conic, onto(conic, point, limit), limit);
	return { distance: Math.hypot(point[0] - p[0], point[1] - p[1]), point };
}

/** @param {CanonicalForm} form @param {string} kind @param {Point} p */
function stepTo({ eigenvalues, directions, origin, level, slope, flat }, kind, p) {
	/** @type {Point} */
	const from = [p[0] - origin[0], p[1] - origin[1]];
	/** @type {Point} */
	const y = [dot(from, directions[0]), dot(from, directions[1])];
	if (STRAIGHTFORWARD.includes(kind)) {
		const across = kind === "line" ? [1, 0] : eigenvalues;
		return combine(directions, [across[0] ? -y[0] : 0, across[1] ? -y[1] : 0]);
	}
	// F and its gradient are computed from the axes, so that rounding errors in the axes do not
	// make them disagree
	const F = eigenvalues[0] * y[0] ** 2 + eigenvalues[1] * y[1] ** 2 + slope * y[flat] + level;
	const g = eigenvalues.map((one, i) => 2 * one * y[i] + (i === flat ? slope : 0));
	const sign = Math.sign(F);
	const [lambda, G] = [eigenvalues, g].map((list) => list.map((one) => sign * one));
	return sign ? combine(directions, stepDown(lambda, sign * F, G)) : [0, 0];
}

/**
 * The shortest step from a point with F > 0, along the axes.
 * @param {number[]} eigenvalues @param {number} value @param {number[]} gradient at the point
 */
function stepDown(eigenvalues, value, gradient) {
	const lowest = Math.min(...eigenvalues);
	const L = lowest < 0 ? -lowest : Math.max(...eigenvalues);
	const lambda = eigenvalues.map((one) => one / L);
	const g = gradient.map((one) => one / L);
	const kappa = lambda.map((one) => {
		const above = one - Math.min(lowest / L, 0);
		return lowest < 0 && above <= 4 * EPS ? 0 : above; // equal to the lowest, up to rounding
	});
	/** @param {number} r */
	const at = (r) => g.map((one, i) => ((-r / 2) * one) / (1 + r * kappa[i]));
	/** F(p + d) @param {number[]} d */
	const F = (d) => d.reduce((sum, one, i) => sum + (g[i] + lambda[i] * one) * one, value / L);
	let [low, high] = [1 / MAX_R, MAX_R];
	if (F(at(high)) < 0) {
		for (let i = 0; i < BISECTIONS; i++) {
			const middle = Math.sqrt(low) * Math.sqrt(high); // r may have any magnitude
			if (F(at(middle)) > 0) low = middle;
			else high = middle;
		}
		return at(high);
	}
	const d = g.map((one, i) => (kappa[i] === 0 ? 0 : -one / (2 * kappa[i])));
	d[kappa.indexOf(0)] = Math.sqrt(Math.max(F(d), 0));
	return d;
}
