/**
 * Networks as `.quadric` files.
 *
 * The page writes a QuadraticClassifier or a QuadraticRegressor, in a Pipeline with a StandardScaler
 * if the features are standardized, so that the file has predict and the user's units in Python.
 */

import { isWholeNumber, sortedNames } from "./csv.js";
import { expect } from "./expect.js";
import { emptyNetwork, expanded, fieldSize, FIELDS, lastLayer } from "./net.js";
import { writeContainer } from "./safetensors.js";

/** @param {Model} model */
export async function writeModel({ net, scaler, classes, features, target }) {
	const isSorted = sortedNames(classes).every((name, k) => name === classes[k]);
	expect(isSorted, "Python needs the names of the classes in alphabetical order. Rename them.");
	/** @type {Tensors} */
	const tensors = new Map();
	/** @type {Store} */
	const store = (name, dtype, { buffer, byteOffset, byteLength }, shape) => {
		// a copy, because training goes on while the file is hashed
		const bytes = new Uint8Array(buffer, byteOffset, byteLength).slice();
		tensors.set(name, { dtype, shape: shape ?? [bytes.length], bytes });
		return name;
	};
	const path = scaler ? "steps.1." : "";
	const last = target
		? describeEstimator("QuadraticRegressor", inUnitsOfTarget(net, target), path, store)
		: describeClassifier(net, classes, path, store);
	const model = scaler ? describePipeline(scaler, last, store) : last;
	const versions = { playground: "1" };
	return writeContainer({ extra: { columns: features }, model, versions }, tensors);
}

/**
 * @param {Network} net @param {string[]} classes
 * @param {string} path the place of the classifier in the file
 * @param {Store} store
 */
function describeClassifier(net, classes, path, store) {
	const classifier = describeEstimator("QuadraticClassifier", net, path, store);
	const classes_ = describeClasses(classes, `${path}classes_`, store);
	return { ...classifier, facts: { ...classifier.facts, multilabel: false, classes_ } };
}

/** @type {Record<string, string>} by the last activation */
const LOSSES = {
	softmax: "cross_entropy",
	logistic: "binary_cross_entropy",
	identity: "squared_error",
};

/** @param {string} name @param {Network} net @param {string} path @param {Store} store */
function describeEstimator(name, net, path, store) {
	net.layers.forEach((layer, l) => {
		for (const field of FIELDS[layer.kind]) {
			const values = /** @type {Float64Array} */ (layer[field]);
			const size = fieldSize(field, layer.inputs);
			const shape = "bc".includes(field) ? [layer.outputs] : [layer.outputs, size];
			store(`layers.${l}.${field}`, "F64", values, shape);
		}
	});
	const hidden = net.layers.slice(0, -1);
	return {
		type: "fitted",
		class: name,
		parameters: {
			activation: hidden[0]?.activation ?? "tanh",
			hidden_layer_sizes: tuple(hidden.map((layer) => layer.outputs)),
			layer_kinds: tuple(net.layers.map((layer) => layer.kind)),
			loss: LOSSES[lastLayer(net).activation],
		},
		facts: {
			...{ _alpha: 0, n_iter_: 0, t_: 0 },
			loss_curve_: {
				type: "floats",
				tensor: store(`${path}loss_curve_`, "F64", new Float64Array(0)),
			},
			network_: {
				type: "network",
				layers: net.layers.map(({ kind, activation, inputs, outputs }) => {
					return { kind, activation, inputs, neurons: outputs };
				}),
			},
		},
	};
}

/**
 * The network that computes scale z + mean. Its output is not reduced, because a product of two
 * lines plus a number is in general not such a product.
 * @param {Network} net @param {Point} target @returns {Network}
 */
function inUnitsOfTarget(net, [mean, scale]) {
	const { kind } = lastLayer(net);
	const found = emptyNetwork(net.inputs, [
		...net.layers.slice(0, -1),
		{ kind: kind === "reduced" ? "quadratic" : kind, outputs: 1, activation: "identity" },
	]);
	net.layers.slice(0, -1).forEach((layer, l) => {
		for (const field of FIELDS[layer.kind]) found.layers[l][field]?.set(layer[field] ?? []);
	});
	const last = lastLayer(found);
	const { Q, w, b } = expanded(lastLayer(net), 0);
	last.W.set(w.map((x) => scale * x));
	last.Q?.set(Q.map((x) => scale * x));
	last.b[0] = scale * b + mean;
	return found;
}

/** @param {Scaler} scaler @param {{class: string}} last @param {Store} store */
function describePipeline({ mean, scale }, last, store) {
	const facts = { mean_: mean, scale_: scale, var_: scale.map((one) => one * one) };
	const described = Object.entries(facts).map(([name, values]) => {
		const tensor = store(`steps.0.${name}`, "F64", Float64Array.from(values), [2]);
		return [name, { type: "array", dtype: "float64", tensor }];
	});
	const scaler = {
		type: "fitted",
		class: "StandardScaler",
		parameters: { with_mean: true, with_std: true },
		facts: { ...Object.fromEntries(described), n_features_in_: 2, n_samples_seen_: 1 },
	};
	const steps = [tuple(["standardscaler", scaler]), tuple([last.class.toLowerCase(), last])];
	return { type: "fitted", class: "Pipeline", parameters: { steps }, facts: {} };
}

/**
 * Integers if all names are whole numbers, and otherwise text, four bytes per character.
 * @param {string[]} classes @param {string} name @param {Store} store
 */
function describeClasses(classes, name, store) {
	const { length } = classes;
	if (classes.every(isWholeNumber)) {
		const tensor = store(name, "I64", BigInt64Array.from(classes, BigInt), [length]);
		return { type: "array", tensor, dtype: "int64" };
	}
	const texts = classes.map((text) => [...text].map((one) => Number(one.codePointAt(0))));
	const width = Math.max(...texts.map((text) => text.length));
	const characters = texts.flatMap((text) => [...text, ...Array(width - text.length).fill(0)]);
	const tensor = store(name, "U8", Uint32Array.from(characters));
	return { type: "array", tensor, dtype: `<U${width}`, length };
}

/** @param {unknown[]} items */
const tuple = (items) => ({ type: "tuple", items });
