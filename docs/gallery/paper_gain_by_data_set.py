"""Where quadratic neurons help, and where they do not

Cross-validated accuracy with default settings on 26 data sets, from `results/defaults.md`: logistic
regression (a linear layer), the same with products of all features (a quadratic layer), and
`QuadraticClassifier`, which chooses among these and networks with a hidden layer. If the classes
are nearly linear, the products do not help, and on a few data sets they harm.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from quadric.plotting import COLORS

root = Path(__file__).parents[2]  # a clone of the repository
text = (root / "results" / "defaults.md").read_text(encoding="utf-8")
table = text.split("## Classification: accuracy")[1].split("| **mean rank**")[0]
rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in table.splitlines()]
header, _, *rows = [row for row in rows if row]
places = [header.index(name) for name in ("logistic", "poly-2 logistic", "quadric")]
scores = 100 * np.array([[float(row[k]) for k in places] for row in rows])
order = np.argsort(scores[:, 2] - scores[:, 0])
names = [rows[k][0] for k in order]
linear, products, chosen = scores[order].T

y = np.arange(len(names))
fig, ax = plt.subplots(figsize=(7.5, 7.5), layout="constrained")
ax.hlines(y, linear, chosen, color="#BBBBBB", linewidth=2, zorder=1)
ax.plot(linear, y, "o", color=COLORS[0], label="linear layer")
ax.plot(products, y, "s", color=COLORS[1], markersize=5, label="quadratic layer")
ax.plot(chosen, y, "D", color=COLORS[2], markersize=5, label="QuadraticClassifier")
ax.set_yticks(y, names, fontsize=8)
ax.set(xlabel="correct predictions (%)", ylim=(-0.8, len(names) - 0.2))
ax.grid(axis="x", alpha=0.3)
ax.legend(loc="lower left")
ax.set_title("Accuracy of linear and quadratic models on 26 data sets")
