"""More neurons, finer regions

Two spirals are separated by a hidden layer of k quadratic neurons and a linear output. Each
quadratic neuron adds one conic that the output can combine. The number of parameters is small,
because a quadratic neuron with two inputs has only six.
"""

import matplotlib.pyplot as plt
import numpy as np

from quadric import QuadraticClassifier
from quadric.plotting import plot_regions

rng = np.random.default_rng(0)
t = 1.2 + 9 * np.sqrt(rng.uniform(size=400))
y = np.arange(400) % 2
X = np.column_stack([t * np.cos(t + np.pi * y), t * np.sin(t + np.pi * y)]) / 6
X += rng.normal(scale=0.04, size=X.shape)

fig, axes = plt.subplots(2, 2, figsize=(7.5, 7.5), layout="constrained", sharex=True, sharey=True)
for ax, k in zip(axes.flat, (1, 2, 4, 8), strict=True):
    model = QuadraticClassifier(
        (k,), "tanh", layer_kinds=["quadratic", "linear"], alpha=1e-3, random_state=0, max_iter=2000
    ).fit(X, y)
    plot_regions(model, X, y, ax, legend=False)
    neurons = f"{k} hidden neuron{'s' if k > 1 else ''}"
    ax.set_title(f"{neurons}, {7 * k + 1} parameters: {model.score(X, y):.0%}", fontsize=10)
    ax.label_outer()
fig.suptitle("A few quadratic neurons separate two spirals (accuracy on the drawn points)")
