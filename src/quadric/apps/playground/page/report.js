/** What the page says about the training: counters, sentence, legend, captions, curves, alert. */
import { Chart, percent, rSquared, score } from "./curves.js";
import { showDetails } from "./details.js";
import { byId, make, setText } from "./dom.js";
import { KIND_COLORS, swatch } from "./palette.js";
import { summarize } from "./summary.js";
import { number } from "./view.js";

const TEXT_PAUSE = 200; // ms between changes of texts while training, to stay readable
const COUNT_PAUSE = 100; // for counters: each change costs a layout

/** @param {string} id @param {number} value */
const count = (id, value = 0) => {
	setText(byId(id), value.toLocaleString("en-US").replaceAll(",", "\u202f"));
};

export class Report {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		this.charts = [new Chart("Loss"), new Chart("Accuracy")];
		this.lastTexts = this.lastCounts = 0;
		this.legend = "";
		/** @type {State["diverged"]} what is shown */
		this.diverged = null;
	}

	/** Once per frame. */
	update() {
		const { stage, selected } = this.app;
		const { run } = stage.main;
		this.showDivergence();
		const now = performance.now();
		const { running } = run.state ?? {};
		if (running && now - this.lastCounts < COUNT_PAUSE) return;
		this.lastCounts = now;
		count("epoch-count", run.state?.epoch);
		count("sample-count", run.state?.samples);
		if (running && now - this.lastTexts < TEXT_PAUSE) return;
		this.lastTexts = now;
		count("parameter-count", run.net.theta.length);
		setText(byId("summary"), this.summary());
		const series = stage.panels.flatMap(({ kind, run: { state } }) => {
			const color = KIND_COLORS[kind ?? "quadratic"];
			return state ? { name: kind ?? "", color, ...state } : [];
		});
		const regression = run.range !== null;
		for (const chart of this.charts) chart.show(series, regression);
		const write = regression ? rSquared : percent;
		for (const { kind, run, picture } of stage.panels) {
			const parameters = `${run.net.theta.length} parameters`;
			if (kind) setText(picture.caption, `${kind}: ${write(score(run.state))}\n${parameters}`);
		}
		this.writeLegend();
		showDetails(run, selected);
	}

	get lines() {
		return this.app.stage.main.picture.painting?.lines ?? [];
	}

	summary() {
		const { settings, data, stage } = this.app;
		const { problem, state } = stage.main.run;
		if (!settings.compare || !problem) {
			const kinds = this.lines.flatMap(({ kind, arcs }) => (kind && arcs.length ? kind : []));
			return summarize(settings, data, problem, state, kinds);
		}
		const write = data.values ? rSquared : percent;
		const parts = stage.panels.map(({ kind, run }) => `${kind} ${write(score(run.state))}`);
		const points = problem.test.length ? "test points" : "training points";
		const what = data.values ? "R²" : "Share right";
		return `Three networks, the same data and seed. ${what} on the ${points}: ${parts.join(", ")}.`;
	}

	writeLegend() {
		const { lines } = this;
		const { data, stage } = this.app;
		const { range, problem } = stage.main.run;
		const texts = data.names.map((name, k) => {
			const own = lines.find(({ classes }) => classes.length === 1 && classes[0] === k);
			if (range) return `${name}: ${number(range[0])} to ${number(range[1])}`;
			return own?.kind && lines.length > 1 ? `${name}: ${own.kind}` : name;
		});
		if (problem?.test.length) texts.push(`${range ? "squares" : "hollow"}: test points`);
		if (texts.join() === this.legend) return;
		this.legend = texts.join();
		const items = texts.map((text, k) => {
			const mark = range ? make("i", { class: "scale" }) : swatch(k);
			return make("span", {}, k < data.names.length ? mark : "", text);
		});
		byId("legend").classList.toggle("many", texts.length > 4);
		byId("legend").replaceChildren(...items);
	}

	showDivergence() {
		const failed = this.app.stage.panels.find(({ run }) => run.state?.diverged);
		const diverged = failed?.run.state?.diverged ?? null;
		if (diverged === this.diverged) return;
		this.diverged = diverged;
		byId("alert").hidden = diverged === null;
		byId("summary").hidden = diverged !== null;
		if (diverged === null) return;
		const { samples, rate, suggestedRate } = diverged;
		const who = failed?.kind ? `Training of the ${failed.kind} network` : "Training";
		const text =
			`${who} diverged after ${samples} samples: the learning rate ${number(rate)} is too large. ` +
			"The last good state is shown.";
		const click = () => {
			this.app.change({ rate: suggestedRate });
			byId("run").focus();
		};
		const offer = `Start again with rate ${number(suggestedRate)}`;
		const button = make("button", { class: "primary", id: "smaller-rate", click }, offer);
		byId("alert").replaceChildren(make("p", {}, text), button);
	}
}
