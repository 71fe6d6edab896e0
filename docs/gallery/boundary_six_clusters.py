"""Six clusters, six neurons

The second example of the paper: one layer of six quadratic neurons, one per cluster, trained by
per-sample SGD. Each curve is the exact boundary of one neuron. Every neuron encloses its own
cluster or cuts it off from the others, without a hidden layer.
"""

import matplotlib.pyplot as plt
import numpy as np

from quadric import Network, datasets
from quadric.plotting import plot_clusters

X, y = datasets.clusters(per_class=300, rng=0)
net = Network.create(2, [("quadratic", 6, "logistic")], init="normal", scale=0.005, rng=0)
net.fit(X, np.eye(6)[y], learning_rate=0.001, epochs=1000, rng=0)
accuracy = (net.predict(X) == y).mean()

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
plot_clusters(net, X, y, ax, size=10)
ax.set(xlabel="$x_1$", ylabel="$x_2$")
ax.set_title(f"Six quadratic neurons classify {accuracy:.1%} of 1800 points correctly")
