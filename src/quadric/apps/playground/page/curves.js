/** Loss and accuracy over the epochs, for one network or for several. */
import { byId, make, setText, sharpContext, stroke } from "./dom.js";
import { themeColor } from "./palette.js";
import { number, ticks } from "./view.js";

const LEFT = 44;
const BOTTOM = 18;
const TOP = 6;

export class Chart {
	/** @param {"Loss" | "Accuracy"} title */
	constructor(title) {
		this.title = title;
		this.isLoss = title === "Loss";
		this.regression = false;
		this.heading = make("strong", {}, title);
		this.values = make("div", { class: "legend" });
		this.canvas = make("canvas", { role: "img" });
		const head = make("div", { class: "chart-head" }, this.heading, this.values);
		byId("curves").append(make("div", { class: "chart" }, head, this.canvas));
	}

	/**
	 * @param {Series[]} series one without a name, or several with names
	 * @param {boolean} regression whether R² takes the place of the accuracy
	 */
	show(series, regression) {
		const { isLoss, values } = this;
		this.regression = regression;
		const title = isLoss || !regression ? this.title : "R²";
		setText(this.heading, title);
		const write = isLoss ? lossText : regression ? rSquared : percent;
		const entries = series.flatMap(({ name, color, loss, accuracy }) => {
			const { train, test } = isLoss ? loss : accuracy;
			const first = { color, style: "", text: `${name || "train"} ${write(train)}` };
			const second = { color, style: "dashed", text: `test ${write(test)}` };
			return name || Number.isNaN(test) ? [first] : [first, second];
		});
		const texts = entries.map(({ text }) => text);
		if (values.childElementCount !== entries.length) {
			const items = entries.map(({ color, style }) => {
				const item = make("span", { class: style }); // its underline looks like the curve
				item.style.borderColor = `var(${color})`;
				return item;
			});
			values.replaceChildren(...items);
		}
		texts.forEach((text, i) => setText(values.children[i], text));
		this.canvas.ariaLabel = `${title} over the epochs: ${texts.join(", ")}`;
		this.draw(series);
	}

	/** @param {Series[]} series */
	draw(series) {
		const { isLoss, canvas } = this;
		const column = isLoss ? 1 : 3; // of the training values; the test values follow
		const context = sharpContext(canvas);
		const width = canvas.clientWidth - LEFT - 6;
		const height = canvas.clientHeight - TOP - BOTTOM;
		const epochs = Math.max(1, ...series.map(({ curve }) => curve[curve.length - 5] ?? 0));
		const top = isLoss ? highest(series) : 1;
		const toX = (/** @type {number} */ epoch) => LEFT + (width * epoch) / epochs;
		const toY = (/** @type {number} */ value) =>
			TOP + height * (1 - Math.min(Math.max(value, 0), top) / top);
		context.font = "12px system-ui, 'Segoe UI', sans-serif";
		context.textBaseline = "middle";
		context.textAlign = "right";
		for (const value of isLoss ? ticks(0, top, 3) : [0, 0.5, 1]) {
			context.fillStyle = themeColor("--line");
			context.fillRect(LEFT, Math.round(toY(value)), width, 1);
			context.fillStyle = themeColor("--muted");
			const plain = isLoss || this.regression;
			context.fillText(plain ? number(value) : `${100 * value}%`, LEFT - 6, toY(value));
		}
		context.textAlign = "center";
		for (const epoch of ticks(0, epochs, Math.max(2, width / 90)).filter(Number.isInteger)) {
			context.fillText(number(epoch, 6), Math.min(toX(epoch), width + 30), TOP + height + 12);
		}
		for (const { name, color, curve } of series) {
			for (const offset of name ? [0] : [1, 0]) {
				context.beginPath();
				for (let i = 0; i < curve.length; i += 5) {
					const value = curve[i + column + offset];
					if (Number.isFinite(value)) context.lineTo(toX(curve[i]), toY(value));
				}
				stroke(context, themeColor(color), 2, offset ? [5, 4] : []);
			}
		}
	}
}

/** The top of the loss axis; losses far above the first one are cut off. @param {Series[]} series */
function highest(series) {
	const losses = series.flatMap(({ curve }) => {
		const most = 3 * Math.max(curve[1], 0.1);
		return Array.from(curve).filter((loss, i) => i % 5 === 1 && loss <= most);
	});
	return 1.08 * (Math.max(0, ...losses) || 1);
}

/** With an almost constant number of characters. @param {number} loss */
function lossText(loss) {
	if (loss >= 1 || !Number.isFinite(loss)) return number(loss);
	return loss < 0.00005 ? "<0.0001" : loss.toFixed(4);
}

/** A share of points. Rounding never turns it into 0 % or 100 %. @param {number} share */
export function percent(share) {
	if (!Number.isFinite(share)) return "–";
	if (share === 0 || share === 1) return `${100 * share}%`;
	return `${Math.min(99.9, Math.max(0.1, 100 * share)).toFixed(1)}%`;
}

/** Rounding never turns it into 1. @param {number} value */
export const rSquared = (value) => number(value < 1 ? Math.min(value, 0.9999) : value, 4);

/** The test accuracy, or the training accuracy without test points. @param {State | null} state */
export function score(state) {
	const { train, test } = state?.accuracy ?? { train: NaN, test: NaN };
	return Number.isNaN(test) ? train : test;
}
