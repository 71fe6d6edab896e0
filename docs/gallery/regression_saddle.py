"""A saddle is one quadratic neuron

In a designed experiment, the yield often depends on the product of two settings: more heat helps
short reactions and harms long ones. One quadratic neuron with identity output is the response
surface of classical statistics. Its center is the saddle point, where no small change helps.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticRegressor
from quadric.explain import quadrics
from quadric.plotting import plot_prediction

rng = np.random.default_rng(0)
names = ["temperature (°C)", "time (min)"]
X = pd.DataFrame(rng.uniform([60, 5], [120, 45], size=(80, 2)), columns=names)
heat, time = (X[names[0]] - 90) / 30, (X[names[1]] - 25) / 20
y = 70 + 4 * heat + 3 * heat**2 - 14 * heat * time - 6 * time**2 + rng.normal(scale=1.5, size=80)
model = make_pipeline(StandardScaler(), QuadraticRegressor((), alpha=1e-3)).fit(X, y)
(surface,) = quadrics(model)

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
plot_prediction(model, X, y, ax, inputs=names, target="yield (%)")
ax.plot(*surface.center, "x", color="white", markersize=10, markeredgewidth=2.5)
place = f"saddle point at {surface.center[0]:.0f} °C, {surface.center[1]:.0f} min"
ax.set_title("")
fig.suptitle(f"Response surface of one quadratic neuron: {place} (R² {model.score(X, y):.2f})")
