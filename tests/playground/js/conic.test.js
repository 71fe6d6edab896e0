/** Conics agree with the fixture that quadric.geometry generates. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { arcs } from "../../../src/quadric/apps/playground/page/arcs.js";
import {
	axes,
	center,
	equation,
	gradient,
	inUnits,
	kind,
	significant,
	value,
} from "../../../src/quadric/apps/playground/page/conic.js";
import { nearest } from "../../../src/quadric/apps/playground/page/nearest.js";

const FIXTURE = new URL("../../fixtures/conics.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(FIXTURE, "utf8"));

const close = (actual, wanted, tolerance) => {
	const size = Math.max(1, Math.abs(wanted));
	assert.ok(Math.abs(actual - wanted) <= tolerance * size, `${actual} is not ${wanted}`);
};

/** The distance from a point to the curve, to first order: |F| / |gradient F|. */
function offCurve(conic, x, y) {
	const [gx, gy] = gradient(conic, x, y);
	return Math.abs(value(conic, x, y)) / Math.hypot(gx, gy);
}

const meets = (kind) => !["empty", "everything", "point", "coincident lines"].includes(kind);

cases.forEach((known, i) => {
	const conic = { Q: known.Q, w: known.w, b: known.b };
	test(`${i}: ${known.kind}, ${known.equation}`, () => {
		assert.equal(kind(conic), known.kind);
		assert.equal(equation(conic, ["x1", "petal width"]), known.equation);
		const middle = center(conic);
		assert.equal(middle === null, known.center === null);
		middle?.forEach((coordinate, j) => close(coordinate, known.center[j], 1e-9));
		axes(conic).forEach(({ direction, halfLength }, j) => {
			const wanted = known.half_lengths[j];
			if (wanted === null) assert.ok(Number.isNaN(halfLength));
			else if (wanted === "inf") assert.equal(halfLength, Infinity);
			else close(halfLength, wanted, 1e-9);
			close(Math.hypot(...direction), 1, 1e-15);
		});
		known.points.forEach((x, j) => {
			const found = nearest(conic, x);
			if (known.distances === null)
				return assert.deepEqual(found, { distance: Infinity, point: null });
			close(found.distance, known.distances[j], 1e-9);
			close(Math.hypot(found.point[0] - x[0], found.point[1] - x[1]), found.distance, 1e-9);
			known.nearest?.[j].forEach((coordinate, k) => close(found.point[k], coordinate, 1e-9));
			if (meets(known.kind) && known.kind !== "crossing lines") {
				assert.ok(offCurve(conic, ...found.point) < 1e-9);
			}
		});
	});

	test(`${i}: the arcs of ${known.kind}, ${known.equation}`, () => {
		const at = known.nearest?.[0] ?? known.center ?? [0, 0];
		const size = Math.min(20, Math.max(0.1, 3 * (known.half_lengths.find(Number.isFinite) ?? 1)));
		const window = { x0: at[0] - size, x1: at[0] + 2 * size, y0: at[1] - size, y1: at[1] + size };
		const found = arcs(conic, window);
		assert.equal(found.length === 0, ["empty", "everything"].includes(known.kind));
		const slack = 1e-9 * size;
		for (const points of found) {
			for (let j = 0; j < points.length; j += 2) {
				const [x, y] = [points[j], points[j + 1]];
				const edge = 1e-7 * size; // along the curve
				assert.ok(x >= window.x0 - edge && x <= window.x1 + edge);
				assert.ok(y >= window.y0 - edge && y <= window.y1 + edge);
				assert.ok(offCurve(conic, x, y) < slack || nearest(conic, [x, y]).distance < slack);
				if (j > 0) assert.ok(Math.hypot(x - points[j - 2], y - points[j - 1]) < 0.2 * size);
			}
		}
	});
});

/** The points where a conic changes sign along a line through the window, by bisection. */
function signChanges(conic, y, x0, x1) {
	const count = 4000;
	let changes = 0;
	for (let i = 0; i < count; i++) {
		const at = (j) => value(conic, x0 + ((x1 - x0) * j) / count, y);
		if (at(i) > 0 !== at(i + 1) > 0) changes++;
	}
	return changes;
}

test("the arcs are the whole curve: lines of the window cross them as often as F changes sign", () => {
	const window = { x0: -3, x1: 3, y0: -2, y1: 2 };
	let crossings = 0;
	for (const known of cases.filter(({ kind }) => meets(kind))) {
		const conic = { Q: known.Q, w: known.w, b: known.b };
		const found = arcs(conic, window);
		for (const y of [-1.37, -0.31, 0.111, 0.9, 1.703]) {
			let met = 0;
			for (const points of found) {
				for (let j = 2; j < points.length; j += 2) {
					if (points[j - 1] > y !== points[j + 1] > y) met++;
				}
			}
			assert.equal(met, signChanges(conic, y, -3, 3), `${known.kind}, ${known.equation}, y=${y}`);
			crossings += met;
		}
	}
	assert.ok(crossings > 100);
});

test("a conic in other units has the same points", () => {
	const conic = { Q: [1, 0.5, 2], w: [-1, 0.25], b: -3 };
	const moved = inUnits(conic, { mean: [5, -2], scale: [3, 0.1] });
	for (const [x, y] of [
		[0, 0],
		[1.5, -0.5],
	]) {
		close(value(moved, 3 * x + 5, 0.1 * y - 2), value(conic, x, y), 1e-12);
	}
});

test("numbers are written as in Python", () => {
	const written = [1, 0.5, 1234, 999.6, 0.00012345, 0.000012345, 123, 1e100, 2.5, 0.1 + 0.2];
	const wanted = ["1", "0.5", "1.23e+03", "1e+03", "0.000123", "1.23e-05", "123", "1e+100", "2.5"];
	assert.deepEqual(
		written.map((number) => significant(number)),
		[...wanted, "0.3"],
	);
});
