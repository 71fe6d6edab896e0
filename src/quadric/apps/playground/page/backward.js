/** The gradients of the equations in net.js, by backpropagation. */
import { lastLayer } from "./net.js";

/**
 * Adds the gradient of the sample's loss to `gradients`, after `forward` for the same sample.
 *
 * The loss follows from the last activation: binary cross-entropy for logistic, cross-entropy for
 * softmax, half the squared error for identity. For all three, dL/dz = a - y.
 * @param {Network} net @param {Numbers} X @param {number} at @param {Numbers} Y
 * @param {number} target where the sample's targets start in Y
 * @param {Network} gradients
 */
export function backward(net, X, at, Y, target, gradients) {
	const { delta, a } = lastLayer(net);
	for (let k = 0; k < delta.length; k++) delta[k] = a[k] - Y[target + k];
	for (let l = net.layers.length - 1; l >= 0; l--) {
		const layer = net.layers[l];
		const x = l > 0 ? net.layers[l - 1].a : X;
		layer.dx.fill(0);
		BACKWARD[layer.kind](layer, x, l > 0 ? 0 : at, gradients.layers[l]);
		if (l > 0) throughActivation(layer.dx, net.layers[l - 1]);
	}
}

/**
 * Adds the gradient of a layer's parameters to `gradient`, and dL/dx to the layer's dx, from dL/dz.
 * @type {Record<Kind, (layer: Layer, x: Numbers, at: number, gradient: Layer) => void>}
 */
const BACKWARD = {
	/** dL/dW = delta x', dL/db = delta and dL/dx = W'delta */
	linear({ W, delta, dx, inputs: n }, x, at, { W: dW, b: db }) {
		let w = 0;
		for (let k = 0; k < delta.length; k++) {
			const d = delta[k];
			db[k] += d;
			for (let i = 0; i < n; i++, w++) {
				dW[w] += d * x[at + i];
				dx[i] += d * W[w];
			}
		}
	},

	/**
	 * Also dL/dq_ii = delta x_i^2 and dL/dq_ij = 2 delta x_i x_j for i < j, the derivatives with
	 * respect to the independent entries of Q; dL/dx = (2 Q x + w) delta.
	 */
	quadratic({ W, Q, delta, dx, inputs: n }, x, at, { W: dW, b: db, Q: dQ }) {
		if (Q === null || dQ === null) return;
		let w = 0;
		let q = 0;
		for (let k = 0; k < delta.length; k++) {
			const d = delta[k];
			db[k] += d;
			for (let i = 0; i < n; i++, w++) {
				const scaled = d * x[at + i];
				let slope = W[w] + 2 * Q[q] * x[at + i];
				dW[w] += scaled;
				dQ[q++] += scaled * x[at + i];
				for (let j = i + 1; j < n; j++, q++) {
					slope += 2 * Q[q] * x[at + j];
					dx[j] += 2 * Q[q] * scaled;
					dQ[q] += 2 * scaled * x[at + j];
				}
				dx[i] += d * slope;
			}
		}
	},

	/** dL/dv1 = delta v2 and dL/dv2 = delta v1, each followed by the gradients of a linear layer. */
	reduced({ W, U, v1, v2, delta, dx, inputs: n }, x, at, { W: dW, b: db, U: dU, c: dc }) {
		if (U === null || dU === null || dc === null) return;
		let w = 0;
		for (let k = 0; k < delta.length; k++) {
			const first = delta[k] * v2[k];
			const second = delta[k] * v1[k];
			db[k] += first;
			dc[k] += second;
			for (let i = 0; i < n; i++, w++) {
				dW[w] += first * x[at + i];
				dU[w] += second * x[at + i];
				dx[i] += first * W[w] + second * U[w];
			}
		}
	},
};

/**
 * delta = dL/da g'(z), with the slope g' written as a function of a = g(z)
 * @param {Float64Array} da @param {Layer} layer
 */
function throughActivation(da, { activation, a, delta }) {
	for (let k = 0; k < a.length; k++) {
		if (activation === "tanh") delta[k] = da[k] * (1 - a[k] * a[k]);
		else if (activation === "logistic") delta[k] = da[k] * a[k] * (1 - a[k]);
		else if (activation === "relu") delta[k] = a[k] > 0 ? da[k] : 0;
		else delta[k] = da[k];
	}
}
