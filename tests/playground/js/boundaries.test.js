/** Boundaries of networks, and contours of grids. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { boundaries, neuronConic } from "../../../src/quadric/apps/playground/page/boundaries.js";
import { value } from "../../../src/quadric/apps/playground/page/conic.js";
import { contours } from "../../../src/quadric/apps/playground/page/contours.js";
import { createNetwork } from "../../../src/quadric/apps/playground/page/initial_values.js";
import { logits } from "../../../src/quadric/apps/playground/page/net.js";
import { Random } from "../../../src/quadric/apps/playground/page/random.js";

const WINDOW = { x0: -3, x1: 3, y0: -2, y1: 2 };

function network(kind, outputs, activation, seed = 1) {
	const values = { init: "normal", scale: 1 };
	return createNetwork(2, [{ kind, outputs, activation }], values, new Random(seed));
}

for (const kind of ["linear", "quadratic", "reduced"]) {
	test(`the conic of a ${kind} neuron has the values of its logit`, () => {
		const net = network(kind, 3, "logistic");
		for (const x of [
			[0, 0],
			[1.5, -2],
			[-0.3, 0.7],
		]) {
			logits(net, x).forEach((z, k) => {
				assert.ok(Math.abs(value(neuronConic(net, k), ...x) - z) < 1e-13);
			});
		}
	});

	test(`on a boundary of ${kind} sigmoid outputs, the logit is zero`, () => {
		const net = network(kind, 4, "logistic", 3);
		const found = boundaries(net, WINDOW);
		assert.equal(found.length, 4);
		let points = 0;
		for (const { classes, arcs } of found) {
			for (const arc of arcs) {
				for (let i = 0; i < arc.length; i += 2, points++) {
					assert.ok(Math.abs(logits(net, [arc[i], arc[i + 1]])[classes[0]]) < 1e-12);
				}
			}
		}
		assert.ok(points > 50);
	});

	test(`on a tie of ${kind} softmax outputs, both classes are the largest`, () => {
		for (let seed = 0; seed < 10; seed++) {
			const net = network(kind, 4, "softmax", seed);
			for (const { classes, arcs } of boundaries(net, WINDOW)) {
				for (const arc of arcs) {
					for (let i = 0; i < arc.length; i += 2) {
						const z = logits(net, [arc[i], arc[i + 1]]);
						assert.ok(Math.abs(z[classes[0]] - z[classes[1]]) < 1e-11);
						assert.ok(Math.max(...z) - z[classes[0]] < 1e-9);
					}
				}
			}
		}
	});
}

/** How often the largest class changes along a line, and how often arcs cross the line. */
test("ties separate exactly the regions of the classes", () => {
	const largest = (net, x, y) =>
		logits(net, [x, y]).reduce((k, z, l, all) => (z > all[k] ? l : k), 0);
	for (let seed = 0; seed < 10; seed++) {
		const net = network("quadratic", 4, "softmax", seed);
		const found = boundaries(net, WINDOW).flatMap(({ arcs }) => arcs);
		for (const y of [-1.21, 0.017, 1.43]) {
			let changes = 0;
			for (let i = 0; i < 6000; i++) {
				const x = -3 + i / 1000;
				if (largest(net, x, y) !== largest(net, x + 0.001, y)) changes++;
			}
			let crossed = 0;
			for (const arc of found) {
				for (let i = 2; i < arc.length; i += 2) if (arc[i - 1] > y !== arc[i + 1] > y) crossed++;
			}
			assert.equal(crossed, changes, `seed ${seed}, y = ${y}`);
		}
	}
});

test("a deeper network has no exact boundaries", () => {
	const shapes = [1, 2].map(() => ({ kind: "linear", outputs: 2, activation: "logistic" }));
	assert.equal(
		boundaries(createNetwork(2, shapes, { init: "glorot" }, new Random(1)), WINDOW),
		null,
	);
});

function grid(nx, ny, f) {
	return Float64Array.from({ length: nx * ny }, (_, i) => f(i % nx, Math.floor(i / nx)));
}

test("the contour of a circle is one closed line near the circle", () => {
	const lines = contours(
		grid(41, 31, (x, y) => Math.hypot(x - 20, y - 15) - 10.3),
		41,
	);
	assert.equal(lines.length, 1);
	const [line] = lines;
	assert.deepEqual(line.slice(0, 2), line.slice(-2));
	assert.ok(line.length > 100);
	for (let i = 0; i < line.length; i += 2) {
		assert.ok(Math.abs(Math.hypot(line[i] - 20, line[i + 1] - 15) - 10.3) < 0.02);
	}
});

test("the contour of a plane is one open line across the grid", () => {
	const [line, ...more] = contours(
		grid(11, 6, (x, y) => x + 0.1 * y - 4.5),
		11,
	);
	assert.equal(more.length, 0);
	assert.equal(line.length, 2 * 6);
	for (let i = 0; i < line.length; i += 2) {
		assert.ok(Math.abs(line[i] + 0.1 * line[i + 1] - 4.5) < 1e-12);
	}
});

test("a saddle has two lines that do not cross", () => {
	const values = grid(20, 20, (x, y) => (x - 9.4) * (y - 9.6) + 0.2);
	assert.equal(contours(values, 20).length, 2);
	assert.deepEqual(
		contours(
			grid(5, 5, () => 1),
			5,
		),
		[],
	);
});
