"""Can the probabilities be believed?

Of all test points to which a model gives a probability of 80 %, about 80 % should belong to the
class. The points of a calibrated model lie on the diagonal. Two Gaussian classes with different
covariances are the ideal case for a quadratic neuron. The bars are standard errors.
"""

import matplotlib.pyplot as plt
import numpy as np

from quadric import QuadraticLogisticRegression
from quadric.plotting import plot_calibration

rng = np.random.default_rng(0)
y = rng.integers(2, size=8000)
wide = rng.multivariate_normal([0.5, 0], [[2.5, 0.8], [0.8, 1.5]], size=8000)
X = np.where(y[:, None] == 1, wide, rng.normal(size=(8000, 2)))
model = QuadraticLogisticRegression().fit(X[:4000], y[:4000])

fig = plt.figure(figsize=(5.6, 5.6), layout="constrained")
plot_calibration(model, X[4000:], y[4000:], figure=fig)
fig.suptitle("Predicted probabilities agree with observed frequencies")
