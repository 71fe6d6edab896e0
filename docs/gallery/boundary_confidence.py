"""Levels of confidence are conics, too

The probability of one quadratic neuron depends on x only through z = x'Qx + w'x + b. Every level
of probability is therefore a conic with the same Q and w, and a different b. All curves are exact.
They lie close together where the classes are easy to tell apart.
"""

import matplotlib.pyplot as plt
from scipy.special import logit
from sklearn.datasets import make_moons

from quadric import QuadraticLogisticRegression
from quadric.explain import quadrics
from quadric.geometry import Quadric
from quadric.plotting import plot_conic, plot_regions

X, y = make_moons(300, noise=0.25, random_state=0)
y = 1 - y
model = QuadraticLogisticRegression(C=10).fit(X, y)
(half,) = quadrics(model)

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
plot_regions(model, X, y, ax)
window = (*ax.get_xlim(), *ax.get_ylim())
for p, style in ((0.01, ":"), (0.1, "--"), (0.9, "--"), (0.99, ":")):
    level = Quadric(half.Q, half.w, half.b - logit(p))
    plot_conic(level, ax, window=window, linestyle=style, linewidth=1.3)
regions = ax.get_legend()
names = {"50 %": "-", "10 % and 90 %": "--", "1 % and 99 %": ":"}
curves = [plt.Line2D([], [], color="#222222", linestyle=style) for style in names.values()]
ax.legend(curves, names, title="probability of class 1", fontsize=8, title_fontsize=8, loc=3)
ax.add_artist(regions)
ax.set_title("Every level of probability of a quadratic neuron is an exact conic")
