"""When the extra parameters pay off

A quadratic layer has many more parameters than a linear one: 21 450 instead of 650 for digits. With
40 images, the default penalty keeps it from overfitting, and the difference is within the spread of
the splits. With more images, products of pixels give the quadratic layer a small advantage.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from quadric import QuadraticLogisticRegression
from quadric.plotting import COLORS

X, y = load_digits(return_X_y=True)
X, sizes = X / 16, (40, 80, 160, 320)
models = {
    "linear layer": LogisticRegression(),
    "quadratic layer": QuadraticLogisticRegression(tol=1e-2),
}
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
for color, (name, model) in zip(COLORS, models.items(), strict=False):
    scores = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        test = order[320:]
        fits = [model.fit(X[order[:n]], y[order[:n]]).score(X[test], y[test]) for n in sizes]
        scores.append(fits)
    mean, spread = 100 * np.mean(scores, axis=0), 100 * np.std(scores, axis=0)
    ax.errorbar(sizes, mean, spread, color=color, marker="o", capsize=3, linewidth=2, label=name)
ax.set_xscale("log")
ax.set_xticks(sizes, map(str, sizes))
ax.minorticks_off()
ax.set(xlabel="training images", ylabel="correct test images (%)")
ax.legend(loc="lower right")
ax.set_title("Accuracy on digits by the number of training images (3 random splits)")
