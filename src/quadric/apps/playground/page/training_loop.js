/**
 * One training run: a network, its trainer, the order of the samples, and the curves. The same
 * settings and the same number of samples always give the same network.
 */

import { forData, initialNetwork, makeProblem } from "./problem.js";
import { Random } from "./random.js";
import { lowerRate } from "./settings.js";
import { evaluate, makeTrainer } from "./optimizers.js";

const GROWTH = 10; // divergence: the loss is this many times that of the start or of zeros
const CURVE_POINTS = 600;
const LONG = 2000; // samples in an epoch that has points of the curves before its end
const EARLY = [1 / 16, 1 / 8, 1 / 4, 1 / 2];
const CURVE_COLUMNS = 5; // epoch, train loss, test loss, train accuracy, test accuracy

export class Session {
	/**
	 * @param {Settings} settings @param {Data} data
	 * @param {{parameters?: Float64Array, scaler?: Scaler | null}} [given] used instead of new ones
	 */
	constructor(settings, data, { parameters, scaler } = {}) {
		this.settings = settings = forData(settings, data);
		this.problem = makeProblem(data, settings, scaler);
		this.net = initialNetwork(settings, this.problem.outputs);
		if (parameters) this.net.theta.set(parameters);
		this.initial = this.net.theta.slice();
		this.order = this.problem.train.slice();
		/** The samples of each step: parts of `order`, made once, so that steps do not allocate. */
		this.batches = Array.from({ length: Math.ceil(this.order.length / settings.batch) }, (_, i) => {
			return this.order.subarray(i * settings.batch, (i + 1) * settings.batch);
		});
		const { length } = this.order.length > LONG ? this.batches : [];
		/** After which steps of the first epoch the curves get a point. */
		this.early = new Set(EARLY.map((share) => Math.floor(share * length)));
		this.run = this.newRun();
		const { outputs } = this.problem;
		const ofZeros = { sigmoid: outputs * Math.LN2, softmax: Math.log(outputs), value: 0.5 };
		this.limit = GROWTH * Math.max(this.losses().loss.train, ofZeros[settings.output]);
		this.record();
	}

	/** What changes while the network is trained, besides its parameters. */
	newRun() {
		return {
			trainer: makeTrainer(this.net, this.settings),
			random: new Random(this.settings.seed, "order"),
			batch: 0, // steps since the epoch began
			epoch: 0,
			samples: 0,
			/** @type {number[]} */
			curve: [],
			stride: 1, // epochs between two points of the curve
			good: { theta: this.initial.slice(), epoch: 0, samples: 0 },
			/** @type {State["diverged"]} */
			diverged: null,
		};
	}

	/** Goes back to the initial network. */
	rewind() {
		this.net.theta.set(this.initial);
		this.order.set(this.problem.train);
		this.run = this.newRun();
		this.record();
	}

	/** Trains one batch. Does nothing once training has diverged. */
	step() {
		const { run } = this;
		if (run.diverged) return;
		if (run.batch === 0) run.random.shuffle(this.order);
		const rows = this.batches[run.batch];
		run.samples += rows.length;
		run.batch = (run.batch + 1) % this.batches.length;
		if (!run.trainer.step(this.problem.X, this.problem.Y, rows)) {
			this.fail();
		} else if (run.batch === 0) {
			run.epoch++;
			if (run.epoch % run.stride === 0) this.record();
		} else if (run.epoch === 0 && this.early.has(run.batch)) {
			this.record();
		}
	}

	/** Appends a point to the curves, and remembers the parameters unless the loss has exploded. */
	record() {
		const { run } = this;
		const { loss, accuracy } = this.losses();
		if (!(loss.train <= this.limit)) return this.fail();
		const epochs = run.epoch + run.batch / this.batches.length;
		run.curve.push(epochs, loss.train, loss.test, accuracy.train, accuracy.test);
		if (run.curve.length > CURVE_POINTS * CURVE_COLUMNS) {
			run.curve = run.curve.filter((_, i) => Math.floor(i / CURVE_COLUMNS) % 2 === 0);
			run.stride *= 2;
		}
		run.good.theta.set(this.net.theta);
		Object.assign(run.good, { epoch: run.epoch, samples: run.samples });
	}

	/** Restores the last good parameters. */
	fail() {
		const { run } = this;
		const { rate } = this.settings;
		run.diverged = { samples: run.samples, rate, suggestedRate: lowerRate(rate) };
		const { theta, epoch, samples } = run.good;
		this.net.theta.set(theta);
		Object.assign(run, { epoch, samples });
	}

	losses() {
		const { X, Y, train, test } = this.problem;
		const known = evaluate(this.net, X, Y, train);
		const unknown = evaluate(this.net, X, Y, test);
		return {
			loss: { train: known.loss, test: unknown.loss },
			accuracy: { train: known.accuracy, test: unknown.accuracy },
		};
	}

	/** What the page shows, except whether training is running. */
	state() {
		let losses = this.losses();
		if (!Number.isFinite(losses.loss.train)) {
			this.fail();
			losses = this.losses();
		}
		const { epoch, samples, diverged } = this.run;
		const arrays = { parameters: this.net.theta.slice(), curve: Float64Array.from(this.run.curve) };
		return { epoch, samples, diverged, ...arrays, ...losses };
	}
}
