/** One sentence about what is seen. */
import { percent, rSquared, score } from "./curves.js";

const NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"];
const SMALL = 50; // up to this many points, counts replace percentages

/**
 * @param {Settings} settings @param {Data} data @param {Problem | null} problem
 * @param {State | null} state @param {string[]} kinds names of the exact boundaries, or none
 */
export function summarize({ layers, lastKind }, data, problem, state, kinds) {
	if (problem === null) return "Place points of at least two classes to train a network on them.";
	const { train, test, outputs } = problem;
	const hidden = layers.map(({ kind, outputs }) => `${outputs} ${kind}, then `).join("");
	const number = hidden ? outputs : (NUMBERS[outputs] ?? outputs);
	const network = `${hidden}${number} ${lastKind} ${outputs === 1 ? "neuron" : "neurons"}`;
	if (!state?.samples)
		return `${network} before training. Press Run to train on ${train.length} points.`;
	if (data.values) {
		const gets = network.startsWith("One") ? "reaches" : "reach";
		const points = test.length ? "test points" : "training points";
		return `${network} ${gets} an R² of ${rSquared(score(state))} on the ${points}${shapes(kinds, "level curve")}.`;
	}
	const { accuracy } = state;
	const size = data.classes.length;
	let right = `${percent(score(state))} of the `;
	right += test.length ? "test points" : "training points";
	if (size <= SMALL)
		right = `${Math.round(accuracy.train * train.length)} of ${train.length} training points`;
	if (accuracy.train === 1 && !(accuracy.test < 1)) {
		right = size <= SMALL ? `all ${size} points` : "every point";
	}
	return `${network} ${network.startsWith("One") ? "gets" : "get"} ${right} right${shapes(kinds, "boundary")}.`;
}

/** ": the boundary is a hyperbola" @param {string[]} kinds @param {string} name */
function shapes(kinds, name) {
	if (!kinds.length) return "";
	const parts = [...new Set(kinds)].map((kind) => {
		const n = kinds.filter((other) => other === kind).length;
		if (n === 1)
			return kind.endsWith("s") ? `two ${kind}` : `${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind}`;
		return `${NUMBERS[n]?.toLowerCase() ?? n} ${kind.endsWith("s") ? "pairs of " : ""}${kind.replace(/s?$/, "s")}`;
	});
	const subject = kinds.length === 1 ? `${name} is` : `${name.replace("ry", "rie")}s are`;
	return `: the ${subject} ${new Intl.ListFormat("en").format(parts)}`;
}
