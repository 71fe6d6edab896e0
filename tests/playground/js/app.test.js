/** Imported weights, with stand-ins for the elements and the pictures of the page. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { App } from "../../../src/quadric/apps/playground/page/app.js";
import { noPoints } from "../../../src/quadric/apps/playground/page/datasets.js";
import { initialNetwork } from "../../../src/quadric/apps/playground/page/problem.js";
import { DEFAULTS } from "../../../src/quadric/apps/playground/page/settings.js";

globalThis.document = { getElementById: () => ({ classList: { toggle() {} } }) };

/** An app that shows an imported model with two classes, and the parameters of its last start. */
function importing() {
	const started = [];
	const app = Object.assign(Object.create(App.prototype), {
		settings: DEFAULTS,
		data: noPoints(),
		imported: null,
		drawing: { setActive() {} },
		stage: {
			panels: [],
			start: (settings, data, { parameters }) => started.push(parameters),
		},
		rememberLink() {},
		showSettings() {},
	});
	const net = initialNetwork({ ...DEFAULTS, seed: 7 }, 1);
	const scaler = { mean: [1, 2], scale: [3, 4] };
	const model = { net, scaler, classes: ["no", "yes"], features: ["a", "b"] };
	app.useModel(model, "model.quadric");
	return { app, net, parameters: () => started[started.length - 1] };
}

const KEPT = {
	"the learning rate": { rate: 0.1 },
	"the test set": { test: 0.5 },
	"the points": { data: "csv", points: noPoints(["no", "yes"], ["c", "d"]) },
};
for (const [name, change] of Object.entries(KEPT)) {
	test(`imported weights are kept if ${name} changes`, () => {
		const { app, net, parameters } = importing();
		assert.equal(parameters(), net.theta);
		app.change(change);
		assert.equal(parameters(), net.theta);
	});
}

const DROPPED = {
	"other neurons": { lastKind: "reduced" },
	"another seed": { seed: 2 },
	"other units of the features": { standardize: false },
	"three networks": { compare: true },
	"other classes": { data: "moons" },
	"more classes": { data: "clusters" },
	"an added class": { data: "points", points: noPoints(["no", "yes", "A"]) },
};
for (const [name, change] of Object.entries(DROPPED)) {
	test(`imported weights are dropped with ${name}`, () => {
		const { app, parameters } = importing();
		app.change(change);
		assert.equal(parameters(), undefined);
	});
}
