"""How far an input can move before the predicted class can change.

`radius` is the public function. `Search` finds the nearest change of class: it writes the class
scores as quadratic functions (`Scores`) and computes the distances to the ties with every rival
class, with a proven lower bound for each (`_distances`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from quadric.certify._distances import (
    Distances,
    Problems,
    Spectrum,
    distances,
    quick_bounds,
)
from quadric.certify._lower_bounds import LowerBounds
from quadric.certify._model_and_rounding import (
    EPS,
    SAFETY,
    SLACK,
    CertifiedModel,
    Nearest,
    Rounding,
    certified_model,
    gamma,
    norm,
    rounding_of,
    steps_of,
    underflows,
    view_of_classifier,
)
from quadric.checks import Array, check_choice
from quadric.geometry import AffineMap
from quadric.utils import blas_threads, check_limit, one_blas_thread

BLOCK = 2**19  # numbers in a block of rows


@dataclass(frozen=True)
class Radii:
    """Distances from inputs to the nearest input of another class, one entry per row.

    Parameters
    ----------
    distance : array of shape (n_samples,)
        The computed distance; infinite if no input has another class.
    radius : array of shape (n_samples,)
        The certified radius: the predicted class is the same for every input that is closer than
        this. It is the distance, reduced by a proven bound on the rounding errors in computing it.
    nearest : array of shape (n_samples, n_coordinates)
        The nearest input where the class changes; NaN if there is none.
    predicted, becomes : arrays of shape (n_samples,)
        The class of each row, and the class on the other side of `nearest`. The two are the same
        if no input has another class.
    names : list of str
        The names of the coordinates of `nearest`.
    exact : bool
        Whether distances were computed. For a network that does not fold to one layer, `radius` is
        a lower bound; `distance` and `nearest` are NaN, and `becomes` is `predicted`. If all inputs
        are held fixed, `distance` is infinite for every network.
    """

    distance: Array
    radius: Array
    nearest: Array
    predicted: Array
    becomes: Array
    names: list[str]
    exact: bool = True

    def certified_accuracy(self, y: Any, at: Any = 0.0) -> Array:
        """Compute the share of rows whose class is right and certified up to a given radius.

        Parameters
        ----------
        y : array of shape (n_samples,) or None
            The true classes. If None, every prediction counts as right.
        at : float or array
            The radii.

        Returns
        -------
        array
            One share for each radius. At 0, it is the accuracy of the model.
        """
        right = np.ones(len(self.radius), dtype=bool) if y is None else self.predicted == y
        sorted_radii = np.sort(self.radius[right])
        lower = np.searchsorted(sorted_radii, np.asarray(at, dtype=float), side="left")
        return np.asarray((len(sorted_radii) - lower) / len(self.radius))


def radius(
    model: Any,
    X: Any,
    *,
    units: str = "inputs",
    fixed: Iterable[Any] = (),
    progress: Callable[[float, float, str], object] | None = None,
) -> Radii:
    """Compute how far each input can move in any direction before its predicted class can change.

    Parameters
    ----------
    model : Network, fitted classifier, or Pipeline that ends with one
        A model with softmax or logistic outputs. If it folds to one quadratic layer (see
        `quadric.convert.fold`), distances are exact. Otherwise, radii are lower bounds.
    X : array or table of shape (n_samples, n_features)
        The inputs.
    units : {'inputs', 'scaled'}
        Whether lengths are measured in the units of the inputs or in standard deviations, as
        learned by the scaler of a pipeline.
    fixed : sequence of str or int
        Names or indices of inputs that are held fixed. Encoded categories always are.
    progress : callable(done, total, text), optional
        Called after each block of rows.

    Returns
    -------
    Radii
        Distances, certified radii, and the nearest inputs of another class.

    Notes
    -----
    Lengths are Euclidean. Limits of the inputs, such as pixels between 0 and 1, are not considered.
    They could only enlarge the radius, because they exclude inputs. The certificate is for the
    labels that ``model.predict`` itself computes for inputs of the dtype of X, with all rounding
    errors: those of the steps of a pipeline, of the network, of folding, and of computing the
    distance. A row that is closer to the boundary than these errors has the radius 0.
    """
    check_choice("units", units, ("inputs", "scaled"))
    view = view_of_classifier(model)
    X = X.toarray() if hasattr(X, "toarray") else X
    certified = certified_model(view, X)
    points = view.coordinates.reach(X)
    if not np.isfinite(points).all():
        raise ValueError("X must be finite. Got a missing or infinite value; impute it first.")
    sizes, names = certified.sizes(units), certified.names
    free, predicted = np.flatnonzero(~certified.held_inputs(fixed)), certified.predict(X)
    exact = len(view.folded.layers) == 1
    # without free inputs, the label of a row that is too close to a tie is still not certain
    all_held = not len(free)
    free = np.arange(len(names)) if all_held else free
    nearest = Nearest.unknown(predicted, len(free))
    search: Search | LowerBounds = (
        Search(class_scores(certified), free, sizes)
        if exact
        else LowerBounds(certified, free, sizes)
    )
    count = max(1, BLOCK // points.shape[1])
    blocks = [slice(start, start + count) for start in range(0, len(points), count)]
    calls = [partial(search.run, points[rows], nearest.part(rows)) for rows in blocks]
    _run({"pair of classes": search.prepare(), "block of rows": calls}, progress)
    if all_held:
        nearest.distance[:], nearest.becomes[:] = np.inf, predicted
        nearest.radius[:] = np.where(nearest.radius > 0, np.inf, 0.0)
    moved = np.where(np.isfinite(nearest.distance)[:, None], points, np.nan)
    moved[:, free] += nearest.step * sizes[free]
    return Radii(
        nearest.distance,
        nearest.radius,
        moved,
        view.labels[predicted],
        view.labels[nearest.becomes],
        names,
        exact,
    )


def _run(
    stages: Mapping[str, Sequence[Callable[[], Any]]],
    progress: Callable[[float, float, str], object] | None,
) -> None:
    """Run the calls of each stage in as many threads as matrix products would use."""
    parallel = Parallel(n_jobs=blas_threads(), prefer="threads", return_as="generator")
    with one_blas_thread():
        for name, calls in stages.items():
            for done, _ in enumerate(parallel(delayed(call)() for call in calls), 1):
                if progress is not None:
                    progress(done, len(calls), f"{name} {done} of {len(calls)}")


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
    searches: dict[bytes, "Search"] = field(default_factory=dict)  # by free coordinates and units


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
        self.spread = float(norm(steps_of(scores.rounding.absolute, free, sizes).A)) * SLACK
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
            opposite = self.spectrum(k, c)
            return replace(opposite, lam=-opposite.lam)
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
        scores, Q, w = self.scores, self.sizes_Q, self.sizes_W
        u, size = scores.change.apply(X), scores.rounding.size(X)
        V = [u @ Q_k for Q_k in scores.Q]
        parts = list(zip(V, scores.W, scores.b, strict=True))
        z = np.stack([((v + w_k) * u).sum(axis=1) + b_k for v, w_k, b_k in parts], axis=1)
        slopes = [self.change.pull_back(2 * v + w_k) for v, w_k, _ in parts]
        moved = gamma(X.shape[1]) * size  # a bound on the length of the error of u
        constant, slope = scores.rounding.growth(u, size, moved, self.stretch, self.spread)
        length, moved, n = norm(u, axis=1)[:, None], moved[:, None], u.shape[1]
        # an error of u acts through the gradient, whose length is at most 2 |Q| |u| + |w|
        z_error = gamma(2 * n) * ((Q * length + w) * length + np.abs(scores.b))
        z_error = z_error + underflows(n) * (1 + length) * (1 + length)
        z_error = z_error + moved * (2 * Q * (length + moved) + w)
        slope_error = (
            gamma(3 * n) * (2 * Q * length + w) * self.size_A + 2 * Q * moved * self.stretch
        )
        slope_error += underflows(n) * (1 + length) * (1 + self.size_A)
        return _Block(z, z_error + constant[:, None], slopes, slope_error + slope[:, None])

    def _visit_rivals(self, c: int, rows: Array, block: _Block, nearest: Nearest) -> None:
        """Visit the rivals of class c at each row, the most promising first."""
        rivals = [k for k in range(len(self.scores.b)) if k != c]
        quick = [quick_bounds(self.spectrum(c, k), block.tie(c, k, rows)) for k in rivals]
        bounds = np.stack(quick, axis=1)
        for rival in np.argsort(bounds, axis=1).T:
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
