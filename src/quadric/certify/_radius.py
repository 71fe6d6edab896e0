"""How far an input can move before the predicted class can change."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from quadric.certify._lower_bounds import LowerBounds
from quadric.certify._model import certified_model, view_of_classifier
from quadric.certify._search import Nearest, Search, class_scores
from quadric.checks import Array, check_choice
from quadric.utils import blas_threads, one_blas_thread

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
    if exact:
        search = Search(class_scores(certified), free, sizes)
        _run(
            {
                "pair of classes": search.prepare(),
                "block of rows": _blocks(search.run, points, nearest),
            },
            progress,
        )
    else:
        nearest.distance[:] = np.nan
        bounds = LowerBounds(certified, free, sizes)
        _run({"block of rows": _blocks(bounds.run, points, nearest)}, progress)
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


Calls = list[Callable[[], object]]


def _blocks(run: Callable[[Array, Nearest], None], points: Array, nearest: Nearest) -> Calls:
    """One call of `run` per block of rows."""
    count = max(1, BLOCK // points.shape[1])
    blocks = [slice(start, start + count) for start in range(0, len(points), count)]
    return [partial(run, points[rows], nearest.part(rows)) for rows in blocks]


def _run(stages: dict[str, Calls], progress: Callable[[float, float, str], object] | None) -> None:
    """Run the calls of each stage in as many threads as matrix products would use."""
    parallel = Parallel(n_jobs=blas_threads(), prefer="threads", return_as="generator")
    with one_blas_thread():
        for name, calls in stages.items():
            for done, _ in enumerate(parallel(delayed(call)() for call in calls), 1):
                if progress is not None:
                    progress(done, len(calls), f"{name} {done} of {len(calls)}")
