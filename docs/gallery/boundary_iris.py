"""The equation between two species of iris

A single quadratic layer is fitted to the length and width of petals. The line between two regions
is where two species are equally likely. It is a conic, and its equation is written in centimeters,
although the model was trained on standardized features.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticLogisticRegression
from quadric.explain import boundary
from quadric.plotting import plot_conic, plot_regions

iris = load_iris()
X, y = iris.data[:, 2:], iris.target_names[iris.target]
model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y)
tie = boundary(model, "versicolor", "virginica")

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
plot_regions(model, X, y, ax, window=(0.5, 7.5, -0.2, 3.2), size=22)
plot_conic(tie, ax, window=(0.5, 7.5, -0.2, 3.2), linestyle="--", linewidth=1.2)
ax.get_legend().set_loc("upper left")
ax.set(xlabel="petal length (cm)", ylabel="petal width (cm)")
fig.suptitle(f"The boundary between versicolor and virginica is part of an {tie.kind}")
ax.set_title(tie.equation(["length", "width"], precision=2), fontsize=10)
