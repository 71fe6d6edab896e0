/** The equations agree with the parity fixture, which quadric.reference generates. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { createNetwork } from "../../../src/quadric/apps/playground/page/initial_values.js";
import {
	copyNetwork,
	emptyNetwork,
	logits,
	outputs,
	strengths,
} from "../../../src/quadric/apps/playground/page/net.js";
import { evaluate, makeTrainer } from "../../../src/quadric/apps/playground/page/optimizers.js";
import { Random } from "../../../src/quadric/apps/playground/page/random.js";
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

test("a connection is as strong as the largest coefficient with its input", () => {
	/** The strengths of a neuron with these parameters. */
	const found = (kind, ...theta) => {
		const net = emptyNetwork(2, [{ kind, outputs: 1, activation: "identity" }]);
		net.theta.set(theta);
		return Array.from(strengths(net.layers[0]));
	};
	assert.deepEqual(found("linear", 3, -4, 9), [3, -4]);
	assert.deepEqual(found("quadratic", 1, -7, 2, -1.5, 5, 9), [-3, -7]); // -3 x1 x2
	assert.deepEqual(found("quadratic", 1, 0, -2, 0, 5, 9), [-2, 5]);
	assert.deepEqual(found("reduced", 1, 2, 3, -4, 5, 6), [21, -8]); // (x1 + 2 x2 + 5)(3 x1 - 4 x2 + 6)
});

test("the strengths of a layer are those of its expanded polynomials", () => {
	for (const kind of ["linear", "quadratic", "reduced"]) {
		const shapes = [{ kind, outputs: 4, activation: "identity" }];
		const net = createNetwork(3, shapes, { init: "normal", scale: 1 }, new Random(3));
		const all = strengths(net.layers[0]);
		const at = (...x) => logits(net, x);
		const unit = (i, j) => [0, 1, 2].map((l) => (l === i ? 1 : 0) + (l === j ? 1 : 0));
		const origin = at(0, 0, 0);
		for (let k = 0; k < 4; k++) {
			for (let i = 0; i < 3; i++) {
				const plus = at(...unit(i))[k] - origin[k];
				const minus = at(...unit(i).map((x) => -x))[k] - origin[k];
				const terms = [(plus - minus) / 2, (plus + minus) / 2];
				for (const j of [0, 1, 2].filter((other) => other !== i)) {
					terms.push(at(...unit(i, j))[k] - at(...unit(i))[k] - at(...unit(j))[k] + origin[k]);
				}
				const largest = terms.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
				assert.ok(Math.abs(all[3 * k + i] - largest) < 1e-12);
			}
		}
	}
});
