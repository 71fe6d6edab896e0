/**
 * The conics of a network: those of the neurons of its first layer, the exact boundaries between its
 * classes if it has no other layer, and what it says about one point.
 */

import { arcs } from "./arcs.js";
import { inUnits, kind, onto, value } from "./conic.js";
import { nearest } from "./nearest.js";
import { expanded, lastLayer, outputs, predictedClass } from "./net.js";

const BISECTIONS = 40;

/**
 * The conic z_k = 0 of a neuron of the first layer.
 * @param {Network} net @param {number} k @returns {Conic}
 */
export function neuronConic(net, k) {
	const { Q, w, b } = expanded(net.layers[0], k);
	return { Q: [Q[0], Q[1], Q[2]], w: [w[0], w[1]], b };
}

/** Of all neurons of the first layer. @param {Network} net */
function neuronConics(net) {
	return Array.from(net.layers[0].b, (_, k) => neuronConic(net, k));
}

/**
 * The exact boundaries of a network of a single layer; null for a deeper one.
 * @param {Network} net @param {Box} window in the coordinates of the inputs
 * @returns {Boundary[] | null}
 */
export function boundaries(net, window) {
	if (net.layers.length > 1) return null;
	const conics = neuronConics(net);
	if (net.layers[0].activation !== "softmax") {
		return conics.map((conic, k) => ({ classes: [k], conic, arcs: arcs(conic, window) }));
	}
	return conics.flatMap((_, j) => {
		return conics.slice(j + 1).map((_, i) => tie(conics, j, j + 1 + i, window));
	});
}

/**
 * The curve z_j = z_k, where no other class is larger.
 * @param {Conic[]} conics @param {number} j @param {number} k @param {Box} window
 * @returns {Boundary}
 */
function tie(conics, j, k, window) {
	const conic = difference(conics[j], conics[k]);
	const others = conics
		.filter((_, l) => l !== j && l !== k)
		.map((one) => difference(conics[j], one));
	/** @param {Point} x */
	const isLargest = ([x, y]) => others.every((other) => value(other, x, y) >= 0);
	const found = arcs(conic, window).flatMap((points) => visibleParts(conic, points, isLargest));
	return { classes: [j, k], conic, arcs: found };
}

/** @param {Conic} first @param {Conic} second @returns {Conic} */
function difference(first, second) {
	return {
		Q: [first.Q[0] - second.Q[0], first.Q[1] - second.Q[1], first.Q[2] - second.Q[2]],
		w: [first.w[0] - second.w[0], first.w[1] - second.w[1]],
		b: first.b - second.b,
	};
}

/**
 * The parts of an arc whose points are visible, cut exactly where that changes.
 * @param {Conic} conic @param {Float64Array} points @param {(x: Point) => boolean} isVisible
 */
function visibleParts(conic, points, isVisible) {
	/** @type {number[][]} */
	const parts = [];
	/** @type {Point | null} */
	let before = null;
	let wasVisible = false;
	for (let i = 0; i < points.length; i += 2) {
		/** @type {Point} */
		const x = [points[i], points[i + 1]];
		const visible = isVisible(x);
		if (visible && !wasVisible) parts.push([]);
		if (before && visible !== wasVisible) {
			parts[parts.length - 1].push(...edgeBetween(conic, before, x, isVisible));
		}
		if (visible) parts[parts.length - 1].push(...x);
		before = x;
		wasVisible = visible;
	}
	return parts.map((part) => Float64Array.from(part));
}

/**
 * The point between two points of the curve where visibility changes, by bisection.
 * @param {Conic} conic @param {Point} from @param {Point} to
 * @param {(x: Point) => boolean} isVisible
 */
function edgeBetween(conic, from, to, isVisible) {
	const wasVisible = isVisible(from);
	for (let i = 0; i < BISECTIONS; i++) {
		/** @type {Point} */
		const halfway = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
		const middle = onto(conic, onto(conic, halfway, Infinity), Infinity);
		if (isVisible(middle) === wasVisible) from = middle;
		else to = middle;
	}
	return from;
}

/**
 * Probabilities, and the distance to the boundary: in the user's units if both axes have an equal
 * scale, otherwise in standard deviations.
 * @param {Network} net @param {Scaler} scaler @param {Point} x in the user's units
 * @param {boolean} equal @returns {Reading}
 */
export function read(net, scaler, x, equal) {
	const { mean, scale } = scaler;
	/** @type {Point} */
	const input = [(x[0] - mean[0]) / scale[0], (x[1] - mean[1]) / scale[1]];
	const p = Array.from(outputs(net, input));
	const predicted = predictedClass(lastLayer(net).z);
	const { target } = scaler;
	if (target) {
		return { probabilities: [], value: p[0] * target[1] + target[0], predicted, nearest: null };
	}
	const probabilities = p.length === 1 ? [1 - p[0], p[0]] : p;
	/** @type {Nearest | null} */
	let best = null;
	for (const conic of conicsAround(net, predicted)) {
		const unitConic = inUnits(conic, scaler);
		const { distance, point } = nearest(equal ? unitConic : conic, equal ? x : input);
		if (point === null || (best && distance >= best.distance)) continue;
		if (!equal) [0, 1].forEach((j) => (point[j] = point[j] * scale[j] + mean[j]));
		best = { distance, point, kind: kind(unitConic) };
	}
	return { probabilities, value: null, predicted, nearest: best };
}

/**
 * The exact boundaries of a network without hidden layers. With softmax these are the ties of the
 * predicted class with the others: nearer than all of them, the predicted class stays the largest.
 * @param {Network} net @param {number} predicted @returns {Conic[]}
 */
function conicsAround(net, predicted) {
	if (net.layers.length > 1) return [];
	const conics = neuronConics(net);
	if (net.layers[0].activation !== "softmax") return conics;
	const own = conics[predicted];
	return conics.toSpliced(predicted, 1).map((other) => difference(own, other));
}
