"""Slices through a boundary in four dimensions

The boundary between two species of iris is a surface in the space of all four measurements. Planes
through the mean of the data cut it in exact conics, one for each pair of measurements. A curve need
not separate the drawn points, because their other two measurements differ from the mean.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticLogisticRegression
from quadric.explain import boundary
from quadric.plotting import plot_slices

iris = load_iris()
X, y = iris.data, iris.target_names[iris.target]
model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y)
surface = boundary(model, "versicolor", "virginica")
both = y != "setosa"

fig = plt.figure(figsize=(9, 6), layout="constrained")
plot_slices(surface, names=iris.feature_names, X=X[both], y=y[both], figure=fig)
handles, labels = fig.axes[0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, markerscale=2)
fig.suptitle("The boundary between versicolor and virginica, cut by six planes through the mean")
