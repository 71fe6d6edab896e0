"""Which measurements matter, and how

The importance of an input is its mean absolute effect on the score z: of its linear term, its
square and half of its products with other inputs. The squares and products are what a linear model
would miss.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticLogisticRegression
from quadric.explain import explain
from quadric.plotting import plot_importances

data = load_breast_cancer(as_frame=True)
X = data.data.iloc[:, :10].rename(columns=lambda name: name.removeprefix("mean "))
y = data.target_names[data.target]
model = make_pipeline(StandardScaler(), QuadraticLogisticRegression(C=0.1)).fit(X, y)

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
plot_importances(explain(model, X), ax)
ax.set_title("Importance of ten measurements of a tumor for benign or malignant")
