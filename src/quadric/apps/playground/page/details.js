/** The weights of one neuron: Q, w and b; in the first layer also the equation and the axes. */
import { neuronConic } from "./boundaries.js";
import { axes, center, equation, inUnits, kind } from "./conic.js";
import { byId, make } from "./dom.js";
import { number } from "./view.js";

/** @param {Run} run @param {Selected | null} selected */
export function showDetails({ net, scaler, data }, selected) {
	const place = byId("details");
	const layer = selected && net.layers[selected[0]];
	byId("neuron").hidden = !layer;
	if (!layer) return;
	const [l, k] = selected;
	const title = l === net.layers.length - 1 ? "Output" : `Hidden layer ${l + 1}`;
	const first = l === 0;
	const names = first ? data.features : Array.from({ length: layer.inputs }, (_, i) => `h${i + 1}`);
	const scaled = first && scaler.scale.some((value) => value !== 1);
	place.replaceChildren(
		make("p", {}, make("strong", {}, `${title}, neuron ${k + 1}`), ` (${layer.kind})`),
		...(first ? conicFacts(inUnits(neuronConic(net, k), scaler), data.features) : []),
		make("p", { class: "note" }, scaled ? "Weights of the standardized features" : "Weights"),
		weightTable(layer, k, names),
	);
}

/** @param {Conic} conic @param {string[]} features */
function conicFacts(conic, features) {
	const facts = [["Where z = 0", kind(conic)]];
	const middle = center(conic);
	if (middle) facts.push(["Center", `(${middle.map((x) => number(x)).join(", ")})`]);
	for (const { direction, halfLength } of axes(conic)) {
		if (!Number.isFinite(halfLength)) continue;
		const angle = Math.round((Math.atan2(direction[1], direction[0]) * 180) / Math.PI);
		facts.push(["Half axis", `${number(halfLength)} at ${(angle + 180) % 180}°`]);
	}
	const rows = facts.flatMap(([name, fact]) => [make("dt", {}, name), make("dd", {}, fact)]);
	return [make("code", {}, equation(conic, features)), make("dl", { class: "facts" }, ...rows)];
}

/** @param {Layer} layer @param {number} k @param {string[]} names of the inputs */
function weightTable({ inputs: n, W, b, Q, U, c }, k, names) {
	const table = make("table", { class: "matrix", tabindex: 0, "aria-label": "Weights" });
	/** @param {string} name @param {Iterable<number>} values */
	const row = (name, values) => {
		const cells = Array.from(values, (value) => make("td", {}, value.toFixed(3).replace("-", "−")));
		table.append(make("tr", {}, make("th", { scope: "row" }, name), ...cells));
	};
	if (Q) {
		/** @type {number[][]} */
		const full = names.map(() => []);
		let q = (k * n * (n + 1)) / 2; // the upper triangle is stored by rows
		for (let i = 0; i < n; i++) for (let j = i; j < n; j++) full[i][j] = full[j][i] = Q[q++];
		full.forEach((values, i) => row(`Q ${names[i]}`, values));
	}
	row("w", W.subarray(k * n, (k + 1) * n));
	row("b", [b[k]]);
	if (U) row("u", U.subarray(k * n, (k + 1) * n));
	if (c) row("c", [c[k]]);
	return table;
}
