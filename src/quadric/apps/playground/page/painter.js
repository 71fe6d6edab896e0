/**
 * A worker that paints what a network computes: decision regions, boundaries and thumbnails of its
 * neurons.
 */
import { arcs } from "./arcs.js";
import { boundaries, neuronConic } from "./boundaries.js";
import { inUnits, kind } from "./conic.js";
import { contours } from "./contours.js";
import { emptyNetwork, forward, lastLayer, predictedClass } from "./net.js";
import { classColor, SIGN_COLORS, valueColor } from "./palette.js";
import { number, ticks } from "./view.js";

const THUMB_STEP = 4; // a thumbnail has every fourth grid point

self.onmessage = ({ data: job }) => {
	const painting = paint(job);
	const images = [painting.pixels, ...(painting.thumbs?.pixels.flat() ?? [])];
	self.postMessage(painting, { transfer: images.map(({ buffer }) => buffer) });
};

/** @param {Job} job @returns {Painting} */
function paint(job) {
	const { stamp, nx, ny, shapes, theta, thumbs } = job;
	const net = emptyNetwork(2, shapes);
	net.theta.set(theta);
	const grid = evaluate(net, job);
	return {
		...{ stamp, nx, ny },
		pixels: grid.pixels,
		lines: exactLines(net, job) ?? contourLines(grid, job),
		selectedLine: selectedLine(net, job),
		thumbs: thumbs ? thumbnails(net, job) : null,
	};
}

/**
 * Calls `each` for every `step`-th grid point, by rows from the top, after a forward pass there.
 * @param {Network} net @param {Job} job @param {number} step @param {(place: number) => void} each
 */
function overGrid(net, { view, scaler: { mean, scale }, nx, ny }, step, each) {
	const x = new Float64Array(2);
	let place = 0;
	for (let j = 0; j < ny; j += step) {
		x[1] = (view.y1 + ((view.y0 - view.y1) * j) / (ny - 1) - mean[1]) / scale[1];
		for (let i = 0; i < nx; i += step) {
			x[0] = (view.x0 + ((view.x1 - view.x0) * i) / (nx - 1) - mean[0]) / scale[0];
			forward(net, x, 0);
			each(place++);
		}
	}
}

/**
 * The logits at the grid points, and pixels with the color of the most probable class, stronger
 * where it is more probable.
 * @param {Network} net @param {Job} job
 */
function evaluate(net, job) {
	const { z, a, outputs: m, activation } = lastLayer(net);
	const paintValue = valuePainter(job);
	const logits = new Float64Array(job.nx * job.ny * m);
	const pixels = new Uint8ClampedArray(4 * job.nx * job.ny);
	const least = 1 / Math.max(2, m);
	overGrid(net, job, 1, (place) => {
		logits.set(z, place * m);
		if (paintValue) return paintValue(pixels, place, z[0]);
		const k = predictedClass(z);
		const probability = m === 1 ? Math.max(a[0], 1 - a[0]) : a[k];
		const sure = Math.max(0, (probability - least) / (1 - least));
		setPixel(pixels, place, classColor(k), 0.06 + 0.3 * sure);
	});
	return { z: logits, m, softmax: activation === "softmax", pixels };
}

/** For regression: paints the pixel of an output. @param {Job} job */
function valuePainter({ range, scaler: { target } }) {
	if (!range || !target) return null;
	return (/** @type {Pixels} */ pixels, /** @type {number} */ place, /** @type {number} */ z) => {
		const { color, opacity } = valueColor(z * target[1] + target[0], range);
		setPixel(pixels, place, color, opacity);
	};
}

/** @param {Pixels} pixels @param {number} place @param {Rgb} color @param {number} opacity */
function setPixel(pixels, place, [r, g, b], opacity) {
	pixels[4 * place] = r;
	pixels[4 * place + 1] = g;
	pixels[4 * place + 2] = b;
	pixels[4 * place + 3] = 255 * opacity;
}

/**
 * Null for networks with hidden layers.
 * @param {Network} net @param {Job} job @returns {Line[] | null}
 */
function exactLines(net, job) {
	const { view, scaler } = job;
	if (job.range) {
		if (net.layers.length > 1) return null;
		const conic = neuronConic(net, 0);
		return levelsOf(job).map(({ z, label }) => {
			const level = { ...conic, b: conic.b - z };
			return {
				...{ classes: [], label, kind: kind(inUnits(level, scaler)) },
				arcs: arcs(level, inNetworkUnits(view, scaler)).map((arc) => inUserUnits(arc, scaler)),
			};
		});
	}
	const found = boundaries(net, inNetworkUnits(view, scaler));
	const single = net.layers[0].outputs === 1; // the only output is the probability of class 1
	return (
		found?.map(({ classes, conic, arcs }) => ({
			classes: single ? [1] : classes,
			kind: kind(inUnits(conic, scaler)),
			arcs: arcs.map((arc) => inUserUnits(arc, scaler)),
		})) ?? null
	);
}

