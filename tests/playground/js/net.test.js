/** The equations agree with the parity fixture, which quadric.reference generates. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import {
	copyNetwork,
	emptyNetwork,
	logits,
	outputs,
} from "../../../src/quadric/apps/playground/page/net.js";
import { evaluate, makeTrainer } from "../../../src/quadric/apps/playground/page/optimizers.js";
import { gradients } from "./gradients.js";

const FIXTURE = new URL("../../fixtures/parity.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(FIXTURE, "utf8"));

/** The largest difference between a network and the fixture's arrays. */
function difference(net, parameters) {
	let largest = 0;
	net.layers.forEach((layer, l) => {
		for (const field of ["W", "b", "Q", "U", "c"]) {
			const wanted = parameters[`layers.${l}.${field}`];
			assert.equal(wanted === undefined, layer[field] === null);
			wanted?.flat().forEach((value, i) => {
				largest = Math.max(largest, Math.abs(layer[field][i] - value));
			});
		}
	});
	return largest;
}

function network({ kind, activations, parameters }) {
	const shapes = activations.map((activation, l) => {
		return { kind, activation, outputs: parameters[`layers.${l}.b`].length };
	});
	const net = emptyNetwork(parameters["layers.0.W"][0].length, shapes);
	net.layers.forEach((layer, l) => {
		for (const field of ["W", "b", "Q", "U", "c"]) {
			layer[field]?.set(parameters[`layers.${l}.${field}`].flat());
		}
	});
	return net;
}

assert.equal(cases.length, 18);
for (const parity of cases) {
	const X = Float64Array.from(parity.X.flat());
	const Y = Float64Array.from(parity.Y.flat());
	const name = `${parity.kind}, ${parity.loss}, l2=${parity.l2}`;

	test(`forward and gradients: ${name}`, () => {
		const net = network(parity);
		parity.X.forEach((x, i) => {
			for (const [compute, wanted] of [
				[logits, parity.logits[i]],
				[outputs, parity.outputs[i]],
			]) {
				compute(net, x).forEach((value, k) => assert.ok(Math.abs(value - wanted[k]) < 1e-13));
			}
		});
		assert.ok(Math.abs(evaluate(net, X, Y).loss - parity.mean_loss) < 1e-13);
		assert.ok(difference(gradients(net, X, Y).gradients, parity.mean_gradients) < 1e-13);
	});

	test(`200 steps of SGD: ${name}`, () => {
		const net = network(parity);
		const { rate, steps } = parity.sgd;
		const trainer = makeTrainer(net, { optimizer: "sgd", rate, l2: parity.l2 });
		const row = new Int32Array(1);
		for (let i = 0; i < steps; i++) {
			row[0] = i % parity.X.length;
			assert.ok(trainer.step(X, Y, row));
		}
		assert.ok(difference(net, parity.sgd.parameters) < 1e-11);
	});
}
