"""How far is each flower from the boundary?

The distance of a point to a conic has an exact solution, and `Quadric.nearest` returns the nearest
point. Each line leads from a flower to the nearest measurements for which the model cannot decide
between two species. Flowers with a short line deserve a second look.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticLogisticRegression
from quadric.explain import boundary
from quadric.plotting import plot_conic, plot_points

iris = load_iris()
rows = iris.target > 0
X, y = iris.data[rows][:, 2:], iris.target_names[iris.target[rows]]
model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y)
tie = boundary(model, "versicolor", "virginica")
nearest, distance = tie.nearest(X), tie.distance(X)

fig, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
window = (2.8, 7.1, 0.8, 2.7)
plot_points(X, y, ax, size=28)
plot_conic(tie, ax, window=window)
ax.plot(*np.stack([X, nearest], axis=1).transpose(2, 1, 0), color="gray", linewidth=0.7, zorder=1)
ax.set_aspect("equal")
ax.legend(title="species", loc="upper left")
ax.set(xlabel="petal length (cm)", ylabel="petal width (cm)")
close = int((distance < 0.1).sum())
ax.set_title(f"{close} of {len(X)} flowers are closer than 1 mm to the boundary")
