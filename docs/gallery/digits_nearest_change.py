"""What has to change to make it another digit

`quadric.certify.radius` computes the smallest change of an image for which the predicted class
changes. For a quadratic layer this is an exact distance, not an attack that may fail. The changes
are spread over many pixels, and some of them are small. The limits of a pixel, 0 and 1, are not
considered.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from quadric import QuadraticLogisticRegression
from quadric.certify import radius

X, y = load_digits(return_X_y=True)
X = X / 16
model = QuadraticLogisticRegression(C=0.1, tol=1e-2).fit(X[:1500], y[:1500])
rows = [1500 + int(np.flatnonzero(y[1500:] == k)[1]) for k in (0, 1, 3, 4, 7, 8)]
found = radius(model, X[rows])

fig, axes = plt.subplots(3, 6, figsize=(8.6, 4.8), layout="constrained")
for k, row in enumerate(rows):
    change = found.nearest[k] - X[row]
    limit = np.abs(change).max()
    gray = {"cmap": "gray_r", "vmin": 0, "vmax": 1}
    axes[0, k].imshow(X[row].reshape(8, 8), **gray)
    axes[1, k].imshow(change.reshape(8, 8), cmap="PuOr", vmin=-limit, vmax=limit)
    axes[2, k].imshow(found.nearest[k].reshape(8, 8), **gray)
    axes[0, k].set_title(f"predicted {found.predicted[k]}", fontsize=9)
    axes[1, k].set_title(f"length {found.distance[k]:.2f}", fontsize=9)
    axes[2, k].set_title(f"about to be {found.becomes[k]}", fontsize=9)
for ax, name in zip(axes[:, 0], ("test image", "smallest change", "changed image"), strict=True):
    ax.set_ylabel(name)
plt.setp(axes, xticks=[], yticks=[])
fig.suptitle("The smallest change of a test image that changes its class")
