/**
 * Reads the `.quadric` files of the page and of Python: a QuadraticClassifier, a
 * QuadraticLogisticRegression or a Network with two features, with or without a StandardScaler.
 */

import { expect } from "./expect.js";
import { emptyNetwork, FIELDS, lastLayer } from "./net.js";
import { readContainer } from "./safetensors.js";
import { KINDS, LIMITS } from "./settings.js";

const ACTIVATIONS = ["identity", "logistic", "tanh", "relu", "softmax"];
const CLASSIFIERS = ["QuadraticClassifier", "QuadraticLogisticRegression"];

/**
 * Throws an Error with a message for the user if the page cannot show the model.
 * @param {Uint8Array} bytes @returns {Promise<Model>}
 */
export async function readModel(bytes) {
	try {
		return await read(bytes);
	} catch (error) {
		const isKnown = error instanceof Error && error.constructor === Error;
		expect(isKnown, "The file is damaged, or the page cannot show its model.");
		throw error;
	}
}

/** @param {Uint8Array} bytes @returns {Promise<Model>} */
async function read(bytes) {
	const { description, tensors } = await readContainer(bytes);
	const { scaler, last } = takeApart(description.model);
	const isNetwork = last.type === "network";
	const isClassifier = isNetwork || CLASSIFIERS.includes(last.class);
	expect(isClassifier, `The page shows classifiers. The file holds a ${last.class}.`);
	expect(!last.facts?.multilabel, "The page does not show multi-label models.");
	const net = readNetwork(isNetwork ? last : last.facts.network_, tensors);
	const numbered = Array.from({ length: Math.max(lastLayer(net).outputs, 2) }, (_, k) => String(k));
	const classes = isNetwork
		? (description.extra.classes ?? numbered).map(String)
		: readArray(last.facts.classes_, tensors).map(String);
	checkClasses(net, classes);
	const named = (scaler ?? last).facts?.feature_names_in_;
	const features = named ? readArray(named, tensors) : description.extra.columns;
	const names = Array.isArray(features) && features.length === 2 ? features : ["x1", "x2"];
	return {
		net,
		scaler: scaler && readScaler(scaler, tensors),
		classes,
		features: names.map(String),
	};
}

/** The scaler and the last step of a model. @param {any} model */
function takeApart(model) {
	if (model.class !== "Pipeline") return { scaler: null, last: model };
	/** @type {any[]} */
	const steps = model.parameters.steps.map((/** @type {any} */ step) => step.items[1]);
	const names = steps.slice(0, -1).map((step) => step.class);
	const isKnown = names.length < 2 && names.every((name) => name === "StandardScaler");
	expect(isKnown, `The page reads models with one StandardScaler only, not ${names.join(", ")}.`);
	return { scaler: names.length ? steps[0] : null, last: steps[steps.length - 1] };
}

/** @param {{layers: any[]}} described @param {Tensors} tensors */
function readNetwork({ layers }, tensors) {
	const [{ inputs }] = layers;
	expect(inputs === 2, `The page shows two features. This model has ${inputs}.`);
	const { hiddenLayers, neurons: most } = LIMITS;
	expect(layers.length <= hiddenLayers + 1, `The page shows up to ${hiddenLayers} hidden layers.`);
	/** @type {LayerShape[]} */
	const shapes = layers.map(({ kind, activation, neurons }) => {
		const isKnown = KINDS.includes(kind) && ACTIVATIONS.includes(activation);
		expect(isKnown, `The page does not know ${kind} layers with activation ${activation}.`);
		const fits = neurons >= 1 && neurons <= most;
		expect(fits, `The page shows up to ${most} neurons per layer, not ${neurons}.`);
		return { kind, activation, outputs: neurons };
	});
	const net = emptyNetwork(2, shapes);
	net.layers.forEach((layer, l) => {
		for (const field of FIELDS[layer.kind]) {
			const array = /** @type {Float64Array} */ (layer[field]);
			array.set(readTensor(`layers.${l}.${field}`, tensors, array.length));
		}
	});
	return net;
}

/** @param {Network} net @param {string[]} classes */
function checkClasses(net, classes) {
	const { activation, outputs } = lastLayer(net);
	const isKnown = activation === "logistic" || activation === "softmax";
	expect(isKnown, `The page shows sigmoid and softmax outputs, not ${activation}.`);
	const count = classes.length;
	const fits = count >= 2 && count <= LIMITS.classes;
	expect(fits, `The page shows 2 to ${LIMITS.classes} classes, not ${count}.`);
	const expected = activation === "logistic" && count === 2 ? 1 : count;
	expect(outputs === expected, `The page cannot show ${outputs} outputs for ${count} classes.`);
}

/** @param {any} step @param {Tensors} tensors @returns {Scaler} */
function readScaler({ parameters, facts }, tensors) {
	/** @param {any} entry */
	const values = (entry) => readArray(entry, tensors).map(Number);
	return {
		mean: parameters.with_mean === false ? [0, 0] : values(facts.mean_),
		scale: parameters.with_std === false ? [1, 1] : values(facts.scale_),
	};
}

/**
 * The array that an entry of the description names.
 * @param {any} entry @param {Tensors} tensors @returns {(string | number)[]}
 */
function readArray(entry, tensors) {
	const { tensor: name, dtype } = entry;
	if (dtype === "object") return readObjects(entry, tensors);
	if (!dtype.startsWith("<U")) return Array.from(readTensor(name, tensors));
	const characters = new Uint32Array(find(name, tensors).bytes.buffer);
	const width = Number(dtype.slice(2));
	const { length } = entry;
	expectFit(width > 0 && length * width === characters.length, name);
	return Array.from({ length }, (_, i) => {
		const text = characters.subarray(i * width, (i + 1) * width);
		return String.fromCodePoint(...text).replace(/\0+$/, "");
	});
}

/**
 * Strings in one tensor and their lengths in another; other values are in the description.
 * @param {any} entry @param {Tensors} tensors
 */
function readObjects({ tensor: name, others }, tensors) {
	const { bytes } = find(name, tensors);
	let place = 0;
	const values = Array.from(readTensor(`${name}.lengths`, tensors), (length) => {
		return new TextDecoder().decode(bytes.subarray(place, (place += length)));
	});
	for (const [i, value] of others) {
		expectFit(i in values, name);
		values[i] = String(value?.value ?? value);
	}
	return values;
}

/**
 * @param {string} name @param {Tensors} tensors @param {number} [length]
 * @returns {number[]}
 */
function readTensor(name, tensors, length) {
	const { dtype, bytes } = find(name, tensors);
	const { buffer } = bytes;
	const values = {
		F64: () => [...new Float64Array(buffer)],
		F32: () => [...new Float32Array(buffer)],
		I64: () => [...new BigInt64Array(buffer)].map(Number),
		U8: () => [...new Uint8Array(buffer)],
		BOOL: () => [...new Uint8Array(buffer)],
	}[dtype]();
	expectFit(values.length === (length ?? values.length) && values.every(Number.isFinite), name);
	return values;
}

/** @param {boolean} fits @param {string} name */
function expectFit(fits, name) {
	expect(fits, `The file is damaged: ${name} has the wrong size, or is not finite.`);
}

/** @param {string} name @param {Tensors} tensors */
function find(name, tensors) {
	const tensor = tensors.get(name);
	expect(tensor, `The file is damaged: ${name} is missing.`);
	return tensor;
}
