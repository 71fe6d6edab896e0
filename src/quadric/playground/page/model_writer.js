/**
 * Networks as `.quadric` files.
 *
 * The page writes a QuadraticClassifier, or a Pipeline of a StandardScaler and a
 * QuadraticClassifier if the features are standardized. So in Python the file has predict and
 * predict_proba, takes the user's units, and works with every command.
 */

import { isWholeNumber, sortedNames } from "./csv.js";
import { expect } from "./expect.js";
import { fieldSize, FIELDS, lastLayer } from "./net.js";
import { writeContainer } from "./safetensors.js";

/** @param {Model} model */
export async function writeModel({ net, scaler, classes, features }) {
	/** @type {Tensors} */
	const tensors = new Map();
	const path = scaler ? "steps.1." : "";
	const isSorted = sortedNames(classes).every((name, k) => name === classes[k]);
	expect(isSorted, "Python needs the names of the classes in alphabetical order. Rename them.");
	const classifier = describeClassifier(net, classes, path, tensors);
	const model = scaler ? describePipeline(scaler, classifier, tensors) : classifier;
	const versions = { playground: "1" };
	return writeContainer({ extra: { columns: features }, model, versions }, tensors);
}

/**
 * @param {Network} net @param {string[]} classes
 * @param {string} path the place of the classifier in the file
 * @param {Tensors} tensors
 */
function describeClassifier(net, classes, path, tensors) {
	net.layers.forEach((layer, l) => {
		for (const field of FIELDS[layer.kind]) {
			const values = /** @type {Float64Array} */ (layer[field]);
			const size = fieldSize(field, layer.inputs);
			const shape = "bc".includes(field) ? [layer.outputs] : [layer.outputs, size];
			tensors.set(`layers.${l}.${field}`, numbers(values, shape));
		}
	});
	const hidden = net.layers.slice(0, -1);
	tensors.set(`${path}loss_curve_`, numbers(new Float64Array(0), [0]));
	return {
		type: "fitted",
		class: "QuadraticClassifier",
		parameters: {
			activation: hidden[0]?.activation ?? "tanh",
			hidden_layer_sizes: tuple(hidden.map((layer) => layer.outputs)),
			layer_kinds: tuple(net.layers.map((layer) => layer.kind)),
			loss: lastLayer(net).activation === "softmax" ? "cross_entropy" : "binary_cross_entropy",
		},
		facts: {
			_alpha: 0,
			classes_: describeClasses(classes, `${path}classes_`, tensors),
			loss_curve_: { type: "floats", tensor: `${path}loss_curve_` },
			multilabel: false,
			n_iter_: 0,
			network_: {
				type: "network",
				layers: net.layers.map(({ kind, activation, inputs, outputs }) => {
					return { kind, activation, inputs, neurons: outputs };
				}),
			},
			t_: 0,
		},
	};
}

/** @param {Scaler} scaler @param {object} classifier @param {Tensors} tensors */
function describePipeline({ mean, scale }, classifier, tensors) {
	const facts = { mean_: mean, scale_: scale, var_: scale.map((one) => one * one) };
	const described = Object.entries(facts).map(([name, values]) => {
		tensors.set(`steps.0.${name}`, numbers(Float64Array.from(values), [2]));
		return [name, { type: "array", dtype: "float64", tensor: `steps.0.${name}` }];
	});
	const scaler = {
		type: "fitted",
		class: "StandardScaler",
		parameters: { with_mean: true, with_std: true },
		facts: { ...Object.fromEntries(described), n_features_in_: 2, n_samples_seen_: 1 },
	};
	const steps = [tuple(["standardscaler", scaler]), tuple(["quadraticclassifier", classifier])];
	return { type: "fitted", class: "Pipeline", parameters: { steps }, facts: {} };
}

/**
 * Integers if all names are whole numbers, and otherwise text, four bytes per character.
 * @param {string[]} classes @param {string} name @param {Tensors} tensors
 */
function describeClasses(classes, name, tensors) {
	const entry = { type: "array", tensor: name };
	if (classes.every(isWholeNumber)) {
		const values = BigInt64Array.from(classes, BigInt);
		tensors.set(name, { dtype: "I64", shape: [classes.length], bytes: bytesOf(values) });
		return { ...entry, dtype: "int64" };
	}
	const texts = classes.map((text) => [...text].map((one) => Number(one.codePointAt(0))));
	const width = Math.max(...texts.map((text) => text.length));
	const characters = texts.flatMap((text) => [...text, ...Array(width - text.length).fill(0)]);
	const bytes = bytesOf(Uint32Array.from(characters));
	tensors.set(name, { dtype: "U8", shape: [bytes.length], bytes });
	return { ...entry, dtype: `<U${width}`, length: classes.length };
}

/** @param {unknown[]} items */
function tuple(items) {
	return { type: "tuple", items };
}

/** @param {Float64Array} values @param {number[]} shape @returns {Tensor} */
function numbers(values, shape) {
	return { dtype: "F64", shape, bytes: bytesOf(values) };
}

/** Typed arrays are little-endian on every machine that runs browsers. @param {ArrayBufferView} array */
function bytesOf({ buffer, byteOffset, byteLength }) {
	return new Uint8Array(buffer, byteOffset, byteLength);
}
