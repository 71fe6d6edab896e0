/** Initial values of networks, with the distributions of quadric.core. */

import { emptyNetwork } from "./net.js";

/**
 * @param {number} inputs @param {LayerShape[]} shapes
 * @param {{init: Init, scale?: number}} values @param {Random} random
 */
export function createNetwork(inputs, shapes, { init, scale }, random) {
	const net = emptyNetwork(inputs, shapes);
	for (const layer of net.layers) INITIAL_VALUES[init](layer, random, scale);
	return net;
}

/** @type {Record<Init, (layer: Layer, random: Random, scale?: number) => void>} */
const INITIAL_VALUES = {
	/** Every parameter from N(0, scale^2). Q is (A + A')/2, where the entries of A are. */
	normal(layer, random, scale = 0.005) {
		const draw = () => scale * random.normal();
		for (const array of [layer.W, layer.b, layer.U, layer.c]) fill(array, draw);
		fillTriangles(layer, (diagonal) => (diagonal ? draw() : (draw() + draw()) / 2));
	},

	/**
	 * Uniform weights that preserve the variance of the input, and biases of zero. The derivation of
	 * the variances is in quadric/core/_initial_values.py.
	 */
	glorot(layer, random, scale = 1) {
		const { inputs: n, outputs: m } = layer;
		const variances = {
			linear: 2 / (n + m),
			quadratic: 1 / (2 * n),
			reduced: (n * (n + 2)) ** -0.5,
		};
		const variance = variances[layer.kind];
		for (const array of [layer.W, layer.U]) fill(array, () => scale * uniform(random, variance));
		fillTriangles(layer, () => scale * uniform(random, 1 / (2 * n * (2 * n + 1))));
	},

	/** Q is the identity matrix, W and b are from N(0, scale^2). Layers without Q use `glorot`. */
	identity(layer, random, scale = 0) {
		if (layer.kind !== "quadratic") return INITIAL_VALUES.glorot(layer, random);
		INITIAL_VALUES.normal(layer, random, scale);
		fillTriangles(layer, (diagonal) => (diagonal ? 1 : 0));
	},

	/** The function of a linear layer: Q = 0, or U = 0 and c = 1. */
	relinear(layer, random, scale = 1) {
		const variance = 2 / (layer.inputs + layer.outputs);
		fill(layer.W, () => scale * uniform(random, variance));
		layer.c?.fill(1);
	},
};

/** @param {Random} random @param {number} variance */
function uniform(random, variance) {
	return Math.sqrt(3 * variance) * (2 * random.uniform() - 1);
}

/** @param {Float64Array | null} array @param {() => number} draw */
function fill(array, draw) {
	array?.forEach((_, i) => (array[i] = draw()));
}

/** @param {Layer} layer @param {(diagonal: boolean) => number} draw */
function fillTriangles({ Q, inputs: n }, draw) {
	let [i, j] = [0, 0];
	fill(Q, () => {
		const entry = draw(i === j);
		if (++j === n) j = i = (i + 1) % n;
		return entry;
	});
}
