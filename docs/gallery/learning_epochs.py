"""A neuron bends its boundary

Per-sample SGD as in the paper: after every point, the neuron moves its conic a little. At the start
Q = I, and the boundary is a single point. Then z becomes negative everywhere, which is right for
most points, and there is no boundary. Finally an ellipse appears, grows and turns until it fits.
"""

import matplotlib.pyplot as plt
import numpy as np

from quadric import Network
from quadric.explain import quadrics
from quadric.plotting import plot_conic, plot_points

rng = np.random.default_rng(0)
X = rng.normal(scale=1.1, size=(300, 2))
y = ((X @ [0.8, 0.6]) ** 2 / 1.6 + (X @ [-0.6, 0.8]) ** 2 / 0.3 < 1).astype(int)
net = Network.create(2, [("quadratic", 1, "logistic")], init="identity", rng=0)
frames = [quadrics(net)[0]]
net.fit(
    X, y, learning_rate=0.02, epochs=64, rng=0, callback=lambda e: frames.append(quadrics(net)[0])
)

fig, axes = plt.subplots(2, 4, figsize=(9, 5), layout="constrained", sharex=True, sharey=True)
for ax, epoch in zip(axes.flat, (0, 1, 2, 4, 8, 16, 32, 64), strict=True):
    plot_points(X, y, ax, size=7)
    plot_conic(frames[epoch], ax, window=(-2.7, 2.7, -2.7, 2.7), linewidth=2.2)
    right = ((frames[epoch].value(X) > 0) == y).mean()
    ax.set_title(f"epoch {epoch}: {frames[epoch].kind}, {right:.0%}", fontsize=9)
    ax.set_aspect("equal")
    ax.set(xlabel="$x_1$", ylabel="$x_2$")
    ax.label_outer()
fig.suptitle("One quadratic neuron learns an ellipse, with the share of points that it has right")
