"""How far an input can move before the predicted class can change."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from quadric._utils import checks
from quadric._utils.arrays import Array
from quadric._utils.blas_threads import blas_threads, one_blas_thread
from quadric._utils.memory import check_limit
from quadric.certify._model import as_classifier
from quadric.certify._scores import Scores, class_scores
from quadric.certify._search import Nearest, Search

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
        this. It is the distance, reduced by a proven bound of the rounding errors in computing it.
    nearest : array of shape (n_samples, n_coordinates)
        The nearest input where the class changes; NaN if there is none.
    predicted, becomes : arrays of shape (n_samples,)
        The class of each row, and the class on the other side of `nearest`. The two are the same
        if no input has another class.
    names : list of str
        The names of the coordinates of `nearest`.
    """

    distance: Array
    radius: Array
    nearest: Array
    predicted: Array
    becomes: Array
    names: list[str]


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
        A model that folds to one quadratic layer with softmax or logistic outputs; see
        `quadric.convert.fold`.
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
    folded layer. Several layers or steps of a pipeline are folded in float64, and the rounding
    errors of folding, about 1e-15 of the coefficients, are not part of the bound.
    """
    checks.check_choice("units", units, ("inputs", "scaled"))
    scores = class_scores(as_classifier(model), X)
    points = scores.inputs.space.reach(X)
    if not np.isfinite(points).all():
        raise ValueError("X must be finite. Got a missing or infinite value; impute it first.")
    n, K = len(scores.inputs.names), len(scores.b)
    sizes = np.ones(n) if units == "inputs" else _scaler_sizes(scores)
    free = np.flatnonzero(~_held(scores, fixed))
    check_limit(
        8 * len(free) ** 2 * (K * (K - 1) // 2 + 4),
        f"the eigenvectors for all pairs of {K} classes",
        "Use fewer inputs or hold some of them fixed.",
    )
    nearest = Nearest.unknown(scores.given.predict(X), len(free))
    if len(free):
        _search(Search(scores, free, sizes), points, nearest, progress)
    moved = np.where(np.isfinite(nearest.distance)[:, None], points, np.nan)
    moved[:, free] += nearest.step * sizes[free]
    return Radii(
        nearest.distance,
        nearest.radius,
        moved,
        scores.given.labels[nearest.predicted],
        scores.given.labels[nearest.becomes],
        scores.inputs.names,
    )


def _search(
    search: Search,
    points: Array,
    nearest: Nearest,
    progress: Callable[[float, float, str], object] | None,
) -> None:
    """Search block by block, in as many threads as matrix products would use."""
    count = max(1, BLOCK // points.shape[1])
    blocks = [slice(start, start + count) for start in range(0, len(points), count)]
    parallel = Parallel(n_jobs=blas_threads(), prefer="threads", return_as="generator")
    K = len(search.scores.b)
    pairs = [(c, k) for c in range(K) for k in range(c + 1, K)]
    stages = [
        ("pair of classes", [delayed(search.spectrum)(*pair) for pair in pairs]),
        (
            "block of rows",
            [delayed(search.run)(points[rows], nearest.part(rows)) for rows in blocks],
        ),
    ]
    with one_blas_thread():
        for name, calls in stages:
            for done, _ in enumerate(parallel(calls), 1):
                if progress is not None:
                    progress(done, len(calls), f"{name} {done} of {len(calls)}")


def _scaler_sizes(scores: Scores) -> Array:
    if scores.inputs.space.typical is None:
        raise ValueError(
            "units='scaled' needs a Pipeline whose first step is a scaler. Use units='inputs'."
        )
    sizes = scores.inputs.space.typical[1]
    return np.where(sizes > 0, sizes, 1.0)


def _held(scores: Scores, fixed: Iterable[Any]) -> Array:
    names, held = scores.inputs.names, scores.inputs.held.copy()
    for one in [fixed] if isinstance(fixed, (str, int, np.integer)) else fixed:
        if isinstance(one, str) and one in names:
            held[names.index(one)] = True
        elif isinstance(one, (int, np.integer)) and -len(names) <= one < len(names):
            held[int(one)] = True
        else:
            raise ValueError(f"fixed must name inputs: {', '.join(names)}. Got {one!r} instead.")
    return held
