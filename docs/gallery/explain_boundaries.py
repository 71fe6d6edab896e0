"""A model of five inputs in one plane

`plot_boundaries` draws any classifier in the plane of its two most important inputs, or of two that
you name. The other inputs are fixed at a typical row, and only the rows near this plane are drawn,
so the picture shows what the model does there.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticClassifier
from quadric.plotting import plot_boundaries

data = load_wine(as_frame=True)
X = data.data[["alcohol", "hue", "flavanoids", "color_intensity", "proline"]]
y = data.target.map({0: "cultivar 1", 1: "cultivar 2", 2: "cultivar 3"})
model = make_pipeline(StandardScaler(), QuadraticClassifier((), alpha=0.1, random_state=0))
model.fit(X, y)

fig, ax = plt.subplots(figsize=(8, 5.4), layout="constrained")
plot_boundaries(model, X, y, ax)
fig.suptitle("Which wine the model predicts, in the plane of its two most important inputs")
