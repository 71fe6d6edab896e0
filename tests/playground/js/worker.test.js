/** The training worker, with a stand-in for the page. */
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { test } from "node:test";

import { makeData } from "../../../src/quadric/apps/playground/page/datasets.js";
import { Session } from "../../../src/quadric/apps/playground/page/training_loop.js";
import { DEFAULTS, samplesPerSecond } from "../../../src/quadric/apps/playground/page/settings.js";

const states = new EventEmitter();
const self = { postMessage: (state) => states.emit("state", structuredClone(state)) };
globalThis.self = self;
await import("../../../src/quadric/apps/playground/page/worker.js");

/** Sends a message; returns the answer. */
function send(data) {
	let answer;
	states.once("state", (state) => (answer = state));
	self.onmessage({ data });
	return answer;
}

/** The first state for which the condition holds. */
async function wait(condition) {
	for (;;) {
		const [state] = await once(states, "state", { signal: AbortSignal.timeout(20000) });
		if (condition(state)) return state;
	}
}

function start(changes = {}, more = {}) {
	const settings = { ...DEFAULTS, ...changes };
	const data = makeData(settings);
	return {
		session: new Session(settings, data),
		state: send({ type: "start", run: 7, settings, data, ...more }),
	};
}

test("it starts paused, with the initial network", () => {
	const { session, state } = start({ data: "moons" });
	assert.deepEqual(state, { run: 7, running: false, ...session.state() });
});

test("one sample and one epoch are trained at once", () => {
	const { session } = start({ data: "moons", batch: 4 });
	session.step();
	assert.deepEqual(send({ type: "sample" }).parameters, session.state().parameters);
	const state = send({ type: "epoch" });
	assert.deepEqual([state.epoch, state.samples, state.running], [1, 210, false]);
});

test("it runs, changes its speed, pauses and rewinds", async () => {
	const { state: first } = start({ speed: 1 });
	assert.equal(send({ type: "run" }).running, true);
	send({ type: "speed", speed: 0 });
	const later = await wait(({ epoch }) => epoch > 100);
	assert.equal(later.running, true);
	assert.equal(later.accuracy.train, 1);
	const paused = send({ type: "pause" });
	assert.equal(paused.running, false);
	await new Promise((resolve) => setTimeout(resolve, 100));
	assert.equal(send({ type: "pause" }).samples, paused.samples);
	assert.deepEqual(send({ type: "rewind" }), first);
});

test("the speed is kept", async () => {
	start({ speed: 100 });
	const before = performance.now();
	send({ type: "run" });
	const state = await wait(({ samples }) => samples >= 50);
	const seconds = (performance.now() - before) / 1000;
	send({ type: "pause" });
	assert.ok(state.samples <= 100 * seconds + 1, `${state.samples} in ${seconds} s`);
});

test("automatic speed: ten epochs per second, and at least 100 samples", async () => {
	assert.equal(DEFAULTS.speed, "auto");
	const wanted = [4, 10, 210, 1e5].map((count) => samplesPerSecond("auto", count));
	assert.deepEqual(wanted, [100, 100, 2100, 1e6]);
	assert.deepEqual([samplesPerSecond(0, 210), samplesPerSecond(1, 210)], [0, 1]);
	start({ data: "moons", size: 2000 }); // 1400 for training
	send({ type: "run" });
	const before = performance.now();
	const state = await wait(({ samples }) => samples >= 1400);
	const seconds = (performance.now() - before) / 1000;
	send({ type: "pause" });
	assert.ok(state.samples <= 14000 * seconds + 1, `${state.samples} in ${seconds} s`);
});

test("points that change while it runs are trained on as often as those before", () => {
	const clock = performance.now;
	let time = 0;
	performance.now = () => time++; // a step takes a millisecond
	const begin = (samples) => start({ data: "moons" }, { samples, running: true });
	const { session, state } = begin(25);
	const many = begin(1e9).state;
	send({ type: "pause" });
	performance.now = clock;
	for (let i = 0; i < 25; i++) session.step();
	assert.deepEqual(state, { run: 7, running: true, ...session.state() });
	assert.ok(many.running && many.samples > 30 && many.samples <= 40, many.samples);
});

test("a batch that is larger than the samples of a second is trained, too", async () => {
	start({ data: "moons", speed: 100, batch: 128 });
	send({ type: "run" });
	const state = await wait(({ samples }) => samples > 0);
	send({ type: "pause" });
	assert.equal(state.samples, 128);
});

test("a given number of samples is trained at once, as if step by step", async () => {
	const { session } = start({ data: "circles", speed: 1 }, { samples: 1000 });
	for (let i = 0; i < 1000; i++) session.step();
	const state = await wait(({ running }) => !running);
	assert.equal(state.samples, 1000);
	assert.deepEqual(state.parameters, session.state().parameters);
	assert.deepEqual(state.curve, session.state().curve);
});

test("given parameters and a given scaler are used", () => {
	const { session } = start();
	const parameters = session.net.theta.map((_, i) => i);
	const scaler = { mean: [1, 2], scale: [3, 4] };
	const { state } = start({}, { parameters, scaler });
	assert.deepEqual(state.parameters, parameters);
	const same = new Session(DEFAULTS, makeData(DEFAULTS), { parameters, scaler });
	assert.equal(state.loss.train, same.state().loss.train);
});

test("it stops when training diverges", async () => {
	start({ data: "clusters", standardize: false, rate: 10, init: "normal", speed: 0 });
	send({ type: "run" });
	const state = await wait(({ diverged }) => diverged !== null);
	assert.equal(state.running, false);
	assert.ok(state.parameters.every(Number.isFinite));
});
