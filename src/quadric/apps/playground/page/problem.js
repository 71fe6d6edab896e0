/** What a worker trains on: the data split, standardized and encoded, and the initial network. */

import { createNetwork } from "./initial_values.js";
import { Random } from "./random.js";

const FEWEST_TO_SPLIT = 10;

/** The settings that apply to the data: numbers are predicted by an output without a sigmoid. */
export const forData = (/** @type {Settings} */ settings, /** @type {Data} */ { values }) =>
	values ? { ...settings, output: /** @type {const} */ ("value") } : settings;

/**
 * @param {Data} data @param {Settings} settings
 * @param {Scaler | null} [scaler] used instead of the training data's own mean and deviation
 */
export function makeProblem(data, settings, scaler = null) {
	const { train, test } = split(data.classes, settings.test, settings.seed);
	const outputs = outputsFor(settings, data.names.length);
	const used = scaler ?? (settings.standardize ? fitScaler(data.X, train) : NO_SCALER);
	const { values } = data;
	const target = values && moments(Array.from(train, (row) => values[row]));
	return {
		X: data.X.map((x, i) => (x - used.mean[i % 2]) / used.scale[i % 2]),
		Y: target ? values.map((y) => (y - target[0]) / target[1]) : targets(data.classes, outputs),
		train,
		test,
		scaler: target ? { ...used, target } : used,
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
	const columns = [0, 1].map((j) => moments(Array.from(rows, (row) => X[2 * row + j])));
	return { mean: columns.map(([mean]) => mean), scale: columns.map(([, scale]) => scale) };
}

/** The mean and the standard deviation, 1 if it is zero. @param {number[]} values @returns {Point} */
function moments(values) {
	const mean = average(values);
	return [mean, Math.sqrt(average(values.map((x) => (x - mean) ** 2))) || 1];
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
 * The number of output neurons: one for a number or for two classes with a sigmoid, and otherwise
 * one per class.
 * @param {Settings} settings @param {number} classes
 */
export function outputsFor(settings, classes) {
	return settings.output !== "softmax" && classes <= 2 ? 1 : classes;
}

/** @param {Settings} settings @param {number} outputs @returns {LayerShape[]} */
export function layerShapes({ layers, activation, lastKind, output }, outputs) {
	/** @type {Record<Settings["output"], Activation>} */
	const last = { sigmoid: "logistic", softmax: "softmax", value: "identity" };
	return [
		...layers.map((layer) => ({ kind: layer.kind, outputs: layer.outputs, activation })),
		{ kind: lastKind, outputs, activation: last[output] },
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
