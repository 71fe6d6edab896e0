"""Linear, reduced and quadratic neurons

One neuron of each kind is trained on three data sets. A reduced neuron multiplies two linear
functions, so it draws two lines, which solve XOR. A quadratic neuron also draws a circle. No
single neuron separates two spirals: they need a hidden layer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_circles

from quadric import QuadraticClassifier
from quadric.plotting import plot_regions

rng = np.random.default_rng(0)
corners = [[-1, -1], [-1, 1], [1, 1], [1, -1]]
blobs, corner = make_blobs(200, centers=corners, cluster_std=0.35, random_state=0)
t = 1.2 + 6 * np.sqrt(rng.uniform(size=200))
side = np.arange(200) % 2
spirals = np.column_stack([t * np.cos(t + np.pi * side), t * np.sin(t + np.pi * side)]) / 4
sets = {
    "XOR": (blobs, corner % 2),
    "circles": make_circles(200, noise=0.1, factor=0.4, random_state=0),
    "spirals": (spirals + rng.normal(scale=0.05, size=(200, 2)), side),
}
fig, axes = plt.subplots(3, 3, figsize=(8, 8), layout="constrained")
for row, (name, (X, y)) in zip(axes, sets.items(), strict=True):
    for ax, kind in zip(row, ("linear", "reduced", "quadratic"), strict=True):
        model = QuadraticClassifier((), layer_kinds=kind, alpha=1e-3, random_state=0).fit(X, y)
        plot_regions(model, X, y, ax, legend=False)
        ax.set_title(f"{name}, {kind}: {model.score(X, y):.0%}", fontsize=10)
        ax.label_outer()
fig.suptitle("What one neuron of each kind can separate (accuracy on the drawn points)")
