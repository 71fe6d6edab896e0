/** Model files. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { readModel } from "../../../src/quadric/playground/page/model_reader.js";
import { writeModel } from "../../../src/quadric/playground/page/model_writer.js";
import { initialNetwork } from "../../../src/quadric/playground/page/problem.js";
import { DEFAULTS } from "../../../src/quadric/playground/page/settings.js";

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

test("classes that are not in Python's order are refused", async () => {
	const classes = ["b", "c", "a"];
	await assert.rejects(() => writeModel({ ...model, classes, scaler: null }), /alphabetical order/);
});
