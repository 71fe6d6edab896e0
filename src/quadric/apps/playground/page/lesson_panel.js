/** The list of lessons, and the panel of the current one. */
import { byId, dialogById, make, onClick, setText } from "./dom.js";
import { LESSONS } from "./lessons.js";
import { DEFAULTS } from "./settings.js";

export class LessonPanel {
	/** @param {App} app */
	constructor(app) {
		this.app = app;
		/** @type {Step | undefined} whose goal is not reached */
		this.current = undefined;
		this.goal = make("p");
		LESSONS.forEach(({ title, about }, i) => {
			const click = () => this.open(i + 1);
			const button = make("button", { class: "link", value: "close", click }, title);
			byId("lesson-list").append(make("li", {}, button, make("div", { class: "note" }, about)));
		});
		onClick("lessons-button", () => dialogById("lessons-dialog").showModal());
		onClick("first-lesson", () => this.open(1));
	}

	/** Sets the page up. @param {number} lesson 1 to 5, or 0 to end */
	open(lesson, step = 0) {
		this.show(lesson, step);
		if (this.current) this.app.reset({ ...DEFAULTS, ...this.current.settings, lesson });
		else this.app.change({ lesson: 0 });
		byId(lesson ? "lesson" : "lessons-button").focus();
	}

	/** Shows a lesson without changing the settings. @param {number} lesson */
	show(lesson, step = 0) {
		byId("lesson").hidden = lesson === 0;
		byId("first").hidden = lesson !== 0;
		this.current = LESSONS[lesson - 1]?.steps[step];
		if (!this.current) return;
		const { title, steps } = LESSONS[lesson - 1];
		const last = step === steps.length - 1;
		const next = last ? [(lesson + 1) % (LESSONS.length + 1), 0] : [lesson, step + 1];
		const label = last ? (next[0] ? "Next lesson" : "Finish") : "Next";
		const button = (/** @type {string} */ text, /** @type {number[]} */ [lesson, step]) =>
			make("button", { id: `lesson-${text}`, click: () => this.open(lesson, step) }, text);
		const forward = button(label, next);
		Object.assign(forward, { id: "lesson-next", className: "primary" });
		const back = button("Back", [lesson, step - 1]);
		back.disabled = step === 0;
		const heading = make("h2", { id: "lesson-title" }, `Lesson ${lesson}: ${title}`);
		this.goal = make("p", { class: "goal" }, `Goal: ${this.current.goal}`);
		const text = this.current.text.map((part) => make("p", {}, part));
		const place = make("span", { class: "note" }, `Step ${step + 1} of ${steps.length}`);
		byId("lesson").replaceChildren(
			make("div", { class: "card-head" }, heading, button("End", [0, 0])),
			make("div", { class: "step" }, ...text, this.goal),
			make("div", { class: "buttons" }, back, forward, place),
		);
	}

	/** @param {Facts} facts */
	check(facts) {
		if (!this.current?.reached(facts)) return;
		this.app.announce(`Goal reached: ${this.current.goal}`);
		setText(this.goal, `✓ ${this.current.goal}`);
		this.goal.classList.add("reached");
		this.current = undefined;
	}
}
