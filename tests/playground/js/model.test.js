/** Model files. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { readModel } from "../../../src/quadric/apps/playground/page/model_reader.js";
import { writeModel } from "../../../src/quadric/apps/playground/page/model_writer.js";
import { copyNetwork } from "../../../src/quadric/apps/playground/page/net.js";
import { initialNetwork } from "../../../src/quadric/apps/playground/page/problem.js";
import {
	readContainer,
	writeContainer,
} from "../../../src/quadric/apps/playground/page/safetensors.js";
import { DEFAULTS } from "../../../src/quadric/apps/playground/page/settings.js";

const net = initialNetwork({ ...DEFAULTS, output: "softmax", lastKind: "reduced" }, 3);
const model = { net, features: ["Länge [cm]", "class"], classes: ["1", "2", "10"] };

test("a model that is written and read again is the same", async () => {
	for (const scaler of [null, { mean: [1, 2], scale: [3, 0.4] }]) {
		for (const classes of [model.classes, ["Löwe 🙂", "ape", "zebra"]]) {
			const { net: read, ...rest } = await readModel(
				await writeModel({ ...model, classes, scaler }),
			);
			assert.deepEqual(read, net);
			assert.deepEqual(rest, { scaler, classes, features: model.features });
		}
	}
});

test("a model that is trained while it is written is that of the beginning", async () => {
	const trained = copyNetwork(net);
	const scaler = { mean: [1, 2], scale: [3, 4] };
	const written = writeModel({ ...model, net: trained, scaler });
	const training = setInterval(() => trained.theta.forEach((_, i) => trained.theta[i]++), 0);
	const read = await readModel(await written).finally(() => clearInterval(training));
	trained.theta[0]++;
	assert.deepEqual(read.net.theta, net.theta);
	assert.notDeepEqual(trained.theta, net.theta);
});

test("classes that are not in Python's order are refused", async () => {
	const classes = ["b", "c", "a"];
	await assert.rejects(() => writeModel({ ...model, classes, scaler: null }), /alphabetical order/);
});

/** The file of a model whose description was changed. */
async function forged(change) {
	const classes = ["ape", "lion", "zebra"];
	const file = await writeModel({ ...model, classes, scaler: null });
	const { description, tensors } = await readContainer(file);
	change(description, tensors);
	return writeContainer(description, tensors);
}

test("test_faults_R8_a_length_that_does_not_fit_its_tensor_is_refused_at_once", async () => {
	for (const change of [
		(facts) => (facts.classes_.length = 2 ** 31),
		(facts) => Object.assign(facts.classes_, { length: 2 ** 31, dtype: "<U0" }),
		(facts) => Object.assign(facts.classes_, { dtype: "object", others: [[2 ** 31, "a"]] }),
	]) {
		const file = await forged(({ model: { facts } }, tensors) => {
			const name = facts.classes_.tensor;
			const lengths = { dtype: "U8", shape: [1], bytes: Uint8Array.of(1) };
			change(facts);
			if (facts.classes_.dtype === "object") tensors.set(`${name}.lengths`, lengths);
			if (facts.classes_.dtype === "<U0") {
				tensors.set(name, { dtype: "U8", shape: [0], bytes: new Uint8Array() });
			}
		});
		await assert.rejects(() => readModel(file), /^Error: The file is damaged/);
	}
});

test("test_faults_R8_a_forged_file_is_refused_in_the_words_of_the_page", async () => {
	for (const change of [
		(description) => (description.model = null),
		(description) => delete description.model.facts,
		(description) => (description.model.facts.network_.layers = {}),
		(description) => (description.model.facts.network_.layers = []),
		(description) => (description.model.facts.network_.layers[0].neurons = 1.5),
		(description) => delete description.model.facts.classes_.dtype,
		(description) => Object.assign(description.model, { class: "Pipeline", parameters: {} }),
		(description) => (description.extra = null),
	]) {
		const file = await forged(change);
		const result = await readModel(file).then(
			() => "was read",
			(error) => error.message,
		);
		assert.match(result, /^was read$|^The (file|page) .*\.$/);
	}
});
