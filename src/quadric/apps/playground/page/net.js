/**
 * The equations of networks of linear, quadratic and reduced neurons.
 *
 * All parameters of a network lie in one array, `theta`, the weights before the biases. The arrays
 * W, b, Q, U and c of a layer are views of it. Matrices are stored by rows. Q holds the upper
 * triangle of each neuron's symmetric matrix, also by rows: q11, q12, ..., q1n, q22, ..., qnn.
 *
 * A layer also owns the values of the sample that is being computed, so that no call allocates.
 */

/** The parameters of each kind, the weights before the biases. @type {Record<Kind, Field[]>} */
export const FIELDS = {
	linear: ["W", "b"],
	quadratic: ["W", "Q", "b"],
	reduced: ["W", "U", "b", "c"],
};

/** @param {Field} field */
const isBias = (field) => field === "b" || field === "c";

/** The number of entries of one parameter of a neuron. @param {Field} field @param {number} inputs */
export function fieldSize(field, inputs) {
	if (isBias(field)) return 1;
	return field === "Q" ? (inputs * (inputs + 1)) / 2 : inputs;
}

/**
 * A network whose parameters are all zero.
 * @param {number} inputs @param {LayerShape[]} shapes @returns {Network}
 */
export function emptyNetwork(inputs, shapes) {
	const layers = shapes.map((shape, l) => emptyLayer(l ? shapes[l - 1].outputs : inputs, shape));
	const all = layers.flatMap((layer) => FIELDS[layer.kind].map((field) => ({ layer, field })));
	const ordered = all.sort((one, other) => +isBias(one.field) - +isBias(other.field));
	const sizes = ordered.map(({ layer, field }) => layer.outputs * fieldSize(field, layer.inputs));
	const theta = new Float64Array(sizes.reduce((sum, size) => sum + size, 0));
	let place = 0;
	let weights = 0;
	ordered.forEach(({ layer, field }, i) => {
		layer[field] = theta.subarray(place, (place += sizes[i]));
		if (!isBias(field)) weights = place;
	});
	return { inputs, layers, theta, weights };
}

/** @param {number} inputs @param {LayerShape} shape @returns {Layer} */
function emptyLayer(inputs, { kind, outputs, activation }) {
	const none = new Float64Array(0);
	const [z, a, v1, v2, delta] = [1, 2, 3, 4, 5].map(() => new Float64Array(outputs));
	return {
		...{ kind, inputs, outputs, activation, W: none, b: none, Q: null, U: null, c: null },
		...{ z, a, v1, v2, delta, dx: new Float64Array(inputs) },
	};
}

/** An independent copy. @param {Network} net @param {Float64Array} [theta] other parameters */
export function copyNetwork(net, theta = net.theta) {
	const copy = emptyNetwork(net.inputs, net.layers);
	copy.theta.set(theta);
	return copy;
}

/**
 * Neuron k as the polynomial x'Qx + w'x + b, with Q as a triangle; for reduced neurons, the product
 * of the lines w'x + b and u'x + c.
 * @param {Layer} layer @param {number} k
 */
export function expanded({ inputs: n, W, b, Q, U, c }, k) {
	const size = (n * (n + 1)) / 2;
	const w = W.slice(k * n, (k + 1) * n);
	const triangle = Q ? Q.slice(k * size, (k + 1) * size) : new Float64Array(size);
	if (!U || !c) return { Q: triangle, w, b: b[k] };
	const u = U.subarray(k * n, (k + 1) * n);
	let q = 0;
	for (let i = 0; i < n; i++) {
		for (let j = i; j < n; j++) triangle[q++] = (w[i] * u[j] + w[j] * u[i]) / 2;
	}
	return { Q: triangle, w: w.map((x, i) => x * c[k] + u[i] * b[k]), b: b[k] * c[k] };
}

/**
 * For neuron k and input i (at k n + i), the coefficient of largest size among the terms of the
 * neuron's polynomial that contain the input: x_i, x_i^2 and x_i x_j.
 * @param {Layer} layer
 */
export function strengths(layer) {
	const { inputs: n, outputs: m } = layer;
	const found = new Float64Array(m * n);
	for (let k = 0; k < m; k++) {
		const { Q, w } = expanded(layer, k);
		/** @param {number} i @param {number} value */
		const offer = (i, value) => {
			if (Math.abs(value) > Math.abs(found[k * n + i])) found[k * n + i] = value;
		};
		let q = 0;
		for (let i = 0; i < n; i++) {
			offer(i, w[i]);
			offer(i, Q[q++]);
			for (let j = i + 1; j < n; j++, q++) for (const one of [i, j]) offer(one, 2 * Q[q]);
		}
	}
	return found;
}

