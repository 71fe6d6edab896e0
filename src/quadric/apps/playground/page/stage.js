/**
 * The pictures and the training runs behind them: one, or three in side-by-side mode. States of the
 * workers arrive at any time; everything is drawn in animation frames.
 */
import { byId } from "./dom.js";
import { Picture } from "./picture.js";
import { Probe } from "./probe.js";
import { Run } from "./run.js";
import { KINDS } from "./settings.js";
import { drawingView, makeView } from "./view.js";

/** Grid points along the longer side, while training and for a still picture. */
const LIVE = 97;
const LIVE_OF_THREE = 61;
const STILL = 361;
const THUMBS_PAUSE = 100; // ms between pictures of neurons

export class Stage {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		/** @type {Panel[]} */
		this.panels = [];
		/** @type {Selected | null} */
		this.selected = null;
		this.drawn = false; // whether the data are drawn points
		/** @type {Panel[]} that wait for the painter; of each, only the last state is painted */
		this.queue = [];
		/** @type {Panel | null} that is being painted */
		this.busy = null;
		this.painter = new Worker(new URL("./painter.js", import.meta.url), { type: "module" });
		this.lastThumbs = 0;
		this.painter.onmessage = ({ data: painting }) => {
			if (painting.thumbs) this.lastThumbs = performance.now();
			if (this.busy) this.busy.painting = painting;
			this.busy = null;
			this.paintNext();
			this.askForFrame();
		};
		this.asked = false;
		this.resizes = new ResizeObserver(() => this.fit());
	}

	/** The panel whose neurons are shown: the only one, or the quadratic one. */
	get main() {
		return this.panels.find(({ kind }) => kind === "quadratic") ?? this.panels[0];
	}

	/** The neurons' new pictures. */
	get thumbs() {
		const { painting, run } = this.main;
		return painting?.stamp.run === run.number ? painting.thumbs : null;
	}

	/**
	 * Starts all runs from the same seed and data.
	 * @param {Settings} settings @param {Data} data @param {Beginning} beginning
	 */
	start(settings, data, beginning) {
		const kinds = settings.compare ? KINDS : [null];
		if (this.panels.length !== kinds.length) {
			for (const { run, picture } of this.panels) {
				run.stop();
				this.resizes.unobserve(picture.frame);
				picture.figure.remove();
			}
			this.panels = kinds.map((kind) => this.makePanel(kind));
		}
		this.drawn = settings.data === "points";
		for (const panel of this.panels) {
			const { run, picture, kind } = panel;
			run.start(withKind(settings, kind), data, beginning);
			panel.painting = null;
			picture.figure.dataset.painted = "";
			picture.empty.hidden = run.visible || data.X.length > 0;
			if (!run.visible) picture.painting = null;
			this.showData(panel);
		}
	}

	/** @param {Kind | null} kind @returns {Panel} */
	makePanel(kind) {
		const name = kind ? `Picture of the ${kind} network` : "Picture";
		const help = "Use the arrow keys to read probabilities and distances.";
		const picture = new Picture(byId("pictures"), `${name}. ${help}`);
		if (kind === null || kind === "quadratic") picture.frame.id = "picture";
		const run = new Run(() => this.touch(panel));
		this.resizes.observe(picture.frame);
		this.app.drawing.attach(picture);
		const probe = new Probe(picture, run, this.app.announce);
		const panel = { kind, run, picture, probe, changed: false, painting: null, job: null };
		return panel;
	}

	/** @param {Panel} panel */
	showData(panel) {
		const { run, picture, probe } = panel;
		const aspect = picture.width / Math.max(1, picture.height);
		const drawn = this.drawn ? drawingView(run.data.X, aspect) : null;
		const view = drawn ?? makeView(run.data.X, run.scaler, aspect);
		picture.setData(run.data, run.range, run.problem?.test ?? [], view);
		if (this.app.drawing.active) probe.show();
		else picture.hideCursor();
		this.touch(panel);
	}

	/** After a resize: other pixels, and another window if the shape has changed. */
	fit() {
		for (const panel of this.panels) this.showData(panel);
	}

	/** @param {Order["type"]} order */
	order(order) {
		for (const { run } of this.panels) run.send({ type: order });
	}

	/** @param {Settings["speed"]} speed */
	setSpeed(speed) {
		for (const { run } of this.panels) run.send({ type: "speed", speed });
	}

	/** @param {Selected | null} selected */
	select(selected) {
		this.selected = selected;
		this.touch(this.main);
	}

	/** @param {Panel} panel */
	touch(panel) {
		panel.changed = true;
		this.askForFrame();
	}

	askForFrame() {
		if (this.asked) return;
		this.asked = true;
		requestAnimationFrame(() => {
			this.asked = false;
			this.frame();
		});
	}

	frame() {
		for (const panel of this.panels) {
			const { run, picture, probe, painting, changed } = panel;
			panel.changed = false;
			if (changed) this.requestPainting(panel);
			if (painting?.stamp.run !== run.number) continue;
			picture.show(painting);
			probe.show();
			const { samples, still } = painting.stamp;
			picture.figure.dataset.painted = still ? String(samples) : "";
		}
		this.app.onFrame();
		for (const panel of this.panels) panel.painting = null;
	}

	/** @param {Panel} panel */
	requestPainting(panel) {
		const { run, picture } = panel;
		const { net, state, scaler, visible, problem, range } = run;
		const { width, height, view } = picture;
		const longer = Math.max(width, height);
		if (!visible || !longer || (problem && !state)) return;
		const still = !state?.running;
		const most = still ? STILL : this.panels.length > 1 ? LIVE_OF_THREE : LIVE;
		const main = panel === this.main;
		const due = still || performance.now() - this.lastThumbs > THUMBS_PAUSE;
		panel.job = {
			stamp: { run: run.number, samples: state?.samples ?? 0, still },
			shapes: net.layers.map(({ kind, outputs, activation }) => ({ kind, outputs, activation })),
			...{ theta: net.theta.slice(), scaler, view, range },
			nx: Math.max(2, Math.round((most * width) / longer)),
			ny: Math.max(2, Math.round((most * height) / longer)),
			...{ selected: main ? this.selected : null, thumbs: main && due },
		};
		if (!this.queue.includes(panel)) this.queue.push(panel);
		this.paintNext();
	}

	paintNext() {
		if (this.busy) return;
		this.busy = this.queue.shift() ?? null;
		if (this.busy) this.painter.postMessage(this.busy.job);
	}
}

/** @param {Settings} settings @param {Kind | null} kind */
function withKind(settings, kind) {
	if (kind === null) return settings;
	const layers = settings.layers.map(({ outputs }) => ({ kind, outputs }));
	return { ...settings, layers, lastKind: kind };
}
