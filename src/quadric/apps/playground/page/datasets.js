/** Points in the plane with classes, or with a number to predict. */

import { Random } from "./random.js";

// The paper's six clusters: the mean, and the covariance of coordinates that have variance 1.
/** @type {[Point, number][]} */
const CLUSTERS = [
	[[-16, 0], -0.3],
	[[-8, 0], 0],
	[[0, 0], 0.3],
	[[0, 10], -0.3],
	[[-8, 10], 0],
	[[-16, 10], 0.3],
];

/**
 * The number of classes, the standard deviation that is added to each coordinate at noise 1, and
 * the points without it.
 * @type {Record<string, [classes: number, deviation: number, draw: (one: Draw) => Point]>}
 */
const SHAPES = {
	"noisy-xor": [
		2,
		1,
		({ random, k }) => {
			const side = random.uniform() < 0.5 ? -1 : 1;
			return [side, k ? -side : side];
		},
	],
	clusters: [
		6,
		0,
		({ random, k, noise }) => {
			const [[x, y], covariance] = CLUSTERS[k];
			const first = random.normal();
			const second = covariance * first + Math.sqrt(1 - covariance ** 2) * random.normal();
			return [x + 5 * noise * first, y + 5 * noise * second];
		},
	],
	circles: [2, 0.4, ({ k, share }) => onCircle(k ? 0.5 : 1, share)],
	moons: [
		2,
		0.6,
		({ k, share }) => {
			const [x, y] = onCircle(1, share / 2);
			return k ? [1 - x, 0.5 - y] : [x, y];
		},
	],
	spirals: [2, 0.2, ({ k, share }) => onCircle(0.1 + 0.9 * share, 1.25 * share + k / 2)],
	// a disk and two rings around it, of the same width and with gaps between them
	bullseye: [
		3,
		0.3,
		({ random, k }) => {
			const [inner, outer] = [2 * k, 2 * k + 1].map((edge) => edge / 5);
			const radius = Math.sqrt(inner ** 2 + random.uniform() * (outer ** 2 - inner ** 2));
			return onCircle(radius, random.uniform());
		},
	],
	// a normal distribution; the radius of class k lies in the k-th third of all radii
	quantiles: [
		3,
		0.3,
		({ random, k }) => {
			const below = (k + random.uniform()) / 3; // the probability of a smaller radius
			return onCircle(Math.sqrt(-2 * Math.log(1 - below)), random.uniform());
		},
	],
};

/** Targets of the points of a square, for regression. @type {Record<string, (x: number, y: number) => number>} */
const SURFACES = {
	saddle: (x, y) => x * y,
	hills: (x, y) => 3 * bump(x - 1, y - 0.5) + 2 * bump(x + 1, y + 1) - 3 * bump(x + 0.8, y - 1),
};

/** @param {number} x @param {number} y */
const bump = (x, y) => Math.exp(-1.5 * (x * x + y * y));

/**
 * The user's own points, or `size` points of a data set; XOR always has its four points. `noise`
 * lies between 0 and 1, and at 0.2 the six clusters are those of the paper.
 * @param {Settings} settings @returns {Data}
 */
export function makeData({ data, points, noise, seed, size }) {
	if (points) return points;
	if (data === "xor") return toData([-1, -1, 1, -1, -1, 1, 1, 1], [0, 1, 1, 0], 2);
	const random = new Random(seed, "data");
	if (data in SURFACES) {
		const X = Float64Array.from({ length: 2 * size }, () => 4 * random.uniform() - 2);
		const values = new Float64Array(size).map((_, i) => {
			return SURFACES[data](X[2 * i], X[2 * i + 1]) + noise * random.normal();
		});
		return { ...toData(X, new Int32Array(size), 1), names: ["y"], values };
	}
	const [count, deviation, draw] = SHAPES[data];
	const X = new Float64Array(2 * size);
	const classes = new Int32Array(size);
	for (let i = 0; i < size; i++) {
		const k = (classes[i] = i % count);
		const [x, y] = draw({ random, k, share: (i - k) / size, noise });
		X[2 * i] = x + deviation * noise * random.normal();
		X[2 * i + 1] = y + deviation * noise * random.normal();
	}
	return toData(X, classes, count);
}

/** @returns {Data} */
export function noPoints(names = ["A", "B"], features = ["x1", "x2"]) {
	return { X: new Float64Array(0), classes: new Int32Array(0), names, features };
}

/**
 * @param {ArrayLike<number>} X @param {ArrayLike<number>} classes @param {number} count
 * @returns {Data}
 */
function toData(X, classes, count) {
	return {
		X: Float64Array.from(X),
		classes: Int32Array.from(classes),
		names: Array.from({ length: count }, (_, k) => String(k)),
		features: ["x1", "x2"],
	};
}

/** @param {number} radius @param {number} share @returns {Point} */
function onCircle(radius, share) {
	return [radius * Math.cos(2 * Math.PI * share), radius * Math.sin(2 * Math.PI * share)];
}
