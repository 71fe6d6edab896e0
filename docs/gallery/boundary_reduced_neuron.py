"""A reduced neuron is two lines

A reduced neuron computes the product (w'x + b)(u'x + c). The product is zero on two lines, and it
is positive where both factors have the same sign. Two lines are enough for XOR, with 2n + 2
parameters per neuron instead of n(n + 1)/2 + n + 1.
"""

import matplotlib.pyplot as plt

from quadric import Network, datasets
from quadric.explain import quadrics
from quadric.geometry import Quadric
from quadric.plotting import COLORS, plot_conic, plot_regions

X, y = datasets.xor()
net = Network.create(2, [("reduced", 1, "logistic")], init="normal", scale=0.5, rng=1)
net.fit(X, y, learning_rate=0.1, epochs=300, rng=0)
neuron = net.layers[0]
zero, window = [[0, 0], [0, 0]], (-2.5, 2.5, -2.5, 2.5)

fig, ax = plt.subplots(figsize=(6, 5.4), layout="constrained")
plot_regions(net, X, y, ax, window=window, size=90)
lines = {"w'x + b = 0": (neuron.W, neuron.b), "u'x + c = 0": (neuron.U, neuron.c)}
for color, (name, (w, b)) in zip(COLORS[2:], lines.items(), strict=False):
    plot_conic(Quadric(zero, w[0], b[0]), ax, window=window, color=color, linewidth=3)
    ax.plot([], [], color=color, linewidth=3, label=name)
regions = ax.get_legend()
ax.legend(handles=ax.lines[-1:-4:-2], loc="lower right", fontsize=9)
ax.add_artist(regions)
ax.set_aspect("equal")
ax.set_title(f"The boundary of a reduced neuron: {quadrics(net)[0].kind}")
