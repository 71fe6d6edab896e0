"""The nearest change of class: class scores, and distances to the ties with every rival class.

The scores and the spectra of their differences are kept for further calls with the same model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from quadric.certify._distances import (
    EPS,
    SAFETY,
    Distances,
    Problems,
    Spectrum,
    distances,
    gamma,
    quick_bounds,
)
from quadric.certify._model import CertifiedModel
from quadric.certify._rounding import SLACK, TINY, Rounding, norm, rounding_of
from quadric.checks import Array
from quadric.geometry import AffineMap
from quadric.network import Network
from quadric.utils import check_limit

MOST_SEARCHES = 4  # for one model: one for each set of free inputs and units
MOST_BYTES = 2**28  # of the eigenvectors of a search that is kept


@dataclass(frozen=True)
class Scores:
    """Scores z_k = u'Q_k u + w_k'u + b_k of the classes, where u = A x + t.

    The scores are evaluated in u, which is well scaled, and differentiated by x, the coordinates in
    which distances are measured. A model with one output has the scores 0 and z.
    """

    Q: Array  # (K, n, n), symmetric
    W: Array
    b: Array
    change: AffineMap
    rounding: Rounding
    stored: float  # the relative error with which parameters are stored
    _searches: dict[bytes, "Search"] = field(default_factory=dict)

    def search(self, free: Array, sizes: Array) -> "Search":
        """The search with these free coordinates and units, kept unless it is large."""
        key = free.tobytes() + sizes.tobytes()
        if (known := self._searches.get(key)) is not None:
            return known
        made, K = Search(self, free, sizes), len(self.b)
        if 8 * len(free) ** 2 * (K * (K - 1) // 2) <= MOST_BYTES:
            self._searches[key] = made
            for old in list(self._searches)[:-MOST_SEARCHES]:
                self._searches.pop(old, None)  # another thread may have removed it
        return made

    def at(self, X: Array, moved: Array) -> tuple[Array, list[Array], Array, Array]:
        """u and its products with each Q_k, the scores, and bounds on the scores' errors.

        `moved` is a bound on the length of the error of u.
        """
        u = self.change.apply(X)
        V = [u @ Q for Q in self.Q]
        scores = [((v + w) * u).sum(axis=1) + b for v, w, b in zip(V, self.W, self.b, strict=True)]
        z = np.stack(scores, axis=1)
        # an error of u acts through the gradient, whose length is at most 2 |Q| |u| + |w|
        size, moved = norm(u, axis=1)[:, None], moved[:, None]
        Q, w = norm(self.Q, axis=(1, 2)), norm(self.W, axis=1)
        error = gamma(2 * u.shape[1]) * ((Q * size + w) * size + np.abs(self.b))
        error = error + underflows(u.shape[1]) * (1 + size) * (1 + size)
        return u, V, z, error + moved * (2 * Q * (size + moved) + w)


def underflows(n: int) -> float:
    """A bound on the sum of the errors of products that underflow, for n inputs of at most 1."""
    return 4 * (n + 1) ** 2 * TINY


def class_scores(model: CertifiedModel) -> Scores:
    """The scores of a model; raise ValueError if it does not fold to one layer."""
    view = model.view
    if len(view.folded.layers) > 1:
        raise ValueError(
            f"model must fold to a single quadratic layer. This {view.name} folds to "
            f"{len(view.folded.layers)} layers, so its distances have no exact solution. Train "
            "with hidden_layer_sizes=(), or with activation='identity' and one quadratic layer."
        )
    Q, W, b = view.one_layer.Q, view.one_layer.W, view.one_layer.b
    if len(b) == 1:
        Q, W, b = (np.concatenate([np.zeros_like(part), part]) for part in (Q, W, b))
    rounding = rounding_of(view.network, model.dtype, model.absolute, model.share)
    return Scores(Q, W, b, model.change, rounding, float(np.finfo(view.network.dtype).eps))


def steps_of(change: AffineMap, free: Array, sizes: Array) -> AffineMap:
    """The linear part of a map, from steps in the free coordinates in units of `sizes`."""
    if change.A.ndim == 1 and len(free) == len(sizes):
        return AffineMap(change.A * sizes, np.zeros(len(change.t)))
    return AffineMap(change.matrix[:, free] * sizes[free], np.zeros(len(change.t)))


@dataclass(frozen=True)
class Nearest:
    """What is known about each row; the arrays are filled in place."""

    distance: Array
    radius: Array
    step: Array
    predicted: Array
    becomes: Array

    @classmethod
    def unknown(cls, predicted: Array, n: int) -> "Nearest":
        """Only the class of each row is known so far; n coordinates are free."""
        distance, radius = np.full((2, len(predicted)), np.inf)
        step = np.zeros((len(predicted), n))
        return cls(distance, radius, step, predicted, predicted.copy())

    def part(self, rows: slice) -> "Nearest":
        """Views of some rows."""
        return Nearest(*(array[rows] for array in self.__dict__.values()))


@dataclass(frozen=True)
class _Block:
    """The scores and gradients of all classes at a block of rows, with bounds on their errors."""

    z: Array
    z_error: Array
    slopes: Sequence[Array]
    slope_error: Array

    def tie(self, c: int, k: int, rows: Array) -> Problems:
        """F = z_c - z_k and its gradient.

        F is not negative, except by rounding errors, because the model predicts class c.
        """
        F = np.maximum(self.z[rows, c] - self.z[rows, k], 0.0)
        F_error = (self.z_error[rows, c] + self.z_error[rows, k] + EPS * np.abs(F)) * (1 + 8 * EPS)
        g_error = (self.slope_error[rows, c] + self.slope_error[rows, k]) * (1 + 8 * EPS)
        return Problems(F, self.slopes[c][rows] - self.slopes[k][rows], F_error, g_error)


class Search:
    """The nearest changes of class in the free coordinates.

    Parameters
    ----------
    scores : Scores
        The scores of the classes.
    free : array of int
        The coordinates that may change.
    sizes : array
        The unit of length along each coordinate.
    """

    def __init__(self, scores: Scores, free: Array, sizes: Array) -> None:
        # from steps in the free coordinates, in their units, to steps of u
        self.change = steps_of(scores.change, free, sizes)
        self.scores, A = scores, self.change.A
        largest = np.abs(A).max() if A.ndim == 1 else np.linalg.norm(A, 2) if A.size else 0.0
        self.stretch = float(largest) * (1 + 1e-6)
        # rounding errors of products with A grow with |A|, whose norm can be larger than that of A
        self.size_A = self.stretch if A.ndim == 1 else float(norm(A)) * SLACK
        spread = steps_of(scores.rounding.absolute, free, sizes)
        self.spread = float(norm(spread.A)) * SLACK
        self.sizes_Q = norm(scores.Q, axis=(1, 2))
        self.sizes_W = norm(scores.W, axis=1)
        K = len(scores.b)
        check_limit(
            8 * len(free) ** 2 * (K * (K - 1) // 2 + 4),
            f"the eigenvectors for all pairs of {K} classes",
            "Use fewer inputs or hold some of them fixed.",
        )
        self._spectra: dict[tuple[int, int], Spectrum] = {}

    def prepare(self) -> list[Callable[[], object]]:
        """The calls that compute the spectra of all pairs of classes."""
        K = len(self.scores.b)
        return [partial(self.spectrum, c, k) for c in range(K) for k in range(c + 1, K)]

    def spectrum(self, c: int, k: int) -> Spectrum:
        """The spectrum of the second-order part of z_c - z_k, computed once per pair."""
        if c > k:
            return self.spectrum(k, c).negated()
        if (c, k) not in self._spectra:
            D = self.scores.Q[c] - self.scores.Q[k]
            A = self.change.pull_back(self.change.pull_back(D).T)
            sizes = float((self.sizes_Q[c] + self.sizes_Q[k]) * self.stretch * self.size_A)
            model = 2 * self.scores.rounding.curve(self.stretch, self.spread)
            error = gamma(2 * len(D)) * sizes + model + underflows(len(D)) * (1 + self.size_A) ** 2
            likely = (len(D) * EPS + SAFETY * self.scores.stored) * sizes
            self._spectra[c, k] = Spectrum.of(A / 2 + A.T / 2, error, likely)
        return self._spectra[c, k]

    def run(self, X: Array, nearest: Nearest) -> None:
        """Find the nearest changes of class for a block of rows, whose class is known."""
        block = self._block(X)
        for c in np.unique(nearest.predicted).tolist():
            self._visit_rivals(c, np.flatnonzero(nearest.predicted == c), block, nearest)

    def tie(self, X: Array, c: int, k: int) -> Distances:
        """The distances to the tie of classes c and k; 0 where class k has the higher score."""
        return distances(self.spectrum(c, k), self._block(X).tie(c, k, np.arange(len(X))))

    def _block(self, X: Array) -> _Block:
        """The scores at a block of rows, with bounds on all errors."""
        rounding = self.scores.rounding
        size = rounding.size(X)
        moved = gamma(X.shape[1]) * size
        u, V, z, z_error = self.scores.at(X, moved)
        slopes = [self.change.pull_back(2 * v + w) for v, w in zip(V, self.scores.W, strict=True)]
        length = norm(u, axis=1)[:, None]
        steep, more = 2 * self.sizes_Q * length + self.sizes_W, 2 * self.sizes_Q * moved[:, None]
        slope_error = gamma(3 * u.shape[1]) * steep * self.size_A + more * self.stretch
        slope_error += underflows(u.shape[1]) * (1 + length) * (1 + self.size_A)
        constant, slope = rounding.growth(u, size, moved, self.stretch, self.spread)
        return _Block(z, z_error + constant[:, None], slopes, slope_error + slope[:, None])

    def _visit_rivals(self, c: int, rows: Array, block: _Block, nearest: Nearest) -> None:
        """Visit the rivals of class c at each row, the most promising first."""
        rivals = [k for k in range(len(self.scores.b)) if k != c]
        bounds = np.empty((len(rows), len(rivals)))
        for j, k in enumerate(rivals):
            bounds[:, j] = quick_bounds(self.spectrum(c, k), block.tie(c, k, rows))
        order = np.argsort(bounds, axis=1)
        for rival in order.T:
            bound = np.take_along_axis(bounds, rival[:, None], axis=1)[:, 0]
            is_near = bound < nearest.distance[rows]
            far = rows[~is_near]  # cannot be nearer, but limits what is proven
            nearest.radius[far] = np.minimum(nearest.radius[far], bound[~is_near])
            for j in np.unique(rival[is_near]).tolist():
                self._solve(c, rivals[j], rows[is_near & (rival == j)], block, nearest)

    def _solve(self, c: int, k: int, rows: Array, block: _Block, nearest: Nearest) -> None:
        """Compute the distances to the tie of classes c and k."""
        found = distances(self.spectrum(c, k), block.tie(c, k, rows))
        nearest.radius[rows] = np.minimum(nearest.radius[rows], found.radii)
        nearer = found.lengths < nearest.distance[rows]
        better = rows[nearer]
        nearest.distance[better] = found.lengths[nearer]
        nearest.step[better] = found.S[nearer] @ found.V.T
        nearest.becomes[better] = k


# ------------------------------------------------------------- kept for further calls


_known: WeakKeyDictionary[Network, tuple[list[Any], Scores]] = WeakKeyDictionary()


def kept_scores(model: CertifiedModel) -> Scores:
    """The scores and searches of earlier calls, unless any number of the model has changed."""
    network, state = model.view.network, _state(model)
    known = _known.get(network)
    if known is None or known[0] != state:
        known = _known[network] = state, class_scores(model)
    return known[1]


def _state(model: CertifiedModel) -> list[Any]:
    """Everything that scores and their rounding errors depend on, as values to compare."""
    network = model.view.network
    arrays = [array for layer in network.layers for array in layer.arrays().values()]
    arrays += [*model.change, *model.absolute, model.held]
    kinds = [type(layer) for layer in network.layers]
    others = [kinds, network.activations, model.share, model.dtype]
    return [others, *((array.dtype, array.shape, array.tobytes()) for array in arrays)]
