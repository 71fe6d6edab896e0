"""Draw the pictures of the pages: `python docs/assets/pictures.py [DIRECTORY [NAME ...]]`."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.animation import FuncAnimation
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticLogisticRegression, datasets
from quadric.apps.paper import _clusters as clusters, _xor as xor
from quadric.explain import boundary, quadrics
from quadric.geometry import Quadric
from quadric.plotting import (
    animate,
    plot_eigenvectors,
    plot_slices,
    plot_surface,
)


def draw_xor() -> Figure:
    return xor.draw(*(xor.train(variant, 0) for variant in xor.VARIANTS[:2]))


def draw_clusters() -> Figure:
    """The paper's six clusters, with one quadratic neuron per class."""
    return clusters.draw(clusters.train("quadratic", seed=0, epochs=1000))


def draw_surfaces() -> Figure:
    figure = Figure(figsize=(10, 4.6), layout="constrained", dpi=150)
    ellipsoid = Quadric([[1, 0.3, 0], [0.3, 0.6, 0.2], [0, 0.2, 0.35]], [0.5, 0, -0.2], -1.5)
    hyperboloid = Quadric([[1, 0.2, 0.1], [0.2, 0.8, 0], [0.1, 0, -0.5]], [0, 0.3, 0], -1)
    for k, (surface, color) in enumerate(((ellipsoid, "#0072B2"), (hyperboloid, "#D55E00"))):
        ax = figure.add_subplot(1, 2, k + 1, projection="3d")
        plot_surface(surface, ax, color=color, alpha=0.7)
        ax.set_title(f"{surface.kind}\n{surface.equation(precision=2)}", fontsize=10)
    return figure


def draw_slices() -> Figure:
    """The boundary between benign and malignant in ten features, in slices through the mean."""
    data = load_breast_cancer()
    X, y = data.data[:, :10], data.target
    model = make_pipeline(StandardScaler(), QuadraticLogisticRegression(C=1.0)).fit(X, y)
    surface = boundary(model, 1, 0)
    names = [name.removeprefix("mean ") for name in data.feature_names[:10]]
    figure = plot_slices(surface, names=names, X=X, y=data.target_names[y])
    figure.suptitle(
        f"breast cancer, ten features: {surface.kind}, cut by planes through the mean", fontsize=11
    )
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=2, frameon=False, markerscale=2
    )
    return figure


def draw_digits() -> Figure:
    X, y = load_digits(return_X_y=True)
    model = QuadraticLogisticRegression(C=0.1).fit(X / 16 - 0.5, y)
    return plot_eigenvectors(model, (8, 8))


def draw_learning() -> FuncAnimation:
    X, y = datasets.xor()
    net = Network.create(2, [("quadratic", 1, "logistic")], init="identity", rng=0)
    frames = [quadrics(net)]

    def record(epoch: object) -> None:
        frames.append(quadrics(net))

    net.fit(X, y, learning_rate=0.01, epochs=120, rng=0, callback=record)
    shown = frames[::3]
    titles = [f"epoch {3 * i}: {frame[0].kind}" for i, frame in enumerate(shown)]
    return animate(shown, X, y, titles=titles)


PICTURES = {
    "xor.png": draw_xor,
    "clusters.png": draw_clusters,
    "surfaces.png": draw_surfaces,
    "slices.png": draw_slices,
    "digits.png": draw_digits,
    "learning.gif": draw_learning,
}


def main(directory: Path, *names: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names or PICTURES:
        picture, path = PICTURES[name](), directory / name
        if isinstance(picture, Figure):
            picture.savefig(path, dpi=110)
        else:
            picture.save(path, writer="pillow")
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent, *sys.argv[2:])
