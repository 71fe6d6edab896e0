"""What each digit looks for

One quadratic layer classifies images of 8 by 8 pixels. The matrix Q of a class has 2080 independent
entries, but a few eigenvectors carry most of it, and they are images. An image that resembles an
eigenvector, or its negative, raises the score of the class if the eigenvalue is positive, and
lowers it if the eigenvalue is negative.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from quadric import QuadraticLogisticRegression
from quadric.plotting import plot_eigenvectors

X, y = load_digits(return_X_y=True)
model = QuadraticLogisticRegression(C=0.1, tol=1e-2).fit(X / 16 - 0.5, y)

fig = plt.figure(figsize=(8.5, 6.8), layout="constrained")
plot_eigenvectors(model, (8, 8), 3, figure=fig)
fig.suptitle("The three strongest eigenvectors of Q for each digit, with their eigenvalues")
