/** The window of the picture, and the points in it. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { nearestOf } from "../../../src/quadric/apps/playground/page/labels.js";
import { makeView } from "../../../src/quadric/apps/playground/page/view.js";

const SCALER = { mean: [5, 6], scale: [1, 2] };

test("the window contains the points, with a margin and the same scale on both axes", () => {
	const { x0, x1, y0, y1, equal } = makeView(Float64Array.of(10, 3, -2, 1, 4, 7), SCALER, 2);
	assert.ok(equal && x0 < -2 && x1 > 10 && y0 < 1 && y1 > 7);
	assert.ok(Math.abs((x1 - x0) / (y1 - y0) - 2) < 1e-12);
});

test("without points, the window is around the mean of the scaler", () => {
	const { x0, x1, y0, y1 } = makeView(new Float64Array(0), SCALER, 1);
	assert.deepEqual([(x0 + x1) / 2, (y0 + y1) / 2], SCALER.mean);
});

test("a file may have more points than a function can have arguments", () => {
	const X = Float64Array.from({ length: 600_000 }, (_, i) => i);
	const { x0, x1 } = makeView(X, SCALER, 1);
	assert.ok(x0 < 0 && x1 > 599_998);
	const places = Array.from({ length: 300_000 }, (_, i) => ({ x: i, y: 0 }));
	assert.deepEqual(nearestOf(places, { x: 1234, y: 5 }), [1234, 5]);
});
