"""How robust are the predictions?

For each test image, the certified radius is the distance below which no change of the pixels can
change the predicted class. The length of a change is that of a vector of 64 pixels between 0 and 1.
The strongest penalty (C = 0.001) gives the largest radii and the fewest correct predictions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from quadric import QuadraticLogisticRegression
from quadric.certify import radius
from quadric.plotting import COLORS

X, y = load_digits(return_X_y=True)
X = X / 16
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
for color, C in zip(COLORS, (0.001, 0.1, 10.0), strict=False):
    model = QuadraticLogisticRegression(C=C, tol=1e-2).fit(X[:1000], y[:1000])
    found = radius(model, X[1400:])
    right = found.predicted == y[1400:]
    certified = np.sort(found.radius[right])
    share = np.arange(len(certified), 0, -1) / len(right)
    label = f"C = {C:g}: {right.mean():.1%} correct, median radius {np.median(found.radius):.2f}"
    ax.plot(certified, 100 * share, color=color, linewidth=2, label=label)
ax.set(xlabel="length of the change of an image", ylabel="test images certainly correct (%)")
ax.set(xlim=(0, None), ylim=(0, 102))
ax.legend(fontsize=9)
ax.set_title("Test images that stay correct under every change up to a given length")
