/**
 * Losses, accuracy, and the steps of SGD and Adam.
 *
 * X holds the inputs and Y the targets of all samples, by rows; `rows` lists the samples to use.
 */

import { backward } from "./backward.js";
import { copyNetwork, forward, largestOf, lastLayer, predictedClass } from "./net.js";

/**
 * The loss of the sample that `forward` has computed, from the logits, so that it is always finite
 * if they are.
 * @param {Layer} last @param {Float64Array} Y
 * @param {number} target where the sample's targets start in Y
 */
function sampleLoss({ activation, z }, Y, target) {
	let loss = 0;
	const largest = largestOf(z);
	if (activation === "softmax") {
		let sum = 0;
		for (let k = 0; k < z.length; k++) sum += Math.exp(z[k] - largest);
		loss = Math.log(sum);
	}
	for (let k = 0; k < z.length; k++) {
		const y = Y[target + k];
		if (activation === "softmax") loss -= y * (z[k] - largest);
		else if (activation === "logistic") {
			const size = Math.abs(z[k]);
			loss += Math.log1p(Math.exp(-size)) + size * (z[k] >= 0 ? 1 - y : y);
		} else loss += ((z[k] - y) * (z[k] - y)) / 2;
	}
	return loss;
}

/**
 * The mean loss and the share of samples whose predicted class is right, or R² for a number; NaN
 * without samples.
 * @param {Network} net @param {Float64Array} X @param {Float64Array} Y @param {Int32Array} [rows]
 */
export function evaluate(net, X, Y, rows) {
	const last = lastLayer(net);
	const count = rows ? rows.length : X.length / net.inputs;
	let loss = 0;
	let right = 0;
	let [sum, squares] = [0, 0];
	for (let i = 0; i < count; i++) {
		const row = rows ? rows[i] : i;
		const at = row * last.outputs;
		forward(net, X, row * net.inputs);
		loss += sampleLoss(last, Y, at);
		if (last.activation === "identity") {
			sum += Y[at];
			squares += Y[at] * Y[at];
			continue;
		}
		const found = predictedClass(last.z);
		if (last.outputs > 1 ? Y[at + found] === 1 : Y[at] === found) right++;
	}
	loss /= count;
	if (last.activation !== "identity") return { loss, accuracy: right / count };
	return { loss, accuracy: 1 - (2 * loss) / (squares / count - (sum / count) ** 2) };
}

/** @param {Network} net updated in place @param {TrainerOptions} options @returns {Trainer} */
export function makeTrainer(net, options) {
	const sum = copyNetwork(net);
	const update = options.optimizer === "adam" ? adam(net) : sgd(net);
	const { outputs } = lastLayer(net);
	return {
		step(X, Y, rows) {
			sum.theta.fill(0);
			for (let i = 0; i < rows.length; i++) {
				const at = rows[i] * net.inputs;
				forward(net, X, at);
				backward(net, X, at, Y, rows[i] * outputs, sum);
			}
			return update(sum.theta, 1 / rows.length, options);
		},
	};
}

/** theta -= rate (gradient + l2 theta) @param {Network} net @returns {Update} */
function sgd({ theta, weights }) {
	return (sum, share, { rate, l2 }) => {
		let total = 0; // NaN or infinite if a parameter is
		for (let i = 0; i < theta.length; i++) {
			const penalty = i < weights ? l2 * theta[i] : 0;
			theta[i] -= rate * (sum[i] * share + penalty);
			total += theta[i];
		}
		return Number.isFinite(total);
	};
}

/**
 * Adam with the usual constants, 0.9, 0.999 and 1e-8, as in scikit-learn.
 * @param {Network} net @returns {Update}
 */
function adam({ theta, weights }) {
	const first = new Float64Array(theta.length);
	const second = new Float64Array(theta.length);
	let steps = 0;
	return (sum, share, { rate, l2 }) => {
		steps++;
		const size = (rate * Math.sqrt(1 - 0.999 ** steps)) / (1 - 0.9 ** steps);
		let total = 0;
		for (let i = 0; i < theta.length; i++) {
			const g = sum[i] * share + (i < weights ? l2 * theta[i] : 0);
			first[i] += 0.1 * (g - first[i]);
			second[i] += 0.001 * (g * g - second[i]);
			theta[i] -= (size * first[i]) / (Math.sqrt(second[i]) + 1e-8);
			total += theta[i];
		}
		return Number.isFinite(total);
	};
}
