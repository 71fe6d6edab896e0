/** Data, problems and training runs. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { makeData } from "../../../src/quadric/apps/playground/page/datasets.js";
import { createNetwork } from "../../../src/quadric/apps/playground/page/initial_values.js";
import { makeProblem } from "../../../src/quadric/apps/playground/page/problem.js";
import { Random } from "../../../src/quadric/apps/playground/page/random.js";
import { Session } from "../../../src/quadric/apps/playground/page/training_loop.js";
import { CONTROLS, DEFAULTS, KINDS } from "../../../src/quadric/apps/playground/page/settings.js";
import { evaluate, makeTrainer } from "../../../src/quadric/apps/playground/page/optimizers.js";
import { gradients } from "./gradients.js";

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const close = (actual, wanted, tolerance) => {
	assert.ok(Math.abs(actual - wanted) <= tolerance, `${actual} is not ${wanted}`);
};

function session(changes = {}) {
	const settings = { ...DEFAULTS, ...changes };
	return new Session(settings, makeData(settings));
}

function train(session, epochs) {
	while (session.run.epoch < epochs && !session.run.diverged) session.step();
	return session.state();
}

test("random numbers have the right distributions and never change", () => {
	const random = new Random(7, "test");
	const normal = Array.from({ length: 20000 }, () => random.normal());
	close(mean(normal), 0, 0.02);
	close(mean(normal.map((z) => z * z)), 1, 0.03);
	close(mean(normal.map((z) => z ** 4)), 3, 0.2);
	const uniform = Array.from({ length: 20000 }, () => random.uniform());
	close(mean(uniform), 0.5, 0.01);
	close(Math.max(...uniform), 1, 0.001);
	const order = Int32Array.from({ length: 100 }, (_, i) => i);
	random.shuffle(order);
	assert.notEqual(order[0] + order[99], 99);
	assert.deepEqual(
		Array.from(order).sort((a, b) => a - b),
		Array.from({ length: 100 }, (_, i) => i),
	);
	const [one, other] = [new Random(7, "test"), new Random(7, "other")];
	assert.equal(one.normal(), normal[0]);
	assert.notEqual(other.normal(), normal[0]);
});

test("every data set has the points that were asked for", () => {
	const names = CONTROLS[0].choices.map(({ value }) => value);
	assert.deepEqual(names.splice(-2), ["points", "csv"]);
	assert.equal(names.length, 10);
	for (const data of names) {
		const settings = { data, noise: 0.2, seed: 3, size: 600 };
		const { X, classes, names } = makeData(settings);
		const count = data === "xor" ? 4 : 600;
		assert.equal(X.length, 2 * count);
		assert.ok(X.every(Number.isFinite));
		names.forEach((_, k) => {
			assert.equal(classes.filter((one) => one === k).length, count / names.length);
		});
		assert.deepEqual(makeData(settings).X, X);
		const other = makeData({ ...settings, seed: 4 });
		assert.equal(
			data === "xor",
			other.X.every((x, i) => x === X[i]),
		);
	}
});

test("the six clusters are the paper's", () => {
	const { X, classes } = makeData({ data: "clusters", noise: 0.2, seed: 0, size: 12000 });
	const third = Array.from(X.keys()).filter((i) => i % 2 === 0 && classes[i / 2] === 5);
	const [x, y] = [third.map((i) => X[i] + 16), third.map((i) => X[i + 1] - 10)];
	close(mean(x), 0, 0.08);
	close(mean(y), 0, 0.08);
	close(mean(x.map((one) => one * one)), 1, 0.1);
	close(mean(x.map((one, i) => one * y[i])), 0.3, 0.08);
});

test("drawn points are data, and a class without points has an output", () => {
	const X = Float64Array.of(1, 3, 2, 4);
	const points = { X, classes: Int32Array.of(2, 0), names: ["a", "b", "c"], features: [] };
	const settings = { ...DEFAULTS, data: "points", points };
	assert.equal(makeData(settings), points);
	assert.deepEqual(Array.from(makeProblem(points, settings).Y), [0, 0, 1, 1, 0, 0]);
});

test("the problem is split by class, standardized on the training set, and encoded", () => {
	const data = makeData({ data: "clusters", noise: 0.2, seed: 0, size: 60 });
	const problem = makeProblem(data, { ...DEFAULTS, test: 0.3 });
	assert.equal(problem.test.length, 18);
	assert.equal(problem.train.length, 42);
	const all = [...problem.train, ...problem.test].sort((a, b) => a - b);
	assert.deepEqual(
		all,
		Array.from({ length: 60 }, (_, i) => i),
	);
	for (const j of [0, 1]) {
		const column = Array.from(problem.train, (row) => problem.X[2 * row + j]);
		close(mean(column), 0, 1e-12);
		close(mean(column.map((x) => x * x)), 1, 1e-12);
		close(problem.X[j] * problem.scaler.scale[j] + problem.scaler.mean[j], data.X[j], 1e-12);
	}
	assert.deepEqual(Array.from(problem.Y.slice(6, 12)), [0, 1, 0, 0, 0, 0]);
	const scaler = { mean: [1, 2], scale: [3, 4] };
	assert.equal(makeProblem(data, DEFAULTS, scaler).X[3], (data.X[3] - 2) / 4);
	assert.deepEqual(makeProblem(data, { ...DEFAULTS, standardize: false }).X, data.X);
});

test("few points are not split, and a class of one point stays in the training set", () => {
	const xor = makeData({ data: "xor", noise: 0, seed: 0, size: 4 });
	assert.equal(makeProblem(xor, { ...DEFAULTS, test: 0.5 }).test.length, 0);
	const X = Float64Array.from({ length: 40 }, (_, i) => i);
	const classes = Int32Array.from({ length: 20 }, (_, i) => (i === 7 ? 1 : 0));
	const { train } = makeProblem({ X, classes, names: ["a", "b"] }, { ...DEFAULTS, test: 0.9 });
	assert.ok(train.includes(7));
});

test("initial values have the variances of quadric.core", () => {
	const shapes = (kind) => [{ kind, outputs: 6000, activation: "tanh" }];
	const variance = (array) => mean(Array.from(array, (value) => value * value));
	const create = (kind, init, scale) =>
		createNetwork(2, shapes(kind), { init, scale }, new Random(1));
	const [quadratic] = create("quadratic", "glorot").layers;
	close(variance(quadratic.W), 1 / 4, 0.01);
	close(variance(quadratic.Q), 1 / 20, 0.002);
	assert.ok(quadratic.b.every((value) => value === 0));
	close(variance(create("reduced", "glorot").layers[0].U), 1 / Math.sqrt(8), 0.01);
	const [drawn] = create("quadratic", "normal", 0.5).layers;
	close(variance(drawn.b), 0.25, 0.015);
	close(variance(drawn.Q.filter((_, i) => i % 3 === 1)), 0.125, 0.01);
	close(variance(drawn.Q.filter((_, i) => i % 3 !== 1)), 0.25, 0.015);
	assert.deepEqual(
		Array.from(create("quadratic", "identity").theta.slice(12000, 12003)),
		[1, 0, 1],
	);
	const [relinear] = create("reduced", "relinear").layers;
	assert.ok(relinear.U.every((value) => value === 0) && relinear.c.every((value) => value === 1));
});

test("gradients with a penalty agree with central differences, for mixed kinds", () => {
	const random = new Random(5);
	for (const activation of ["tanh", "logistic", "relu", "identity"]) {
		const shapes = [...KINDS, "quadratic"].map((kind) => ({ kind, outputs: 3, activation }));
		shapes.push({ kind: "reduced", outputs: 3, activation: "softmax" });
		const net = createNetwork(2, shapes, { init: "normal", scale: 0.5 }, random);
		const X = Float64Array.from({ length: 10 }, () => random.normal());
		const Y = Float64Array.from({ length: 15 }, (_, i) =>
			i % 3 === Math.floor(i / 3) % 3 ? 1 : 0,
		);
		const l2 = 0.1;
		const { gradients: found } = gradients(net, X, Y, l2);
		net.theta.forEach((value, i) => {
			const [above, below] = [1e-6, -1e-6].map((h) => {
				net.theta[i] = value + h;
				return gradients(net, X, Y, l2).loss;
			});
			net.theta[i] = value;
			close(found.theta[i], (above - below) / 2e-6, 1e-7 * Math.max(1, Math.abs(found.theta[i])));
		});
	}
});

test("Adam and batches reduce the loss", () => {
	for (const changes of [{ optimizer: "adam", rate: 0.01 }, { batch: 16 }]) {
		const run = session({ data: "circles", ...changes });
		const before = run.losses().loss.train;
		assert.ok(train(run, 30).loss.train < 0.5 * before);
	}
});

test("a step of Adam has the size of the rate", () => {
	const random = new Random(1);
	const shapes = [{ kind: "linear", outputs: 1, activation: "logistic" }];
	const net = createNetwork(2, shapes, { init: "glorot" }, random);
	const before = net.theta.slice();
	const trainer = makeTrainer(net, { optimizer: "adam", rate: 0.25, l2: 0 });
	trainer.step(Float64Array.of(1, 2), Float64Array.of(1), Int32Array.of(0));
	net.theta.forEach((value, i) => close(value - before[i], 0.25, 1e-6));
});

test("one quadratic neuron learns XOR", () => {
	for (let seed = 0; seed < 20; seed++) {
		const state = train(session({ seed }), 60);
		assert.equal(state.accuracy.train, 1, `seed ${seed}`);
	}
});

test("a number is standardized, predicted and scored by R²", () => {
	const run = session({ data: "saddle", noise: 0, output: "softmax" }); // has no effect
	const { problem, net } = run;
	const [middle, scale] = problem.scaler.target;
	const { values } = makeData({ ...DEFAULTS, data: "saddle", noise: 0 });
	problem.Y.forEach((y, i) => close(y * scale + middle, values[i], 1e-12));
	const standard = Array.from(problem.train, (row) => problem.Y[row]);
	close(mean(standard), 0, 1e-12);
	close(mean(standard.map((y) => y * y)), 1, 1e-12);
	assert.equal(net.layers[0].activation, "identity");
	const { loss, accuracy } = train(run, 30);
	close(accuracy.train, 1 - 2 * loss.train, 1e-12); // of variance 1
	assert.ok(accuracy.train > 0.99 && accuracy.test > 0.99);
	const line = train(session({ data: "saddle", noise: 0, lastKind: "linear" }), 30);
	assert.ok(line.accuracy.test < 0.2);
	const hills = { data: "hills", layers: [{ kind: "quadratic", outputs: 6 }] };
	assert.ok(train(session(hills), 60).accuracy.test > 0.85);
});

test("diverging regression is stopped", () => {
	const run = session({ data: "saddle", rate: 3 });
	const state = train(run, 100);
	assert.ok(state.diverged !== null && state.parameters.every(Number.isFinite));
});

test("twelve quadratic neurons learn the six clusters", () => {
	const layers = [{ kind: "quadratic", outputs: 12 }];
	const state = train(session({ data: "clusters", size: 600, layers, output: "softmax" }), 20);
	assert.ok(state.accuracy.train > 0.99 && state.accuracy.test > 0.99);
});

test("the same settings give the same network, also after rewinding", () => {
	const [one, other] = [session({ data: "moons" }), session({ data: "moons" })];
	const first = train(one, 3);
	assert.deepEqual(train(other, 3).parameters, first.parameters);
	one.rewind();
	assert.equal(one.state().samples, 0);
	assert.deepEqual(train(one, 3), first);
	assert.notDeepEqual(train(session({ data: "moons", seed: 2 }), 3).parameters, first.parameters);
});

test("divergence is reported, and the last good state is restored", () => {
	const run = session({ data: "clusters", standardize: false, rate: 3, init: "normal" });
	const start = run.state().loss.train;
	const state = train(run, 1000);
	assert.equal(state.diverged.rate, 3);
	assert.equal(state.diverged.suggestedRate, 1);
	assert.ok(state.diverged.samples > state.samples);
	assert.ok(state.parameters.every(Number.isFinite));
	assert.ok(state.loss.train <= 10 * Math.max(start, 6 * Math.LN2));
	assert.ok(Array.from(state.curve).every((value) => Number.isFinite(value)));
	run.step();
	assert.equal(run.state().samples, state.samples);
	run.rewind();
	assert.equal(run.state().diverged, null);
});

test("the curves of much data have points within the first epoch", () => {
	const points = makeData({ ...DEFAULTS, data: "moons", size: 8000 });
	const run = new Session({ ...DEFAULTS, data: "points", test: 0, batch: 8 }, points);
	const { curve } = train(run, 3);
	const epochs = Array.from(curve).filter((_, i) => i % 5 === 0);
	assert.deepEqual(epochs, [0, 62 / 1000, 1 / 8, 1 / 4, 1 / 2, 1, 2, 3]);
});

test("the curves stay short", () => {
	const { curve } = train(session(), 3000);
	const epochs = Array.from(curve).filter((_, i) => i % 5 === 0);
	assert.ok(epochs.length <= 600 && epochs.length > 300);
	assert.equal(epochs[0], 0);
	assert.deepEqual(new Set(epochs.slice(1).map((epoch, i) => epoch - epochs[i])), new Set([8]));
});

test("the mean loss is that of the formulas", () => {
	const shapes = [{ kind: "linear", outputs: 1, activation: "logistic" }];
	const net = createNetwork(2, shapes, { init: "normal", scale: 0 }, new Random(1));
	net.theta.set([1, 0, 0.5]);
	close(
		evaluate(net, Float64Array.of(1, 9), Float64Array.of(1)).loss,
		Math.log(1 + Math.exp(-1.5)),
		1e-15,
	);
	net.theta.set([1e4, 0, 0]);
	assert.equal(evaluate(net, Float64Array.of(1, 9), Float64Array.of(0)).loss, 1e4);
});
