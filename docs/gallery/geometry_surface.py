"""A boundary in space

With three inputs, the boundary of a quadratic neuron is a surface. In these simulated measurements,
the healthy range is an ellipsoid, because values that are too low and values that are too high are
both suspicious. A linear neuron could only cut off one side.
"""

import matplotlib.pyplot as plt
import numpy as np

from quadric import QuadraticLogisticRegression
from quadric.explain import boundary
from quadric.plotting import COLORS, plot_surface

rng = np.random.default_rng(0)
spread = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.0]]
healthy = rng.multivariate_normal([0, 0, 0], 0.4 * np.array(spread), 250)
direction = rng.normal(size=(120, 3))
diseased = 2.6 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
diseased += rng.normal(scale=0.25, size=diseased.shape)
X, y = np.vstack([healthy, diseased]), np.repeat(["healthy", "diseased"], [250, 120])
model = QuadraticLogisticRegression(C=10).fit(X, y)
surface = boundary(model, "healthy", "diseased")

fig = plt.figure(figsize=(6.5, 5.8), layout="constrained")
ax = fig.add_subplot(projection="3d")
for label, color in zip(("healthy", "diseased"), COLORS, strict=False):
    ax.scatter(*X[y == label].T, s=8, color=color, label=label, depthshade=False)
plot_surface(surface, ax, color=COLORS[0], alpha=0.25, names=["first", "second", "third"])
ax.legend(loc="upper left")
ax.set_title(f"The healthy range is an {surface.kind}: {model.score(X, y):.1%} correct")
