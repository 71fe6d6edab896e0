/** All settings: their names, choices, limits and default values, for controls and links. */

export const LIMITS = { hiddenLayers: 4, neurons: 12, classes: 8, linkedPoints: 1000 };

/** @type {Kind[]} */
export const KINDS = ["linear", "quadratic", "reduced"];

const RATES = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10];

/** @type {Settings} */
export const DEFAULTS = {
	data: "xor",
	noise: 0.2,
	size: 300,
	test: 0.3,
	seed: 1,
	standardize: true,
	layers: [],
	lastKind: "quadratic",
	activation: "tanh",
	output: "sigmoid",
	init: "glorot",
	scale: 0.1,
	optimizer: "sgd",
	batch: 1,
	rate: 0.03,
	l2: 0,
	speed: "auto",
	compare: false,
	lesson: 0,
	samples: 0,
	points: null,
};

/**
 * @param {Named["name"]} name @param {string} label @param {string} help
 * @param {(number | [string | number, string])[]} choices with labels, or numbers
 * @returns {Control}
 */
function choice(name, label, help, ...choices) {
	const pairs = choices.map((one) => (Array.isArray(one) ? one : [one, String(one)]));
	const labeled = pairs.map(([value, label]) => ({ value, label: String(label) }));
	return { name, label, help, type: "choice", choices: labeled };
}

/**
 * @param {Named["name"]} name @param {string} label @param {string} help
 * @param {number} least @param {number} most @param {number} step @returns {Control}
 */
function number(name, label, help, least, most, step) {
	return { name, label, help, type: "number", least, most, step, integer: step === 1 };
}

/** @param {Named["name"]} name @param {string} label @param {string} help @returns {Control} */
const flag = (name, label, help) => ({ name, label, help, type: "flag" });

/** Every setting that is a single value. @type {Control[]} */
export const CONTROLS = [
	choice(
		"data",
		"Data",
		"The points to classify, or numbers to predict",
		["xor", "XOR"],
		["noisy-xor", "Noisy XOR"],
		["clusters", "Six clusters"],
		["circles", "Circles"],
		["moons", "Moons"],
		["spirals", "Spirals"],
		["bullseye", "Bull's eye"],
		["quantiles", "Gaussian quantiles"],
		["saddle", "Saddle"],
		["hills", "Hills"],
		["points", "Drawn points"],
		["csv", "CSV file"],
	),
	number("noise", "Noise", "How far the points are scattered", 0, 1, 0.05),
	number("size", "Points", "The number of points", 20, 2000, 1),
	number("test", "Test set", "The share of the points that are kept for testing", 0, 0.9, 0.05),
	number("seed", "Seed", "Fixes the points, the initial weights and the order", 0, 2 ** 32 - 1, 1),
	flag("standardize", "Standardize", "Scale each feature to mean 0 and standard deviation 1"),
	choice(
		"lastKind",
		"Output neurons",
		"w·x + b, or x·Qx + w·x + b, or (w·x + b)(u·x + c)",
		["linear", "Linear"],
		["quadratic", "Quadratic"],
		["reduced", "Reduced"],
	),
	choice(
		"activation",
		"Activation",
		"The activation of the hidden neurons",
		["tanh", "tanh"],
		["logistic", "Logistic"],
		["relu", "ReLU"],
		["identity", "None"],
	),
	choice(
		"output",
		"Output",
		"Sigmoid: each class by itself. Softmax: probabilities",
		["sigmoid", "Sigmoid"],
		["softmax", "Softmax"],
	),
	choice(
		"init",
		"Initial values",
		"How the weights are drawn before training",
		["normal", "Normal"],
		["glorot", "Glorot"],
		["identity", "Identity for Q"],
		["relinear", "ReLinear"],
	),
	number("scale", "Scale", "The standard deviation of normal initial values", 0, 2, 0.005),
	choice(
		"optimizer",
		"Optimizer",
		"Stochastic gradient descent or Adam",
		["sgd", "SGD"],
		["adam", "Adam"],
	),
	choice("batch", "Batch size", "The number of samples per step", 1, 2, 4, 8, 16, 32, 64, 128),
	choice("rate", "Learning rate", "The size of the steps", ...RATES),
	choice("l2", "L2 penalty", "Keeps the weights small", 0, ...RATES.slice(0, -2)),
	choice(
		"speed",
		"Speed",
		"Samples per second; automatic: ten epochs, and at least 100 samples",
		["auto", "Automatic"],
		[1, "1 sample per second"],
		[10, "10 per second"],
		[100, "100 per second"],
		[1000, "1000 per second"],
		[10000, "10,000 per second"],
		[0, "As fast as possible"],
	),
	flag("compare", "Side by side", "Train linear, quadratic and reduced networks at the same time"),
	number("lesson", "Lesson", "The lesson that is shown", 0, 5, 1),
	number("samples", "Samples", "How many samples the network has seen", 0, 1e9, 1),
];

/**
 * Samples per second, 0 for as many as possible. Automatic: ten epochs, so that the result of the
 * first one is drawn at once for any number of points.
 * @param {Settings["speed"]} speed @param {number} count of training samples
 */
export function samplesPerSecond(speed, count) {
	return speed === "auto" ? Math.max(100, 10 * count) : speed;
}

/** The next smaller choice, at most a third of the rate. @param {number} rate */
export function lowerRate(rate) {
	return RATES.findLast((choice) => choice <= rate / 2.9) ?? RATES[0];
}
