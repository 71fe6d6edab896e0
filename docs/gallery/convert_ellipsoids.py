"""Separated by construction

`separate` computes the smallest ellipse around each class, without training, and turns the
ellipses into one neuron per class. If no two ellipses intersect, the neurons separate the classes
with certainty, also for new points inside the ellipses. Here two ellipses intersect, so `separate`
reports this pair of classes instead of a guarantee.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from quadric import separate
from quadric.plotting import plot_clusters

X, y = make_blobs(400, centers=[[-6, 0], [0, 4], [5, -2], [1, -5]], random_state=3)
X = X @ [[1.0, 0.35], [-0.2, 0.8]]
result = separate(X, y)
shared = int((sum(one.encloses(X).astype(int) for one in result.ellipsoids) > 1).sum())

fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
plot_clusters(result.ellipsoids, X, y, ax, size=14)
ax.legend(title="class", loc="upper left")
ax.set(xlabel="$x_1$", ylabel="$x_2$")
pairs = ", ".join(f"{a} and {b}" for a, b in result.overlapping) or "no two"
ax.set_title(f"The smallest ellipse around each class: {pairs} intersect")
text = f"{shared} of {len(X)} points lie in two ellipses"
ax.text(0.99, 0.02, text, transform=ax.transAxes, ha="right")