/** Round numbers within the range of the target, and the outputs for them. @param {Job} job */
function levelsOf({ range, scaler: { target } }) {
	if (!range || !target || range[0] === range[1]) return [];
	return ticks(...range, 9).map((level) => {
		return { z: (level - target[0]) / target[1], label: number(level) };
	});
}

/** @param {View} view @param {Scaler} scaler */
function inNetworkUnits(view, { mean, scale }) {
	return {
		...{ x0: (view.x0 - mean[0]) / scale[0], x1: (view.x1 - mean[0]) / scale[0] },
		...{ y0: (view.y0 - mean[1]) / scale[1], y1: (view.y1 - mean[1]) / scale[1] },
	};
}

/** @param {Float64Array} arc @param {Scaler} scaler */
function inUserUnits(arc, { mean, scale }) {
	return arc.map((value, i) => value * scale[i % 2] + mean[i % 2]);
}

/**
 * Where an output's logit is 0; for softmax, where a class ties with the best of the others; for
 * regression, where the output has round values.
 * @param {ReturnType<typeof evaluate>} grid @param {Job} job @returns {Line[]}
 */
function contourLines({ z, m, softmax }, job) {
	const { view, nx, ny } = job;
	const [stepX, stepY] = [(view.x1 - view.x0) / (nx - 1), (view.y0 - view.y1) / (ny - 1)];
	const values = new Float64Array(nx * ny);
	const trace = () =>
		contours(values, nx).map((line) =>
			line.map((value, i) => (i % 2 ? view.y1 + stepY * value : view.x0 + stepX * value)),
		);
	if (job.range) {
		return levelsOf(job).map(({ z: level, label }) => {
			values.forEach((_, place) => (values[place] = z[place] - level));
			return { classes: [], kind: null, label, arcs: trace() };
		});
	}
	return Array.from({ length: m }, (_, k) => {
		for (let place = 0; place < values.length; place++) {
			let other = softmax ? -Infinity : 0;
			for (let j = 0; softmax && j < m; j++) if (j !== k) other = Math.max(other, z[place * m + j]);
			values[place] = z[place * m + k] - other;
		}
		return { classes: [m === 1 ? 1 : k], kind: null, arcs: trace() };
	});
}

/**
 * The conic on which the pre-activation of a selected neuron of the first layer is 0.
 * @param {Network} net @param {Job} job
 */
function selectedLine(net, { selected, scaler, view }) {
	if (selected?.[0] !== 0) return null;
	const inside = arcs(neuronConic(net, selected[1]), inNetworkUnits(view, scaler));
	return { classes: [], kind: null, arcs: inside.map((arc) => inUserUnits(arc, scaler)) };
}

/**
 * Small pictures of what each neuron computes, layer by layer. Outputs have the color of their
 * class or number. Hidden neurons are blue where the activation is positive and orange where it is negative
 * (logistic: above or below 1/2).
 * @param {Network} net @param {Job} job
 */
function thumbnails(net, job) {
	const nx = Math.ceil(job.nx / THUMB_STEP);
	const ny = Math.ceil(job.ny / THUMB_STEP);
	const values = net.layers.map(({ a }) => Array.from(a, () => new Float64Array(nx * ny)));
	overGrid(net, job, THUMB_STEP, (place) => {
		net.layers.forEach(({ a }, l) => {
			for (let k = 0; k < a.length; k++) values[l][k][place] = a[k];
		});
	});
	const paintValue = valuePainter(job);
	const pixels = values.map((neurons, l) => {
		const { activation } = net.layers[l];
		const last = l === values.length - 1;
		const middle = activation === "logistic" && !(last && neurons.length > 1) ? 0.5 : 0;
		return neurons.map((activations, k) => {
			const bounded = last || activation === "logistic" || activation === "tanh";
			const largest = bounded ? 1 - middle : Math.max(1e-12, ...activations.map(Math.abs));
			const positive = last ? classColor(neurons.length > 1 ? k : 1) : SIGN_COLORS.positive;
			const negative = last ? classColor(0) : SIGN_COLORS.negative;
			const image = new Uint8ClampedArray(4 * nx * ny);
			activations.forEach((value, place) => {
				if (last && paintValue) return paintValue(image, place, value);
				const share = (value - middle) / largest;
				setPixel(image, place, share > 0 ? positive : negative, 0.8 * Math.abs(share));
			});
			return image;
		});
	});
	return { nx, ny, pixels };
}
