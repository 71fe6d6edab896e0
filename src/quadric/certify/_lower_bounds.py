"""Certified radii of networks that do not fold to one layer: lower bounds without a distance.

For all inputs x + d with |d| <= r, the pre-activations of a layer stay in a box about those of x.
The box is propagated from layer to layer. For a quadratic neuron and inputs that deviate by at most
rho from a,

    |z(a + e) - z(a)| <= |2 Q a + w| rho + |Q| rho^2,

and the bound for a linear neuron is the smaller of |w| rho and the sum of |w_i| times the deviation
of each input. Activations are monotonic, so that the ends of an interval are mapped to the ends of
an interval. The rounding errors of the model are added in each layer (see `_model_and_rounding`).
The radius is the largest r, found by bisection, for which no difference between the score of the
predicted class and another one can vanish.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quadric.certify._model_and_rounding import (
    SLACK,
    TINY,
    CertifiedModel,
    Nearest,
    Rounding,
    gamma,
    majorants,
    norm,
    steps_of,
    underflows,
)
from quadric.checks import Array
from quadric.core import ACTIVATIONS, Layer, Linear, Quadratic
from quadric.geometry import AffineMap

SMALLEST, LARGEST = -960, 660  # exponents of the radii
ACTIVATION_ERROR = 16  # of logistic and tanh, which are at most 1, in units of eps


@dataclass(frozen=True)
class _Stage:
    """One layer of the fold, about the points a (one per row) of its inputs."""

    layer: Layer
    activation: str
    z: Array
    steep: Array  # |2 Q_k a + w_k|
    curve: Array  # |Q_k|
    errors: tuple[Array, Array, float]  # of a pre-activation: constant + slope rho + curve rho^2

    def deviations(self, rho: Array, each: Array | None) -> Array:
        """How far the pre-activations can deviate.

        The inputs deviate by at most rho and, if it is known, each of them by at most `each`.
        """
        rho = rho[:, None]
        found = (self.steep + self.curve * rho) * rho
        if isinstance(self.layer, Linear) and each is not None:
            found = np.minimum(found, each @ np.abs(self.layer.W).T)
        constant, slope, curve = self.errors
        errors = constant[:, None] + (slope[:, None] + curve * rho) * rho
        return (found + errors) * SLACK + underflows(self.layer.n_inputs) * (1 + rho) * (1 + rho)

    def outputs(self, deviations: Array, eps: float) -> Array:
        """How far the activations can deviate."""
        if self.activation == "identity":
            return deviations
        if self.activation == "relu":
            return np.where(self.z + deviations <= 0, 0.0, deviations)  # NaN stays NaN
        g = ACTIVATIONS[self.activation].function
        middle = g(self.z)
        found = np.maximum(g(self.z + deviations) - middle, middle - g(self.z - deviations))
        return found * SLACK + ACTIVATION_ERROR * eps


class LowerBounds:
    """Certified radii of a network whose layers do not fold to one.

    Parameters
    ----------
    model : CertifiedModel
        The model.
    free, sizes : arrays
        The coordinates that may change, and the unit of length along each coordinate.
    """

    def __init__(self, model: CertifiedModel, free: Array, sizes: Array) -> None:
        self.model, network, dtype = model, model.view.network, model.dtype
        self.layers, self.activations = model.view.folded.layers, model.view.folded.activations
        # the second term is for the rounding errors of the points and of the bounds themselves
        self.majorants = [
            replace(one, share=one.share + gamma(2 * len(one.w)))
            for one in majorants(network, dtype)
        ]
        self.spread = steps_of(model.absolute, free, sizes)
        # from steps to the inputs of each layer; the identity for all but the first
        later = [np.ones(layer.n_inputs) for layer in self.layers[1:]]
        self.maps = [
            steps_of(model.change, free, sizes),
            *(AffineMap(one, np.zeros(len(one))) for one in later),
        ]
        self.eps = float(np.finfo(dtype).eps)
        self._known: dict[tuple[int, int | None], tuple[Layer, Array]] = {}

    def run(self, points: Array, nearest: Nearest) -> None:
        """Compute the radii of a block of rows, whose class is known."""
        nearest.distance[:] = np.nan
        for c in np.unique(nearest.predicted).tolist():
            rows = nearest.predicted == c
            with np.errstate(all="ignore"):
                nearest.radius[rows] = self._bisect(self._stages(c, points[rows]))

    def _bisect(self, stages: list[_Stage]) -> Array:
        """The largest r for which all outputs of the last stage stay positive."""

        def holds(r: Array) -> Array:
            rho, each = r, None
            for stage in stages[:-1]:
                each = stage.outputs(stage.deviations(rho, each), self.eps)
                rho = norm(each, axis=1) * SLACK + TINY
                rho = np.where(rho < np.inf, rho, np.nan)  # NaN proves nothing
            left: Array = stages[-1].z - stages[-1].deviations(rho, each)
            return np.asarray((left > 0).all(axis=1))

        # first the largest power of two, then its multiples
        low, high = np.full((2, len(stages[0].z)), SMALLEST)
        high += LARGEST - SMALLEST
        while (high - low > 1).any():
            middle = (low + high) // 2
            good = holds(np.ldexp(1.0, middle))
            low, high = np.where(good, middle, low), np.where(good, high, middle)
        good = holds(np.ldexp(1.0, low))
        low, high = np.where(good, np.ldexp(1.0, low), 0.0), np.ldexp(1.0, high)
        for _ in range(50):
            middle = (low + high) / 2
            good = holds(middle)
            low, high = np.where(good, middle, low), np.where(good, high, middle)
        return low

    def _stages(self, c: int, points: Array) -> list[_Stage]:
        """The layers about the points; the last one computes differences from the score of c."""
        stages: list[_Stage] = []
        a, count = self.model.change.apply(points), len(self.layers)
        for l, activation in enumerate(self.activations):
            last = l == count - 1
            layer, curve = self._layer(l, c if last else None)
            errors = self._errors(l, points, a)
            if last:  # a difference of two scores
                errors = 2 * errors[0], 2 * errors[1], 2 * errors[2]
            z, steep = layer.forward(a)[0], _steepness(layer, a, self.maps[l])
            stages.append(_Stage(layer, activation, z, steep, curve, errors))
            a = a if last else ACTIVATIONS[activation].function(z)
        return stages

    def _layer(self, l: int, c: int | None) -> tuple[Layer, Array]:
        """A layer, or its differences from class c, and |Q_k| for each neuron."""
        if (l, c) not in self._known:
            layer = self.layers[l] if c is None else _differences(self.layers[l], c)
            self._known[l, c] = layer, _curves(layer, self.maps[l])
        return self._known[l, c]

    def _errors(self, l: int, points: Array, a: Array) -> tuple[Array, Array, float]:
        """The rounding errors of a layer about its inputs a; of the first, also of the steps."""
        majorant = self.majorants[l]
        if l > 0:
            M, G = majorant.at(np.abs(a))
            return majorant.share * M, majorant.share * G, majorant.share * majorant.curve
        rounding, A = Rounding(majorant, self.model.absolute, self.model.share), self.maps[0].A
        stretch = float(np.abs(A).max() if A.ndim == 1 else np.linalg.norm(A, 2)) * SLACK
        spread, size = float(norm(self.spread.A)) * SLACK, rounding.size(points)
        growth = rounding.growth(a, size, gamma(points.shape[1]) * size, stretch, spread)
        return *growth, rounding.curve(stretch, spread)


def _steepness(layer: Layer, a: Array, back: AffineMap) -> Array:
    """|2 Q_k a + w_k| for each row of a, in the coordinates of the steps."""
    if not isinstance(layer, Quadratic):
        return np.broadcast_to(norm(back.pull_back(layer.W), axis=1), (len(a), layer.n_outputs))
    neurons = zip(layer.Q, layer.W, strict=True)
    return np.column_stack([norm(back.pull_back(2 * (a @ Q) + w), axis=1) for Q, w in neurons])


def _curves(layer: Layer, back: AffineMap) -> Array:
    """|Q_k| for each neuron, in the coordinates of the steps."""
    if not isinstance(layer, Quadratic):
        return np.zeros(layer.n_outputs)
    return np.array([np.linalg.norm(back.pull_back(back.pull_back(Q).T), 2) for Q in layer.Q])


def _differences(layer: Layer, c: int) -> Layer:
    """The layer of the differences between the score of class c and those of the other classes."""
    arrays: dict[str, Any] = layer.arrays()
    if layer.n_outputs == 1:  # the scores are 0 and z
        return type(layer).of(**{name: array if c else -array for name, array in arrays.items()})
    others = np.arange(layer.n_outputs) != c
    found = {name: array[[c]] - array[others] for name, array in arrays.items() if name != "packed"}
    if "packed" in arrays:
        found["packed"] = arrays["packed"][:, [c]] - arrays["packed"][:, others]
    return type(layer).of(**found)
