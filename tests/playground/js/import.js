/**
 * Prints what the page reads from a model file: node import.js FILE POINTS
 *
 * POINTS is JSON of points in the user's units, whose outputs are printed. If the file cannot be
 * read, the message is printed instead.
 */
import { readFileSync } from "node:fs";

import { readModel } from "../../../src/quadric/apps/playground/page/model_reader.js";
import { outputs } from "../../../src/quadric/apps/playground/page/net.js";

const [file, points] = process.argv.slice(2);
try {
	const { net, scaler, classes, features } = await readModel(new Uint8Array(readFileSync(file)));
	const { mean, scale } = scaler ?? { mean: [0, 0], scale: [1, 1] };
	const answers = JSON.parse(points).map((x) => [
		...outputs(
			net,
			[0, 1].map((j) => (x[j] - mean[j]) / scale[j]),
		),
	]);
	console.log(JSON.stringify({ outputs: answers, classes, features, scaled: scaler !== null }));
} catch (error) {
	console.log(JSON.stringify({ error: error.message }));
}
