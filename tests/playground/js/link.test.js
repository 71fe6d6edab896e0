/** Settings as links. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { fromHash, toHash } from "../../../src/quadric/apps/playground/page/link.js";
import { CONTROLS, DEFAULTS } from "../../../src/quadric/apps/playground/page/settings.js";

const CHANGED = {
	...{ data: "clusters", noise: 0.35, size: 1234, test: 0.1, seed: 4294967295, standardize: false },
	...{ lastKind: "reduced", activation: "relu", output: "softmax", init: "normal", scale: 0.015 },
	...{ optimizer: "adam", batch: 32, rate: 0.0001, l2: 0.3, speed: 0, compare: true, lesson: 5 },
	samples: 123456,
};
const POINTS = {
	X: Float64Array.of(0.1 + 0.2, 1 / 3, -1e-7, 5, 1e21, -0.001),
	classes: Int32Array.of(0, 1, 0),
	names: ["a,b;c&d=e#%", "süß 🙂"],
	features: ["Länge [cm]", "x2"],
};

test("the default settings are the empty link", () => {
	assert.deepEqual(toHash(DEFAULTS), { hash: "", complete: true });
	for (const hash of ["", "#"])
		assert.deepEqual(fromHash(hash), { settings: DEFAULTS, problems: [] });
});

test("every setting survives", () => {
	assert.deepEqual(Object.keys(CHANGED).sort(), CONTROLS.map(({ name }) => name).sort());
	const layers = [
		{ kind: "quadratic", outputs: 12 },
		{ kind: "linear", outputs: 1 },
		{ kind: "reduced", outputs: 7 },
	];
	const settings = { ...DEFAULTS, ...CHANGED, layers };
	for (const name of Object.keys(settings)) {
		if (name !== "points") assert.notDeepEqual(settings[name], DEFAULTS[name], name);
	}
	const { hash } = toHash(settings);
	assert.deepEqual(fromHash(`#${hash}`), { settings, problems: [] });
});

test("points survive exactly, with any names", () => {
	const settings = { ...DEFAULTS, data: "points", points: POINTS };
	const { hash, complete } = toHash(settings);
	assert.ok(complete);
	assert.equal(new URL(`http://localhost/#${hash}`).hash, `#${hash}`);
	assert.deepEqual(fromHash(hash), { settings, problems: [] });
});

test("numbers to predict survive exactly", () => {
	const values = Float64Array.of(1e6 / 3, -1e-7, 2);
	const points = { ...POINTS, classes: new Int32Array(3), names: ["price, €"], values };
	const settings = { ...DEFAULTS, data: "csv", points };
	assert.deepEqual(fromHash(toHash(settings).hash), { settings, problems: [] });
});

test("an empty plane survives, with its classes", () => {
	const empty = { ...POINTS, X: new Float64Array(0), classes: new Int32Array(0) };
	const settings = { ...DEFAULTS, data: "points", points: empty };
	assert.deepEqual(fromHash(toHash(settings).hash), { settings, problems: [] });
});

test("too many points are left out, and opening the link reports it", () => {
	const points = { ...POINTS, X: new Float64Array(2002), classes: new Int32Array(1001) };
	const { hash, complete } = toHash({ ...DEFAULTS, data: "csv", points });
	assert.equal(complete, false);
	const { settings, problems } = fromHash(hash);
	assert.equal(settings.data, "xor");
	assert.match(problems[0], /does not contain its data/);
});

const BROKEN = {
	"rate=nonsense": /Learning rate cannot be "nonsense"/,
	"rate=0.02": /Learning rate/,
	"noise=NaN": /Noise/,
	"noise=1e999": /Noise/,
	"size=20.5": /Points/,
	"seed=-1": /Seed/,
	"compare=yes": /Side by side/,
	"layers=q13": /layers/,
	"layers=x3": /layers/,
	"layers=q1,q1,q1,q1,q1": /layers/,
	"layers=q1,": /layers/,
	"data=toString": /Data/,
	"compare=constructor": /Side by side/,
	"__proto__=1": /no setting/,
	"what=1": /no setting "what"/,
	"data=points": /does not contain its data/,
	"data=points&names=a&features=x,y&points=1,2,3": /does not contain/,
	"data=points&names=a&features=x,y&points=1,x,0": /does not contain/,
	"data=points&names=a,b&features=x,y&target=number&points=1,2,0.5": /does not contain/,
	"data=points&names=%E0%A4%A&features=x,y&points=1,2,0": /does not contain/,
};
for (const [hash, message] of Object.entries(BROKEN)) {
	test(`a broken link gives the defaults and a message: ${hash}`, () => {
		const { settings, problems } = fromHash(hash);
		assert.deepEqual(settings, DEFAULTS);
		assert.equal(problems.length, 1);
		assert.match(problems[0], message);
	});
}

test("a broken part does not affect the others, and any text is accepted", () => {
	const { settings, problems } = fromHash("rate=x&data=moons&&=&seed=7");
	assert.deepEqual({ data: settings.data, seed: settings.seed }, { data: "moons", seed: 7 });
	assert.equal(problems.length, 2);
	for (let i = 0; i < 2000; i++) {
		const pieces = [
			"data=",
			"points",
			"&",
			"=",
			"layers=",
			"q",
			",",
			"1",
			";",
			"%",
			"names=",
			"\0",
		];
		const hash = Array.from({ length: i % 20 }, (_, j) => pieces[(i * 7 + j * j * 13) % 12]).join(
			"",
		);
		assert.ok(fromHash(hash).settings);
	}
});
