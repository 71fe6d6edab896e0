/**
 * Writes what the page exports into a folder, for the tests in Python: node export.js SETTINGS FOLDER
 *
 * SETTINGS is JSON of the settings that differ from the defaults. The files are initial.quadric,
 * trained.quadric, data.csv and continue.py, and probabilities.json has the outputs of the trained
 * network for every sample.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { writeCsv } from "../../../src/quadric/apps/playground/page/csv.js";
import { makeData } from "../../../src/quadric/apps/playground/page/datasets.js";
import { writeModel } from "../../../src/quadric/apps/playground/page/model_writer.js";
import { outputs } from "../../../src/quadric/apps/playground/page/net.js";
import { pythonLines } from "../../../src/quadric/apps/playground/page/exports.js";
import { Session } from "../../../src/quadric/apps/playground/page/training_loop.js";
import { DEFAULTS } from "../../../src/quadric/apps/playground/page/settings.js";

const [given, folder] = process.argv.slice(2);
const settings = { ...DEFAULTS, ...JSON.parse(given) };
const { points } = settings;
if (points) {
	points.X = Float64Array.from(points.X);
	points.classes = Int32Array.from(points.classes);
	if (points.values) points.values = Float64Array.from(points.values);
}
const data = makeData(settings);
const session = new Session(settings, data);
const { net, problem } = session;
const scaler = settings.standardize ? problem.scaler : null;
const write = (file, content) => writeFileSync(join(folder, file), content);
const { target } = problem.scaler;
const { names: classes, features } = data;
const model = () => writeModel({ net, scaler, classes, features, target });

write("initial.quadric", await model());
while (session.run.epoch < 5) session.step();
write("trained.quadric", await model());
write("data.csv", writeCsv(data, problem.test));
write("continue.py", pythonLines(settings, 5));
const probabilities = Array.from(data.classes, (_, i) => [
	...outputs(net, problem.X.subarray(2 * i, 2 * i + 2)),
]);
const values = target && probabilities.map(([z]) => z * target[1] + target[0]);
write("probabilities.json", JSON.stringify({ probabilities, classes, values }));
