/** One network in training: its worker, its last state, and what it was started with. */
import { noPoints } from "./datasets.js";
import { copyNetwork, emptyNetwork } from "./net.js";
import { initialNetwork, makeProblem, NO_SCALER, outputsFor } from "./problem.js";

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
		this.scaler = NO_SCALER;
		this.visible = false; // whether the network is worth a picture: trained or imported
		this.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
		this.worker.onmessage = ({ data: state }) => {
			if (state.run !== this.number) return;
			this.state = state;
			this.net.theta.set(state.parameters);
			onState(this);
		};
	}

	/**
	 * A state follows if there is data to train on.
	 * @param {Settings} settings @param {Data} data @param {Beginning} beginning
	 */
	start(settings, data, { parameters, scaler, samples }) {
		this.send({ type: "pause" });
		this.number += 1;
		this.data = data;
		this.state = null;
		const trainable = new Set(data.classes).size >= 2;
		this.visible = trainable || parameters !== undefined;
		this.problem = trainable ? makeProblem(data, settings, scaler) : null;
		this.scaler = this.problem?.scaler ?? scaler ?? NO_SCALER;
		this.initial = initialNetwork(settings, outputsFor(settings, data.names.length));
		if (parameters) this.initial.theta.set(parameters);
		this.net = copyNetwork(this.initial);
		const { number: run } = this;
		this.send({ type: "start", run, settings, data, parameters, scaler, samples });
	}

	/** @param {ToWorker} message */
	send(message) {
		if (this.problem !== null) this.worker.postMessage(message);
	}

	stop() {
		this.number += 1;
		this.worker.terminate();
	}
}
