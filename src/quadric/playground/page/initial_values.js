/** Initial values of networks, with the distributions of quadric.core. */

import { emptyNetwork } from "./net.js";

/** @type {Record<Init, (layer: Layer, random: Random, scale?: number) => void>} */
const INITIAL_VALUES = { normal, glorot, identity, relinear };

/**
 * @param {number} inputs @param {LayerShape[]} shapes
 * @param {{init: Init, scale?: number}} values @param {Random} random
 */
export function createNetwork(inputs, shapes, { init, scale }, random) {
	const net = emptyNetwork(inputs, shapes);
	for (const layer of net.layers) INITIAL_VALUES[init](layer, random, scale);
	return net;
}

/**
 * Every parameter from N(0, scale^2). Q is (A + A')/2, where the entries of A are.
 * @param {Layer} layer @param {Random} random
 */
function normal(layer, random, scale = 0.005) {
	const draw = () => scale * random.normal();
	for (const array of [layer.W, layer.b, layer.U, layer.c]) array?.forEach(fill(draw));
	drawTriangles(layer, (diagonal) => (diagonal ? draw() : (draw() + draw()) / 2));
}

/**
 * Uniform weights that preserve the variance of the input, and biases of zero. The derivation of
 * the variances is in quadric/core/_initial_values.py.
 * @param {Layer} layer @param {Random} random
 */
function glorot(layer, random, scale = 1) {
	const { kind, inputs: n, outputs: m } = layer;
	const variance = {
		linear: 2 / (n + m),
		quadratic: 1 / (2 * n),
		reduced: 1 / Math.sqrt(n * (n + 2)),
	};
	/** @param {number} v */
	const uniform = (v) => scale * Math.sqrt(3 * v) * (2 * random.uniform() - 1);
	layer.W.forEach(fill(() => uniform(variance[kind])));
	layer.U?.forEach(fill(() => uniform(variance[kind])));
	drawTriangles(layer, () => uniform(1 / (2 * n * (2 * n + 1))));
}

/**
 * Q is the identity matrix, W and b are drawn from N(0, scale^2). Layers without Q use `glorot`.
 * @param {Layer} layer @param {Random} random
 */
function identity(layer, random, scale = 0) {
	if (layer.kind !== "quadratic") return glorot(layer, random);
	normal(layer, random, scale);
	drawTriangles(layer, (diagonal) => (diagonal ? 1 : 0));
}

/**
 * The function of a linear layer: Q = 0, or U = 0 and c = 1.
 * @param {Layer} layer @param {Random} random
 */
function relinear(layer, random, scale = 1) {
	const bound = scale * Math.sqrt(6 / (layer.inputs + layer.outputs));
	layer.W.forEach(fill(() => bound * (2 * random.uniform() - 1)));
	layer.c?.fill(1);
}

/**
 * A callback for forEach that replaces every entry.
 * @param {() => number} draw @returns {(value: number, i: number, array: Float64Array) => void}
 */
function fill(draw) {
	return (_, i, array) => {
		array[i] = draw();
	};
}

/** @param {Layer} layer @param {(diagonal: boolean) => number} draw */
function drawTriangles({ Q, inputs: n, outputs: m }, draw) {
	if (Q === null) return;
	let q = 0;
	for (let k = 0; k < m; k++) {
		for (let i = 0; i < n; i++) {
			for (let j = i; j < n; j++) Q[q++] = draw(i === j);
		}
	}
}
