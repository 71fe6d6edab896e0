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
	 * @param {Settings} settings
	 */
	show(settings) {
		for (const [name, write] of this.writers) write(settings[name]);
		const { data, init, layers } = settings;
		const own = ["xor", "points", "csv"].includes(data);
		const idle = { noise: own, size: own, test: data === "xor", scale: init !== "normal" };
		for (const [name, disabled] of Object.entries({ ...idle, activation: !layers.length })) {
			byId(`setting-${name}`).toggleAttribute("disabled", disabled);
		}
	}

	/** @param {Control} control */
	makeField(control) {
		const { name, type, label, help } = control;
		const id = `setting-${name}`;
		const field = make("div", { class: `field ${type}` });
		field.append(make("label", { for: id, title: help }, label));
		if (type === "choice") {
			const { choices } = control;
			const change = () => {
				this.app.change({ [name]: choices[select.selectedIndex].value });
			};
			const select = make("select", { id, change });
			for (const { value, label } of choices) select.append(make("option", { value }, label));
			this.writers.set(name, (value) => (select.value = value));
			field.append(select);
		} else if (type === "flag") {
			const change = () => {
				this.app.change({ [name]: box.checked });
			};
			const box = make("input", { id, type: "checkbox", change });
			this.writers.set(name, (value) => (box.checked = value));
			field.append(box);
		} else field.append(this.makeNumber(control, id));
		return field;
	}

	/**
	 * A slider for small ranges, else a field to type in.
	 * @param {Named & Numeric} control @param {string} id
	 */
	makeNumber({ name, least, most, step }, id) {
		const slides = ["noise", "size", "test"].includes(name);
		const change = () => {
			if (input.reportValidity()) this.app.change({ [name]: input.valueAsNumber });
		};
		const input = make("input", {
			...{ id, type: slides ? "range" : "number", min: least, max: most, step, required: "" },
			[slides ? "input" : "change"]: change,
		});
		const shown = make("output", { for: id });
		this.writers.set(name, (value) => {
			input.value = value;
			setText(shown, name === "test" ? `${Math.round(100 * value)}%` : number(value, 4));
		});
		return make("div", {}, input, ...(slides ? [shown] : []));
	}
}
