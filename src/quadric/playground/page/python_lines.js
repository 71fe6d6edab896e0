/** Python code that continues from the exported initial weights with the page's settings. */

/**
 * For the files initial.quadric, of `writeModel`, and data.csv, of `writeCsv`.
 * @param {Settings} settings @param {number} [epochs]
 */
export function pythonLines({ optimizer, rate, batch, l2, seed, standardize }, epochs) {
	const inputs = standardize ? "model[:-1].transform(X)" : "X";
	const classifier = standardize ? "model[-1]" : "model";
	return `import csv

import numpy as np
from quadric import load

with open("data.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.reader(file))[1:]  # without the names of the columns
X = np.array([row[:2] for row in rows], dtype=float)
labels = np.array([row[2] for row in rows])
train = np.array([row[3] == "train" for row in rows])

model = load("initial.quadric")  # the initial weights
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
