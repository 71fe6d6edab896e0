/**
 * The state of the page, and what follows from a change of it.
 *
 * The picture is a function of the settings and the number of trained samples: every change of a
 * setting starts again from the same seed, so that a link reproduces what is seen.
 */
import { Controls } from "./controls.js";
import { makeData, noPoints } from "./datasets.js";
import { byId, inputById, setText } from "./dom.js";
import { Drawing, rounded } from "./drawing.js";
import { expect } from "./expect.js";
import { LessonPanel } from "./lesson_panel.js";
import { fromHash, toHash } from "./link.js";
import { lastLayer } from "./net.js";
import { NetworkPanel } from "./neurons.js";
import { NO_SCALER } from "./problem.js";
import { Report } from "./report.js";
import { DEFAULTS, LIMITS } from "./settings.js";
import { Stage } from "./stage.js";

// a change of these drops imported weights
const NETWORK = [
	...["layers", "lastKind", "activation", "output", "init", "scale", "seed"],
	...["standardize", "compare"],
];
const DEMO_SAMPLES = 1200; // trained on a first visit, at once if motion is reduced

/** @param {string[]} first @param {string[]} second */
const same = (first, second) => first.join("\n") === second.join("\n");

export class App {
	constructor() {
		this.settings = { ...DEFAULTS };
		this.data = noPoints();
		/** @type {{parameters: Float64Array, scaler: Scaler, name: string} | null} */
		this.imported = null;
		/** @type {Selected | null} */
		this.selected = null;
		this.demo = false; // whether this is the first visit's own run
		this.wasRunning = false;
		this.linkTimer = 0;
		/** @type {Say} */
		this.announce = (text) => setText(byId("live"), text);
		/** @type {Say} */
		this.note = (text) => setText(byId("data-note"), text);
		this.drawing = new Drawing(this);
		this.stage = new Stage(this);
		this.controls = new Controls(this);
		this.network = new NetworkPanel(this);
		this.lessons = new LessonPanel(this);
		this.report = new Report(this);
	}

	get running() {
		return this.stage.panels.some(({ run }) => run.running);
	}

	get wanted() {
		return this.stage.panels.some(({ run }) => run.wanted);
	}

	/** Takes the settings from the address; without any, shows XOR being solved. */
	open() {
		const { settings, problems } = fromHash(location.hash);
		const demo = location.hash.length <= 1;
		const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
		this.lessons.show(settings.lesson);
		this.reset(demo && still ? { ...settings, samples: DEMO_SAMPLES } : settings);
		this.demo = demo && !still;
		if (this.demo) this.stage.order("run");
		if (problems.length) this.note(`The link is not valid: ${problems.join(" ")}`);
	}

	/** Shows other settings, paused and without anything imported. @param {Settings} settings */
	reset(settings) {
		this.imported = this.selected = null;
		this.demo = false;
		this.settings = settings;
		this.drawing.setActive(false);
		this.rememberLink();
		this.restart(false);
	}

	/** @param {Partial<Settings>} change */
	change(change) {
		if (change.data === "csv" && !change.points) {
			this.controls.show(this.settings);
			return byId("csv-button").click(); // ask for the file
		}
		this.demo = false;
		this.settings = { ...this.settings, ...change };
		this.rememberLink();
		if (change.lesson !== undefined) return;
		if (change.speed !== undefined) return this.stage.setSpeed(change.speed);
		if (NETWORK.some((name) => name in change)) this.imported = null;
		if (change.data && !change.points) {
			this.settings.points = change.data === "points" ? noPoints() : null;
			this.drawing.setActive(change.data === "points");
		}
		// What was learned is not lost while one draws: training is repeated with the new points.
		const again = change.data === "points" && this.wanted;
		if (again) this.settings.samples = this.stage.main.run.state?.samples ?? 0;
		this.restart(this.wanted);
	}

	/** @param {boolean} running whether to train at once */
	restart(running) {
		const { samples, compare } = this.settings;
		const data = makeData(this.settings);
		if (!same(this.data.names, data.names)) this.imported = null;
		this.data = data;
		this.settings = { ...this.settings, samples: 0 };
		byId("column-picture").classList.toggle("side-by-side", compare);
		this.stage.start(this.settings, data, { ...this.imported, samples, running });
		this.showSettings();
	}

