"""A proof that no conic separates two moons

`separating_quadric` solves a linear program. If no quadric separates two classes, its dual solution
is a proof: weights on a few points for which both classes have the same weighted mean of 1, x, y,
x², xy and y². A quadratic function cannot be positive on one class and negative on the other if
its means are equal. The points with weight are drawn large.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from quadric.convert import separating_quadric
from quadric.plotting import COLORS, plot_points

X, y = make_moons(200, noise=0.04, random_state=0)
proof = separating_quadric(X, y)

fig, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
plot_points(X, y, ax, size=16)
for k in (0, 1):
    used = (y == k) & (proof.weights > 1e-6)
    size = 900 * proof.weights[used]
    ax.scatter(*X[used].T, s=size, facecolors="none", edgecolors=COLORS[k], linewidths=2)
monomials = np.column_stack([np.ones(len(X)), X, X**2, X.prod(axis=1)])
means = [proof.weights[y == k] @ monomials[y == k] for k in (0, 1)]
ax.set_aspect("equal")
ax.set(xlabel="$x$", ylabel="$y$")
ax.legend(title="class", loc="upper right")
count = int((proof.weights > 1e-6).sum())
ax.set_title(f"{count} weighted points prove that no conic separates the moons")
difference = np.abs(means[0] - means[1]).max()
text = f"means of 1, $x$, $y$, $x^2$, $xy$, $y^2$ agree to {difference:.0e}"
ax.text(0.02, 0.03, text, transform=ax.transAxes)
