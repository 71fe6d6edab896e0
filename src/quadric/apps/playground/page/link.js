/**
 * Settings as the hash of a URL, and back: "data=moons&layers=q4,l2&rate=0.1". A link holds only
 * the values that differ from the defaults.
 */

import { CONTROLS, DEFAULTS, KINDS, LIMITS } from "./settings.js";

const OWN_DATA = ["points", "csv"];
/** @type {string[]} */
const NAMES = [
	...CONTROLS.map(({ name }) => name),
	"layers",
	"names",
	"features",
	"target",
	"points",
];

/**
 * The hash without "#". It is not complete if there are too many points for a link.
 * @param {Settings} settings
 */
export function toHash(settings) {
	/** @type {string[]} */
	const parts = [];
	for (const { name } of CONTROLS) {
		if (settings[name] !== DEFAULTS[name]) parts.push(`${name}=${settings[name]}`);
	}
	if (settings.layers.length) {
		parts.push(`layers=${settings.layers.map(({ kind, outputs }) => kind[0] + outputs).join(",")}`);
	}
	const needed = OWN_DATA.includes(settings.data) ? settings.points : null;
	const complete = !needed || needed.classes.length <= LIMITS.linkedPoints;
	if (needed && complete) {
		parts.push(`names=${needed.names.map(encodeURIComponent).join(",")}`);
		parts.push(`features=${needed.features.map(encodeURIComponent).join(",")}`);
		const { X, classes, values } = needed;
		if (values) parts.push("target=number");
		const points = Array.from(values ?? classes, (k, i) => `${X[2 * i]},${X[2 * i + 1]},${k}`);
		parts.push(`points=${points.join(";")}`);
	}
	return { hash: parts.join("&"), complete };
}

/**
 * The settings of a link. Parts that cannot be read get their default values and are reported.
 * @param {string} hash with or without "#"
 */
export function fromHash(hash) {
	const settings = { ...DEFAULTS };
	/** @type {string[]} */
	const problems = [];
	/** @type {Map<string, string>} */
	const values = new Map();
	for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
		const [name, ...rest] = part.split("=");
		if (NAMES.includes(name)) values.set(name, rest.join("="));
		else problems.push(`There is no setting ${quoted(name)}.`);
	}
	for (const control of CONTROLS) {
		const text = values.get(control.name);
		if (text === undefined) continue;
		const value = parseValue(control, text);
		if (value === undefined) problems.push(`${control.label} cannot be ${quoted(text)}.`);
		else Object.assign(settings, { [control.name]: value });
	}
	const layers = parseLayers(values.get("layers") ?? "");
	if (layers) settings.layers = layers;
	else problems.push(`The layers cannot be ${quoted(values.get("layers") ?? "")}.`);
	if (OWN_DATA.includes(settings.data)) {
		settings.points = parsePoints(values);
		if (settings.points === null) {
			problems.push("The link does not contain its data. XOR is shown instead.");
			settings.data = DEFAULTS.data;
		}
	}
	return { settings, problems };
}

/** A short, quoted piece of a link. @param {string} text */
function quoted(text) {
	return `"${text.length > 30 ? `${text.slice(0, 30)}…` : text}"`;
}

/**
 * @param {Control} control @param {string} text
 * @returns {string | number | boolean | undefined} undefined if the setting cannot have this value
 */
function parseValue(control, text) {
	if (control.type === "flag") return text === "true" || (text === "false" ? false : undefined);
	if (control.type === "choice") {
		return control.choices.find(({ value }) => String(value) === text)?.value;
	}
	const number = parseNumber(text);
	const inside = number >= control.least && number <= control.most; // false for NaN
	return inside && (!control.integer || Number.isInteger(number)) ? number : undefined;
}

/** @param {string} text */
function parseNumber(text) {
	return /^[-+\d.eE]+$/.test(text) ? Number(text) : NaN;
}

/** @param {string} text such as "q12,l3" @returns {Settings["layers"] | null} */
function parseLayers(text) {
	if (text === "") return [];
	const layers = text.split(",").map((part) => {
		const kind = KINDS.find((name) => name[0] === part[0]);
		const outputs = /^.\d{1,2}$/.test(part) ? Number(part.slice(1)) : 0;
		return kind && outputs >= 1 && outputs <= LIMITS.neurons ? { kind, outputs } : null;
	});
	const valid = layers.filter((layer) => layer !== null);
	return valid.length === layers.length && layers.length <= LIMITS.hiddenLayers ? valid : null;
}

/** @param {Map<string, string>} values @returns {Data | null} */
function parsePoints(values) {
	const names = decoded(values.get("names"));
	const features = decoded(values.get("features"));
	const isNumber = values.get("target") === "number" && names.length === 1;
	const lines = values.get("points")?.split(";") ?? [];
	const rows = lines.filter(Boolean).map((row) => row.split(",").map(parseNumber));
	const valid =
		names.length >= 1 &&
		names.length <= LIMITS.classes &&
		features.length === 2 &&
		rows.length <= LIMITS.linkedPoints &&
		rows.every((row) => row.length === 3 && row.every(Number.isFinite)) &&
		(isNumber || rows.every((row) => row[2] in names));
	if (!valid) return null;
	const X = Float64Array.from(rows.flatMap(([x, y]) => [x, y]));
	const last = rows.map((row) => row[2]);
	if (!isNumber) return { X, classes: Int32Array.from(last), names, features };
	const classes = new Int32Array(rows.length);
	return { X, classes, names, features, values: Float64Array.from(last) };
}

/** @param {string} [list] */
function decoded(list = "") {
	try {
		return list.split(",").map(decodeURIComponent);
	} catch {
		return []; // not encoded by encodeURIComponent
	}
}
