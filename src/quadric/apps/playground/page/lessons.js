/**
 * Five short lessons. A step sets the page up, says what to look for, and knows when it is done.
 */
import { score } from "./curves.js";

/** @param {Facts} facts */
const allRight = ({ accuracy }) => accuracy.train === 1;

/** @param {number} share */
const most = (share) => ({
	goal: `${100 * share}% of the test points right`,
	reached: (/** @type {Facts} */ facts) => score(facts) >= share,
});

const four = { goal: "All 4 points right", reached: allRight };

/** @type {Partial<Settings>} */
const clusters = { data: "clusters", size: 600 };

/** @type {Partial<Settings>} */
const bullseye = { data: "bullseye", output: "softmax" };

/** @type {Lesson[]} */
export const LESSONS = [
	{
		title: "XOR",
		about: "One quadratic neuron solves what no line can.",
		steps: [
			{
				text: [
					"Opposite corners belong to the same class. No line has both blue points on one side and both orange ones on the other.",
					"A quadratic neuron computes x'Qx + w'x + b, which is zero on a conic. Press Run and watch it bend between the points.",
				],
				settings: {},
				...four,
			},
			{
				text: [
					"Choose the neuron in the network to read its weights.",
					"The entry of Q for x1 and x2 is by far the largest. It multiplies x1·x2, whose sign is exactly XOR.",
				],
				settings: { samples: 800 },
				goal: "Neuron selected",
				reached: ({ selected }) => selected,
			},
			{
				text: [
					"The same neuron on noisy points. Hollow points are not trained on; they test what was learned.",
					"Hover over any point to see its probabilities and its exact distance to the curve.",
				],
				settings: { data: "noisy-xor" },
				...most(0.95),
			},
		],
	},
	{
		title: "Six clusters",
		about: "Six neurons, six exact curves, one for each class.",
		steps: [
			{
				text: [
					"One quadratic neuron per class separates it from all others; there is no hidden layer.",
					"Clusters in the middle have neighbors on both sides, so a line is not enough.",
				],
				settings: clusters,
				...most(0.99),
			},
			{
				text: [
					"With softmax the outputs compete. A boundary is a tie between two classes, drawn only where both are ahead of all others.",
					"It is again a conic, so these curves are exact too.",
				],
				settings: { ...clusters, output: "softmax" },
				...most(0.99),
			},
		],
	},
	{
		title: "Why a line cannot",
		about: "A linear neuron fails on XOR, and what it costs to repair that.",
		steps: [
			{
				text: [
					"XOR with a linear neuron: w'x + b. Its boundary is always a line.",
					"At most 3 of the 4 points are right, and the loss stays near 0.69, the loss of guessing.",
				],
				settings: { lastKind: "linear" },
				goal: "50 epochs trained, and still not solved",
				reached: (facts) => facts.epoch >= 50 && !allRight(facts),
			},
			{
				text: [
					"The usual repair is a hidden layer: four linear neurons bend the plane before the last one cuts it.",
					"It needs 17 parameters instead of 6, and the boundary has no name.",
				],
				settings: { lastKind: "linear", layers: [{ kind: "linear", outputs: 4 }], speed: 1000 },
				...four,
			},
			{
				text: [
					"All three kinds on circles, from the same seed. Only the quadratic neuron draws the circle.",
				],
				settings: { data: "circles", compare: true },
				goal: "20 epochs trained",
				reached: ({ epoch }) => epoch >= 20,
			},
		],
	},
	{
		title: "The reduced neuron",
		about: "Fewer weights: what it can do and what it cannot.",
		steps: [
			{
				text: [
					"A reduced neuron multiplies two lines: (w'x + b)(u'x + c). With many features it needs far fewer weights than a full Q.",
					"Its boundary is where a factor is zero: two lines. XOR needs no more.",
				],
				settings: { lastKind: "reduced" },
				...four,
			},
			{
				text: ["Two lines cannot enclose anything. On the bull's eye, reduced neurons fail."],
				settings: { data: "bullseye", lastKind: "reduced" },
				goal: "20 epochs trained, and still not solved",
				reached: (facts) => facts.epoch >= 20 && score(facts) < 0.9,
			},
			{
				text: ["Quadratic neurons on the same points draw closed curves around the inner classes."],
				settings: { ...bullseye, rate: 0.1 },
				...most(0.9),
			},
			{
				text: [
					"Sums of products are quadratic forms again: reduced neurons without activation, added by linear ones, draw every conic.",
				],
				settings: {
					...{ ...bullseye, layers: [{ kind: "reduced", outputs: 3 }], lastKind: "linear" },
					activation: "identity",
				},
				...most(0.9),
			},
		],
	},
	{
		title: "Divergence and scaling",
		about: "Why features are standardized, and what happens otherwise.",
		steps: [
			{
				text: [
					"The clusters lie as far as 16 from the origin, and a quadratic neuron squares that. Without standardization its gradients are huge.",
					"Press Run. Training diverges, stops, and shows the last good state.",
				],
				settings: { ...clusters, standardize: false, rate: 1 },
				goal: "Divergence reported",
				reached: ({ diverged }) => diverged !== null,
			},
			{
				text: ["The same data and rate, with features of mean 0 and standard deviation 1."],
				settings: { ...clusters, rate: 1 },
				...most(0.99),
			},
		],
	},
];
