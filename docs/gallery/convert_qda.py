"""Quadratic discriminant analysis as a network

Quadratic discriminant analysis (QDA) fits one Gaussian per class. Its score for a class is a
quadratic function, so `from_qda` converts it exactly to one layer with the same probabilities.
Training the network further lets the classes deviate from Gaussians.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.metrics import log_loss

from quadric.convert import from_qda
from quadric.plotting import plot_regions

wine = load_wine()
X, y = wine.data[:, [6, 9]], wine.target
qda = QuadraticDiscriminantAnalysis().fit(X, y)
net = from_qda(qda)
difference = np.abs(net.forward(X) - qda.predict_proba(X)).max()

fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained", sharey=True)
trained = net.copy()
trained.fit(X, np.eye(3)[y], solver="lbfgs", l2=0.001, epochs=200)
titles = (f"converted (probabilities agree to {difference:.0e})", "trained further")
for ax, one, title in zip(axes, (net, trained), titles, strict=True):
    plot_regions(one, X, y, ax, legend=False, size=20)
    loss = log_loss(y, one.forward(X))
    ax.set_title(f"{title}: log-loss {loss:.3f}", fontsize=10)
    ax.set(xlabel="flavanoids", ylabel="color intensity")
    ax.label_outer()
handles, labels = axes[1].get_legend_handles_labels()
axes[1].legend(handles, [f"cultivar {int(k) + 1}" for k in labels], loc="lower right", fontsize=9)
fig.suptitle("QDA on wine is a quadratic layer, which can be trained further")
