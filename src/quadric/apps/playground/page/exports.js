/** Downloads, the Python lines and the link. */
import { writeCsv } from "./csv.js";
import { byId, dialogById, inputById, make, onClick, setText } from "./dom.js";
import { messageOf } from "./expect.js";
import { writeModel } from "./model_writer.js";

/** @param {BlobPart} content @param {string} name */
function download(content, name) {
	const href = URL.createObjectURL(new Blob([content]));
	make("a", { href, download: name }).click();
	setTimeout(() => URL.revokeObjectURL(href), 10000);
}

/** False where the browser forbids it, for example on plain http. @param {string} text */
async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		return false;
	}
}

/** @param {App} app */
export function connectExports(app) {
	/** By the id of the button. @type {Record<string, [string, () => string | Promise<BlobPart>]>} */
	const files = {
		"export-png": ["quadric.png", () => app.stage.main.picture.toBlob()],
		"export-model": ["model.quadric", () => modelBytes(app, "net")],
		"export-start": ["initial.quadric", () => modelBytes(app, "initial")],
		"export-data": ["data.csv", () => writeCsv(app.data, app.stage.main.run.problem?.test)],
	};
	/** @type {Say} */
	const note = (text) => setText(byId("export-note"), text);
	for (const [id, [name, content]] of Object.entries(files)) {
		onClick(id, async () => {
			try {
				download(await content(), name);
			} catch (error) {
				note(messageOf(error));
			}
		});
	}
	const python = () => {
		const epochs = app.stage.main.run.state?.epoch;
		return app.data.values ? PYTHON_REGRESSION : pythonLines(app.settings, epochs);
	};
	onClick("export-button", () => {
		setText(byId("python-lines"), python());
		note(app.settings.compare ? "Side by side: the quadratic network is exported." : "");
		dialogById("export-dialog").showModal();
	});
	onClick("copy-python", async () => {
		const copied = await copy(python());
		note(copied ? "Copied." : "Copying is not allowed here; select the text instead.");
	});
	onClick("link-button", async () => {
		const { url, note } = app.makeLink();
		if ((await copy(url)) && !note) {
			app.announce("Link copied");
			setText(byId("link-button"), "Copied");
			setTimeout(() => setText(byId("link-button"), "Copy link"), 1500);
			return;
		}
		inputById("link-text").value = url;
		setText(byId("link-note"), note);
		dialogById("link-dialog").showModal();
		inputById("link-text").select();
	});
}

/** @param {App} app @param {"net" | "initial"} which */
function modelBytes({ stage, settings, data }, which) {
	const { run } = stage.main;
	const scaler = settings.standardize ? run.scaler : null;
	const { names: classes, features } = data;
	return writeModel({ net: run[which], scaler, classes, features, target: run.scaler.target });
}

const PYTHON_REGRESSION = `from quadric import load
from sklearn.base import clone

model = load("model.quadric")  # predicts in the units of data.csv
anew = clone(model)  # the same layers: anew.fit(X, y) trains them by L-BFGS
`;

/**
 * Python code that continues from the exported initial weights with the page's settings, for the
 * files initial.quadric (`writeModel`) and data.csv (`writeCsv`).
 * @param {Settings} settings @param {number} [epochs]
 */
export function pythonLines({ optimizer, rate, batch, l2, seed, standardize }, epochs) {
	const inputs = standardize ? "model[:-1].transform(X)" : "X";
	const classifier = standardize ? "model[-1]" : "model";
	return `import csv
import re

import numpy as np
from quadric import load

with open("data.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.reader(file))[1:]
X = np.array([row[:2] for row in rows], dtype=float)
# names like '=1+1 were written with an apostrophe
labels = np.array([re.sub(r"^'(?=[-=+@\\s])", "", row[2]) for row in rows])
train = np.array([row[3] == "train" for row in rows])

model = load("initial.quadric")
network = ${classifier}.network_
Y = (labels[:, None] == ${classifier}.classes_.astype(str)).astype(float)
Y = Y[:, -network.n_outputs :]  # for two classes and a sigmoid, the output of the second class
inputs = ${inputs}
network.fit(
    inputs[train],
    Y[train],
    solver="${optimizer}",
    learning_rate=${rate},
    batch_size=${batch},
    l2=${l2},
    epochs=${epochs || 20},
    rng=${seed},
)

right = model.predict(X).astype(str) == labels
print(f"training accuracy: {right[train].mean():.3f}")
if not train.all():
    print(f"test accuracy: {right[~train].mean():.3f}")
`;
}
