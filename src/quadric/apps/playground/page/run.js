/** One network in training: its worker, its last state, and what it was started with. */
import { noPoints } from "./datasets.js";
import { copyNetwork, emptyNetwork } from "./net.js";
import { forData, initialNetwork, makeProblem, NO_SCALER, outputsFor } from "./problem.js";

export class Run {
	/** @param {(run: Run) => void} onState */
	constructor(onState) {
		this.number = 0;
		this.net = this.initial = emptyNetwork(2, []);
		/** @type {Problem | null} null while there is nothing to train on */
		this.problem = null;
		/** @type {State | null} */
		this.state = null;
		this.data = noPoints();
		/** @type {Point | null} of the target, for regression */
		this.range = null;
		this.scaler = NO_SCALER;
		this.visible = false; // whether the network is worth a picture: trained or imported
		this.wanted = false; // whether training is to run, as soon as there is data
		this.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
		this.worker.onmessage = ({ data: state }) => {
			if (state.run !== this.number) return;
			this.state = state;
			if (state.diverged) this.wanted = false;
			this.net.theta.set(state.parameters);
			onState(this);
		};
	}

	/**
	 * A state follows if there is data to train on.
	 * @param {Settings} settings @param {Data} data @param {Beginning} beginning
	 */
	start(settings, data, { parameters, scaler, samples, running = false }) {
		this.number += 1;
		this.data = data;
		this.state = null;
		settings = forData(settings, data);
		const trainable = new Set(data.values ?? data.classes).size >= 2;
		this.range = data.values ? rangeOf(data.values) : null;
		this.visible = trainable || parameters !== undefined;
		this.problem = trainable ? makeProblem(data, settings, scaler) : null;
		this.scaler = this.problem?.scaler ?? scaler ?? NO_SCALER;
		this.initial = initialNetwork(settings, outputsFor(settings, data.names.length));
		if (parameters) this.initial.theta.set(parameters);
		this.net = copyNetwork(this.initial);
		const { number: run } = this;
		if (!trainable) this.worker.postMessage({ type: "pause" });
		this.send({ type: "start", run, settings, data, parameters, scaler, samples, running });
		this.wanted = running;
	}

	/** @param {ToWorker} message */
	send(message) {
		if (message.type !== "speed") this.wanted = message.type === "run";
		if (this.problem !== null) this.worker.postMessage(message);
	}

	get running() {
		return this.problem !== null && (this.state?.running ?? this.wanted);
	}

	stop() {
		this.number += 1;
		this.worker.terminate();
	}
}

/** @param {Float64Array} values @returns {Point} */
function rangeOf(values) {
	const low = values.reduce((a, b) => Math.min(a, b), Infinity);
	const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
	return [low, high];
}
