"""XOR with a single neuron

No line separates the two classes of XOR, so a linear neuron fails. A single quadratic neuron
succeeds in two ways. From random initial values it draws a hyperbola. From Q = I it draws an
ellipse, if training stops as soon as all four points are correct.
"""

import matplotlib.pyplot as plt

from quadric import Network, datasets
from quadric.explain import quadrics
from quadric.plotting import plot_regions

X, y = datasets.xor()
fig, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained", sharey=True)
for ax, init in zip(axes, ("normal", "identity"), strict=True):
    net = Network.create(2, [("quadratic", 1, "logistic")], init=init, scale=1.0, rng=0)
    net.layers[0].W, net.layers[0].b = [[0.0, 0.0]], [0.0]

    def solved(epoch, net=net):
        return bool(((net.logits(X)[:, 0] > 0) == y).all())

    if init == "normal":
        history = net.fit(X, y, learning_rate=0.1, epochs=200, rng=0)
    else:
        history = net.fit(X, y, learning_rate=0.01, epochs=1000, rng=0, callback=solved)
    plot_regions(net, X, y, ax, window=(-2.5, 2.5, -2.5, 2.5), size=70, legend=ax is axes[0])
    (conic,) = quadrics(net)
    start = "random Q" if init == "normal" else "Q = I"
    ax.set_title(f"from {start}, {history.epochs} epochs: {conic.kind}", fontsize=10)
    ax.set_aspect("equal")
fig.suptitle("One quadratic neuron separates XOR by a hyperbola or by an ellipse")
