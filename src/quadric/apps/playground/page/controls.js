/** The controls of the settings, made from the list in settings.js. */
import { byId, make, setText } from "./dom.js";
import { CONTROLS } from "./settings.js";
import { number } from "./view.js";

/** Which part of the page holds which settings, in this order. */
const PLACES = {
	"data-controls": ["data", "noise", "size", "test", "seed", "standardize"],
	"training-controls": ["optimizer", "rate", "batch", "l2"],
	"network-controls": ["activation", "output", "init", "scale"],
	"speed-place": ["speed"],
};

/** Numbers with a small range. */
const SLIDERS = ["noise", "size", "test"];

export class Controls {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		/** @type {Map<keyof Settings, (value: any) => void>} */
		this.writers = new Map();
		for (const [place, names] of Object.entries(PLACES)) {
			for (const name of names) {
				const control = CONTROLS.find((entry) => entry.name === name);
				if (control) byId(place).append(this.makeField(control));
			}
		}
	}

	/**
	 * Settings without effect are disabled, but stay visible, so that nothing moves.
	 * @param {Settings} settings @param {boolean} [regression]
	 */
	show(settings, regression = false) {
		for (const [name, write] of this.writers) write(settings[name]);
		const { data, init, layers } = settings;
		const own = ["xor", "points", "csv"].includes(data);
		const idle = { noise: own, size: own, test: data === "xor", scale: init !== "normal" };
		const all = { ...idle, activation: !layers.length, output: regression };
		for (const [name, disabled] of Object.entries(all)) {
			byId(`setting-${name}`).toggleAttribute("disabled", disabled);
		}
	}

	/** @param {Control} control */
	makeField(control) {
		const { name, type, label, help } = control;
		const id = `setting-${name}`;
		const field = make("div", { class: `field ${type}` });
		field.append(make("label", { for: id, title: help }, label));
		/** @param {unknown} value */
		const change = (value) => this.app.change({ [name]: value });
		if (type === "choice") {
			const { choices } = control;
			const select = make("select", { id });
			select.onchange = () => change(choices[select.selectedIndex].value);
			for (const { value, label } of choices) select.append(make("option", { value }, label));
			this.writers.set(name, (value) => (select.value = value));
			field.append(select);
		} else if (type === "flag") {
			const box = make("input", { id, type: "checkbox" });
			box.onchange = () => change(box.checked);
			this.writers.set(name, (value) => (box.checked = value));
			field.append(box);
		} else {
			const { least: min, most: max, step } = control;
			const slides = SLIDERS.includes(name);
			const input = make("input", {
				...{ id, type: slides ? "range" : "number", min, max, step, required: "" },
				[slides ? "input" : "change"]: () => input.reportValidity() && change(input.valueAsNumber),
			});
			const shown = make("output", { for: id });
			this.writers.set(name, (value) => {
				input.value = value;
				setText(shown, name === "test" ? `${Math.round(100 * value)}%` : number(value, 4));
			});
			field.append(make("div", {}, input, ...(slides ? [shown] : [])));
		}
		return field;
	}
}
