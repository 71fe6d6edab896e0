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
	const isSorted = sortedNames(classes).every((name, k) => name === classes[k]);
	expect(isSorted, "Python needs the names of the classes in alphabetical order. Rename them.");
	/** @type {Tensors} */
	const tensors = new Map();
	/** @type {Store} */
	const store = (name, dtype, { buffer, byteOffset, byteLength }, shape) => {
		const bytes = new Uint8Array(buffer, byteOffset, byteLength);
		tensors.set(name, { dtype, shape: shape ?? [bytes.length], bytes });
		return name;
	};
	const classifier = describeClassifier(net, classes, scaler ? "steps.1." : "", store);
	const model = scaler ? describePipeline(scaler, classifier, store) : classifier;
	const versions = { playground: "1" };
	return writeContainer({ extra: { columns: features }, model, versions }, tensors);
}

/**
 * @param {Network} net @param {string[]} classes
 * @param {string} path the place of the classifier in the file
 * @param {Store} store
 */
function describeClassifier(net, classes, path, store) {
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
		class: "QuadraticClassifier",
		parameters: {
			activation: hidden[0]?.activation ?? "tanh",
			hidden_layer_sizes: tuple(hidden.map((layer) => layer.outputs)),
			layer_kinds: tuple(net.layers.map((layer) => layer.kind)),
			loss: lastLayer(net).activation === "softmax" ? "cross_entropy" : "binary_cross_entropy",
		},
		facts: {
			...{ _alpha: 0, multilabel: false, n_iter_: 0, t_: 0 },
			classes_: describeClasses(classes, `${path}classes_`, store),
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

/** @param {Scaler} scaler @param {object} classifier @param {Store} store */
function describePipeline({ mean, scale }, classifier, store) {
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
	const steps = [tuple(["standardscaler", scaler]), tuple(["quadraticclassifier", classifier])];
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
