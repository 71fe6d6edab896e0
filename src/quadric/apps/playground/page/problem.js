/** What a worker trains on: the data split, standardized and encoded, and the initial network. */

import { createNetwork } from "./initial_values.js";
import { Random } from "./random.js";

const FEWEST_TO_SPLIT = 10;

/**
 * @param {Data} data @param {Settings} settings
 * @param {Scaler | null} [scaler] used instead of the training data's own mean and deviation
 */
export function makeProblem(data, settings, scaler = null) {
	const { train, test } = split(data.classes, settings.test, settings.seed);
	const outputs = outputsFor(settings, data.names.length);
	const used = scaler ?? (settings.standardize ? fitScaler(data.X, train) : NO_SCALER);
	return {
		X: data.X.map((x, i) => (x - used.mean[i % 2]) / used.scale[i % 2]),
		Y: targets(data.classes, outputs),
		train,
		test,
		scaler: used,
		outputs,
	};
}

/** @type {Scaler} */
export const NO_SCALER = { mean: [0, 0], scale: [1, 1] };

/**
 * Chooses the test set at random within each class, which always keeps a training sample. Fewer
 * than ten samples are not split.
 * @param {Int32Array} classes @param {number} share @param {number} seed
 */
export function split(classes, share, seed) {
	const rows = Int32Array.from(classes.keys());
	const order = rows.slice();
	new Random(seed, "split").shuffle(order);
	const test = new Set();
	for (const k of new Set(classes)) {
		const members = order.filter((row) => classes[row] === k);
		const wanted = classes.length < FEWEST_TO_SPLIT ? 0 : Math.round(share * members.length);
		for (const row of members.subarray(0, Math.min(wanted, members.length - 1))) test.add(row);
	}
	return { train: rows.filter((row) => !test.has(row)), test: rows.filter((row) => test.has(row)) };
}

/**
 * The mean and the standard deviation of both coordinates, like StandardScaler.
 * @param {Float64Array} X @param {Int32Array} rows @returns {Scaler}
 */
function fitScaler(X, rows) {
	const columns = [0, 1].map((j) => Array.from(rows, (row) => X[2 * row + j]));
	const mean = columns.map(average);
	const variance = columns.map((column, j) => average(column.map((x) => (x - mean[j]) ** 2)));
	return { mean, scale: variance.map((one) => Math.sqrt(one) || 1) };
}

/** @param {number[]} values */
const average = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;

/** @param {Int32Array} classes @param {number} outputs */
function targets(classes, outputs) {
	const Y = new Float64Array(classes.length * outputs);
	classes.forEach((k, row) => {
		if (outputs === 1) Y[row] = k;
		else Y[row * outputs + k] = 1;
	});
	return Y;
}

/**
 * The number of output neurons: one for two classes with a sigmoid, and otherwise one per class.
 * @param {Settings} settings @param {number} classes
 */
export function outputsFor(settings, classes) {
	return settings.output === "sigmoid" && classes <= 2 ? 1 : classes;
}

/** @param {Settings} settings @param {number} outputs @returns {LayerShape[]} */
export function layerShapes({ layers, activation, lastKind, output }, outputs) {
	const last = output === "softmax" ? "softmax" : "logistic";
	return [
		...layers.map((layer) => ({ kind: layer.kind, outputs: layer.outputs, activation })),
		{ kind: lastKind, outputs, activation: last },
	];
}

/**
 * The network before training, the same one for the same settings.
 * @param {Settings} settings @param {number} outputs
 */
export function initialNetwork(settings, outputs) {
	const { init, scale, seed } = settings;
	const values = init === "normal" ? { init, scale } : { init };
	return createNetwork(2, layerShapes(settings, outputs), values, new Random(seed, "network"));
}
