"""The MNIST table of the paper, repeated

Test accuracy of networks with 784 inputs, h hidden neurons and 10 outputs after 5 epochs. The lines
are our means of 60 runs with their standard deviations, from `results/mnist.csv`. The open circles
are the numbers that the paper prints. 170 of all 180 means agree within two standard errors.
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from quadric.plotting import COLORS

root = Path(__file__).parents[2]  # a clone of the repository
text = (root / "results" / "mnist.csv").read_text(encoding="utf-8")
rows = list(csv.DictReader(text.splitlines()))
names = {"ann": "linear", "rpqnn": "reduced", "qnn": "quadratic"}

fig, axes = plt.subplots(1, 4, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, size in zip(axes, ("600", "1200", "6000", "60000"), strict=True):
    for color, (model, name) in zip(COLORS, names.items(), strict=False):
        cells = [
            r for r in rows if (r["train_size"], r["epochs"], r["model"]) == (size, "5", model)
        ]
        columns = ("hidden", "mean", "std", "paper mean")
        h, mean, std, paper = np.array([[float(r[c]) for c in columns] for r in cells]).T
        ax.errorbar(h, mean, std, color=color, capsize=3, linewidth=1.8, label=f"{name} output")
        ax.plot(h, paper, "o", color=color, fillstyle="none", markersize=8)
    ax.set_title(f"{int(size):,} images".replace(",", " "), fontsize=10)
    ax.set(xlabel="hidden neurons", xticks=h, ylim=(0, 100))
axes[0].set_ylabel("correct test images (%)")
axes[0].plot([], [], "o", color="gray", fillstyle="none", markersize=8, label="the paper")
axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="lower right", fontsize=9)
fig.suptitle("MNIST after 5 epochs: the fewer images, the larger the gain of quadratic neurons")
