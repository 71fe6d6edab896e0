"""Passes and steps of the torch modules, and what the plots show."""

from collections.abc import Callable
from itertools import product
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib import pyplot
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from torch import nn

from benchmarks.identity._analyses import classifiers
from benchmarks.identity._hashes import Results, outcome
from benchmarks.identity._training import SPECIES
from quadric import Network, certify, datasets, explain, plotting, separate, torch as qt
from quadric.geometry import Quadric

LAYERS = [("linear", 4, "tanh"), ("quadratic", 2, "softmax")]
MODULES: dict[str, Callable[[], nn.Module]] = {
    "Linear": lambda: qt.Linear(5, 3),
    "Quadratic": lambda: qt.Quadratic(5, 3),
    "Quadratic, no linear part": lambda: qt.Quadratic(5, 3, bias=False, linear=False),
    "Reduced": lambda: qt.Reduced(5, 3),
    "QuadraticRNN": lambda: qt.QuadraticRNN(5, 4, 2, bidirectional=True),
    "QuadraticRNNCell": lambda: qt.QuadraticRNNCell(5, 4, nonlinearity="relu"),
    "stack": lambda: nn.Sequential(qt.Linear(5, 4), nn.Tanh(), qt.Reduced(4, 3)),
    "head": lambda: qt.replace_head(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))),
    "network": lambda: qt.from_network(Network.create(5, LAYERS, rng=0, dtype="float32")),
}


def modules() -> Results:
    """Forward and backward passes of the modules, and three steps of SGD."""
    for name, dtype in product(MODULES, (torch.float32, torch.float64)):
        torch.manual_seed(0)
        module = MODULES[name]().to(dtype)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
        X = torch.randn(7, 5, dtype=dtype, requires_grad=True)
        for step in range(3):
            optimizer.zero_grad()
            result = module(X)
            output = result[0] if isinstance(result, tuple) else result
            output.square().mean().backward()
            gradients = [parameter.grad.clone() for parameter in module.parameters()]
            yield f"{name}/{dtype}/step {step}", [result, X.grad.clone(), gradients]
            optimizer.step()
        state = dict(module.state_dict())
        yield f"{name}/{dtype}/trained", [state, repr(module), outcome(qt.to_network, module)]
    x, packed = torch.arange(6.0).reshape(2, 3), torch.linspace(-1, 1, 12).reshape(6, 2)
    matrices = qt.functional.unpack(packed)
    yield "functional/quadratic", qt.functional.quadratic(x, packed)
    yield "functional/packed", [matrices, qt.functional.pack(matrices)]


def plots() -> Results:
    """What the plots show, without the images."""
    matplotlib.use("Agg")
    model, X = classifiers()["named"]
    y = model.predict(X)
    net = Network.create(2, [("quadratic", 1, "logistic")], rng=0)
    points, labels = datasets.clusters(20)
    separated = separate(points, labels).network
    bowl = Quadric(np.diag([1, 2, -3]), [0, 1, 0], -3)
    calls: dict[str, Callable[[], Any]] = {
        "conic": lambda: plotting.plot_conic(Quadric([[1, 0], [0, 2]], [0, 1], -3)),
        "surface": lambda: plotting.plot_surface(bowl),
        "slice": lambda: plotting.plot_slice(bowl, [0, 1]),
        "slices": lambda: plotting.plot_slices(bowl),
        "points": lambda: plotting.plot_points(points, labels),
        "clusters": lambda: plotting.plot_clusters(separated, points, labels),
        "regions": lambda: plotting.plot_regions(separated, points, labels),
        "boundaries": lambda: plotting.plot_boundaries(model, X, SPECIES),
        "prediction": lambda: plotting.plot_prediction(model, X),
        "importances": lambda: plotting.plot_importances(explain.explain(model, X)),
        "eigenvectors": lambda: plotting.plot_eigenvectors(model, (2, 2)),
        "spectrum": lambda: plotting.plot_spectrum(explain.spectrum(model)),
        "similarity": lambda: plotting.plot_similarity(model),
        "truncation": lambda: plotting.plot_truncation(model, X, SPECIES),
        "dependence": lambda: plotting.plot_dependence(model, X),
        "confusion": lambda: plotting.plot_confusion(model, X, SPECIES),
        "calibration": lambda: plotting.plot_calibration(model, X, SPECIES),
        "certified": lambda: plotting.plot_certified_accuracy(certify.radius(model, X), y),
        "history": lambda: plotting.plot_history(net.fit(*datasets.xor(), epochs=5)),
    }
    for name, call in calls.items():
        result, notes = outcome(call)
        yield name, [result if isinstance(result, Exception) else drawn(), notes]
        pyplot.close("all")


# Only lines, markers, areas, images and texts; where they are on the page depends on fonts.
SHOWN: dict[type[Artist], tuple[str, ...]] = {
    Line2D: ("get_xydata", "get_color", "get_label"),
    Collection: ("get_array", "get_offsets", "get_facecolor", "get_label"),
    AxesImage: ("get_array", "get_extent"),
    Rectangle: ("get_bbox", "get_facecolor"),
    Text: ("get_text",),
}


def drawn() -> Any:
    """Return the numbers, colors and texts in the open figures."""
    found: list[Any] = []
    for number, (kind, methods) in product(pyplot.get_fignums(), SHOWN.items()):
        for artist in pyplot.figure(number).findobj(kind):
            values = [getattr(artist, method)() for method in methods]
            paths = [path.vertices for path in getattr(artist, "get_paths", list)()]
            found.append([kind.__name__, [plain_value(value) for value in values], paths])
    return found


def plain_value(value: Any) -> Any:
    """Return a value of an artist as an array or text."""
    if isinstance(value, np.ma.MaskedArray):
        return [value.filled(0), np.ma.getmaskarray(value)]
    return np.asarray(value) if isinstance(value, Bbox) else value
