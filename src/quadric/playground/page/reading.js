/** What the network says about one point: probabilities and the distance to the boundary. */
import { neuronConic } from "./boundaries.js";
import { inUnits, kind } from "./conic.js";
import { nearest } from "./nearest.js";
import { logits, outputs, predictedClass } from "./net.js";

/**
 * Lengths are in the user's units if both axes have an equal scale, else in standard deviations.
 * @param {Network} net @param {Scaler} scaler @param {Point} x in the user's units
 * @param {boolean} equal @returns {Reading}
 */
export function read(net, scaler, x, equal) {
	const { mean, scale } = scaler;
	/** @type {Point} */
	const input = [(x[0] - mean[0]) / scale[0], (x[1] - mean[1]) / scale[1]];
	const p = Array.from(outputs(net, input));
	const predicted = predictedClass(logits(net, input));
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
	return { probabilities, predicted, nearest: best };
}

/**
 * The exact boundaries of a network without hidden layers. With softmax these are the ties of the predicted class with each other
 * class: inside the smallest of their distances, the predicted class stays the largest.
 * @param {Network} net @param {number} predicted @returns {Conic[]}
 */
function conicsAround(net, predicted) {
	if (net.layers.length > 1) return [];
	const { outputs, activation } = net.layers[0];
	const conics = Array.from({ length: outputs }, (_, k) => neuronConic(net, k));
	if (activation !== "softmax") return conics;
	const own = conics[predicted];
	return conics.toSpliced(predicted, 1).map(({ Q, w, b }) => ({
		Q: [own.Q[0] - Q[0], own.Q[1] - Q[1], own.Q[2] - Q[2]],
		w: [own.w[0] - w[0], own.w[1] - w[1]],
		b: own.b - b,
	}));
}