	showSettings() {
		const { settings, data, stage, selected } = this;
		const { net, problem } = stage.main.run;
		this.controls.show(settings, Boolean(data.values));
		inputById("draw-toggle").disabled = Boolean(data.values); // drawn points have classes
		inputById("compare").checked = settings.compare;
		const single = lastLayer(net).outputs === 1 && !data.values;
		const outputNames = single ? [`${data.names[1]} or ${data.names[0]}`] : data.names;
		this.network.show(settings, data.features, outputNames);
		const exists = selected && selected[1] < (net.layers[selected[0]]?.outputs ?? 0);
		this.select(exists ? selected : null);
		this.drawing.showClasses();
		for (const id of ["run", "sample", "epoch", "rewind"]) inputById(id).disabled = !problem;
		const notes = [];
		if (this.imported) notes.push(`Weights from ${this.imported.name}.`);
		if (settings.points && data.classes.length > LIMITS.linkedPoints) {
			notes.push(`More than ${LIMITS.linkedPoints} points do not fit into a link.`);
		}
		if (settings.data === "csv" && settings.standardize) {
			notes.push("Features are standardized for training; the picture has your units.");
		}
		this.note(notes.join(" "));
	}

	onFrame() {
		const { stage, report, running, selected } = this;
		const { state } = stage.main.run;
		if (stage.thumbs) this.network.draw(stage.thumbs);
		byId("run").classList.toggle("running", running);
		setText(byId("run-text"), running ? "Pause" : "Run");
		report.update();
		if (state === null) return;
		if (this.demo && running && state.samples >= DEMO_SAMPLES) this.toggle();
		if (this.wasRunning && !running) this.announce(report.summary());
		this.wasRunning = running;
		this.lessons.check({ ...state, selected: selected !== null });
	}

	toggle() {
		this.step(this.running ? "pause" : "run");
	}

	/** @param {Order["type"]} order */
	step(order) {
		this.demo = false;
		this.stage.order(order);
	}

	newSeed() {
		this.change({ seed: (this.settings.seed % 9999) + 1 });
	}

	/** @param {Selected | null} selected */
	select(selected) {
		this.selected = selected;
		this.network.mark(selected);
		this.stage.select(selected);
	}

	/** @param {Data} data of a CSV file @param {string} note */
	useData(data, note) {
		this.drawing.setActive(false);
		this.change({ data: "csv", points: rounded(data) });
		this.note(`${note} ${byId("data-note").innerText}`);
	}

	/**
	 * Shows a model. If the data does not fit, the plane is emptied and gets the model's classes.
	 * @param {Model} model @param {string} name
	 */
	useModel({ net, scaler, classes, features }, name) {
		const hidden = net.layers.slice(0, -1);
		const last = lastLayer(net);
		const activation = hidden[0]?.activation ?? this.settings.activation;
		const alike = activation !== "softmax" && hidden.every((one) => one.activation === activation);
		expect(alike, "The hidden layers have different activations; the page has one for all.");
		const fits = same(this.data.names, classes) && same(this.data.features, features);
		this.change({
			...(fits ? {} : { data: "points", points: noPoints(classes, features) }),
			layers: hidden.map(({ kind, outputs }) => ({ kind, outputs })),
			...{ lastKind: last.kind, activation, compare: false, standardize: scaler !== null },
			output: last.activation === "softmax" ? "softmax" : "sigmoid",
		});
		this.imported = { parameters: net.theta, scaler: scaler ?? NO_SCALER, name };
		this.restart(false);
	}

	/** The link to what is seen now, and a remark if it cannot reproduce everything. */
	makeLink() {
		const { state } = this.stage.main.run;
		const { hash, complete } = toHash({ ...this.settings, samples: state?.samples ?? 0 });
		let note = complete ? "" : "The link does not contain the points: there are too many.";
		if (this.imported) note += " The link does not contain the imported weights.";
		return { url: `${location.href.split("#")[0]}#${hash || "samples=0"}`, note };
	}

	/** Writes the settings into the address, not too often; a first visit keeps it empty. */
	rememberLink() {
		clearTimeout(this.linkTimer);
		this.linkTimer = setTimeout(() => {
			const { hash } = toHash(this.settings);
			if (!this.demo) history.replaceState(null, "", `#${hash || "samples=0"}`);
		}, 250);
	}
}