/** @param {Network} net */
export const lastLayer = ({ layers }) => layers[layers.length - 1];

/** The pre-activations of the last layer for one sample. @param {Network} net @param {Numbers} x */
export function logits(net, x) {
	forward(net, x, 0);
	return lastLayer(net).z.slice();
}

/** The outputs (probabilities) for one sample. @param {Network} net @param {Numbers} x */
export function outputs(net, x) {
	forward(net, x, 0);
	return lastLayer(net).a.slice();
}

/**
 * The index of the largest logit; for a single one, 1 if it is positive, and otherwise 0.
 * @param {Float64Array} z
 */
export function predictedClass(z) {
	if (z.length === 1) return z[0] > 0 ? 1 : 0;
	let best = 0;
	for (let k = 1; k < z.length; k++) if (z[k] > z[best]) best = k;
	return best;
}

/**
 * Computes z and a of every layer for the sample that starts at X[at].
 * @param {Network} net @param {Numbers} X @param {number} at
 */
export function forward(net, X, at) {
	let x = X;
	for (const layer of net.layers) {
		FORWARD[layer.kind](layer, x, at);
		activate(layer.activation, layer.z, layer.a);
		x = layer.a;
		at = 0;
	}
}

/** Computes z of a layer. @type {Record<Kind, (layer: Layer, x: Numbers, at: number) => void>} */
const FORWARD = {
	/** z = W x + b */
	linear({ W, b, z }, x, at) {
		affine(W, b, x, at, z);
	},

	/** z = x'Q x + W x + b, where x'Q x + w'x = sum_i x_i (w_i + q_ii x_i + 2 sum_{j>i} q_ij x_j) */
	quadratic({ W, b, Q, z, inputs: n }, x, at) {
		if (Q === null) return;
		let w = 0;
		let q = 0;
		for (let k = 0; k < z.length; k++) {
			let sum = b[k];
			for (let i = 0; i < n; i++) {
				let inner = W[w++] + Q[q++] * x[at + i];
				for (let j = i + 1; j < n; j++) inner += 2 * Q[q++] * x[at + j];
				sum += inner * x[at + i];
			}
			z[k] = sum;
		}
	},

	/** z = v1 v2 with v1 = W x + b and v2 = U x + c */
	reduced({ W, b, U, c, z, v1, v2 }, x, at) {
		if (U === null || c === null) return;
		affine(W, b, x, at, v1);
		affine(U, c, x, at, v2);
		for (let k = 0; k < z.length; k++) z[k] = v1[k] * v2[k];
	},
};

/**
 * z = W x + b
 * @param {Float64Array} W @param {Float64Array} b @param {Numbers} x @param {number} at
 * @param {Float64Array} z
 */
function affine(W, b, x, at, z) {
	const n = W.length / b.length;
	let w = 0;
	for (let k = 0; k < z.length; k++) {
		let sum = b[k];
		for (let i = 0; i < n; i++) sum += W[w++] * x[at + i];
		z[k] = sum;
	}
}

/**
 * a = g(z)
 * @param {Activation} activation @param {Float64Array} z @param {Float64Array} a
 */
function activate(activation, z, a) {
	if (activation === "softmax") return softmax(z, a);
	for (let k = 0; k < z.length; k++) {
		if (activation === "logistic") a[k] = logistic(z[k]);
		else if (activation === "tanh") a[k] = Math.tanh(z[k]);
		else if (activation === "relu") a[k] = Math.max(z[k], 0);
		else a[k] = z[k];
	}
}

/** 1 / (1 + exp(-z)), without overflow. @param {number} z */
function logistic(z) {
	const e = Math.exp(-Math.abs(z));
	return (z >= 0 ? 1 : e) / (1 + e);
}

/** @param {Float64Array} z */
export function largestOf(z) {
	let largest = z[0];
	for (let k = 1; k < z.length; k++) largest = Math.max(largest, z[k]);
	return largest;
}

/** @param {Float64Array} z @param {Float64Array} a */
function softmax(z, a) {
	const largest = largestOf(z);
	let sum = 0;
	for (let k = 0; k < z.length; k++) sum += a[k] = Math.exp(z[k] - largest);
	for (let k = 0; k < z.length; k++) a[k] /= sum;
}
