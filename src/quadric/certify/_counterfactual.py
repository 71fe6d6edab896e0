"""The smallest change of an input that changes the predicted class."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.certify._box_counterfactual import SAME, Candidates
from quadric.certify._model_and_rounding import CertifiedModel, certified_model, view_of_classifier
from quadric.certify._radius import kept_scores
from quadric.certify._rows import Change, Row, changes_of, in_words, one_row, written
from quadric.checks import Array, check_choice
from quadric.utils import one_blas_thread, rounded, rounded_down, visible


@dataclass(frozen=True)
class Counterfactual:
    """The nearest input of another class.

    Parameters
    ----------
    point : array of shape (n_coordinates,)
        The input, in the coordinates `names`; NaN if none was found.
    predicted, becomes : object
        The class of the given row, and the class that the model predicts for `point`.
    distance : float
        The distance between the row and `point`; infinite if none was found.
    lower_bound : float
        A proven lower bound on the distance to any input of the wanted class.
    exact : bool
        Whether `point` is the nearest input that meets all conditions, up to a step past the
        boundary. Otherwise, it is the best that was found, and `distance` is an upper bound. If
        none was found, whether there is none, up to rounding errors.
    changes : list of Change
        The inputs that change, with values that are rounded as far as the class and the bounds
        allow. The model predicts `becomes` for these values, too.
    names : list of str
        The names of the coordinates of `point`.
    to : object
        The class that was wanted, or None for any other class.
    """

    point: Array
    predicted: Any
    becomes: Any
    distance: float
    lower_bound: float
    exact: bool
    changes: list[Change]
    names: list[str]
    to: Any = None

    def text(self) -> str:
        """Describe the change in words.

        Returns
        -------
        str
            For example ``approved with income 31 200 instead of 29 800``.
        """
        if not self.changes:
            sort = "another class" if self.to is None else f"class {visible(str(self.to))}"
            words = f"{visible(str(self.predicted))}: no input with {sort}"
            if np.isinf(self.lower_bound):
                return f"{words} exists"
            hope = "; up to rounding errors, there is none" if self.exact else ""
            return f"{words} was found{hope}"
        words = f"{visible(str(self.becomes))} with {in_words(self.changes)}"
        if self.exact:
            return words
        return (
            f"{words} (the smallest change found, of length {rounded(self.distance)}; every such "
            f"change is longer than {rounded_down(self.lower_bound)})"
        )

    __str__ = text


def counterfactual(
    model: Any,
    x: Any,
    *,
    to: Any = None,
    fixed: Iterable[Any] = (),
    weights: Any = None,
    bounds: Mapping[Any, tuple[float | None, float | None]] | None = None,
    integers: Iterable[Any] = (),
    units: str = "inputs",
) -> Counterfactual:
    """Find the nearest input with another class, or with a given class.

    Parameters
    ----------
    model : Network, fitted classifier, or Pipeline that ends with one
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    x : array of shape (n_features,) or (1, n_features), table with one row, or pandas Series
        The input.
    to : label, optional
        The wanted class; by default, any class other than the predicted one.
    fixed : sequence of str or int
        Names or indices of inputs that are held fixed. Encoded categories always are.
    weights : dict or array of shape (n_coordinates,), optional
        Positive factors that multiply the changes of the inputs before the length is computed, by
        name or index. A change of an input with a large weight is expensive.
    bounds : dict of (low, high), optional
        Limits of inputs, by name or index; None for no limit. They must contain the input: for
        example, ``{"age": (x["age"], None)}`` if the age can only grow.
    integers : sequence of str or int
        Inputs that can only take integer values.
    units : {'inputs', 'scaled'}
        As in `radius`.

    Returns
    -------
    Counterfactual
        The input, its class and its distance, and a proven lower bound on the distance.

    Notes
    -----
    Without `to`, the point is the nearest one, with or without bounds. It is on the boundary of two
    classes and in the interior of one face of the box of bounds, and all local minima of the
    distance on all faces are compared. If many inputs are bounded, there are too many faces, and
    the point is the best that was found, by a local minimizer from many starts. This is also so
    with `integers`, and with `to` if several classes meet at the nearest point. The model's own
    prediction verifies every point. Matrices are decomposed in the first call with a model, and
    again after any of its numbers has changed.

    Examples
    --------
    >>> import numpy as np
    >>> from quadric import Network
    >>> from quadric.core import Quadratic
    >>> circle = Network([Quadratic([[0.0, 0.0]], [4.0], [-np.eye(2)])], ["logistic"])
    >>> print(counterfactual(circle, [1.0, 0.0]))
    0 with x1 2 instead of 1
    """
    check_choice("units", units, ("inputs", "scaled"))
    view = view_of_classifier(model)
    x = one_row(x, named=view.input_names is not None)
    certified, labels = certified_model(view, x), view.labels
    scores, row = kept_scores(certified), Row(certified, x)
    sizes = certified.sizes(units) / _weights(certified, weights)
    _set_bounds(row, bounds)
    free = np.flatnonzero(~certified.held_inputs(fixed) & (row.low < row.high))
    whole = [i for i in certified.indices("integers", integers) if i in free]
    wanted = None if to is None else _class_index(labels, to)
    candidates = Candidates(scores, row, sizes, wanted)
    if wanted == candidates.predicted:
        raise ValueError(f"to must differ from the class of x. The model predicts {to!r} already.")
    with one_blas_thread():
        found = candidates.whole(free, whole) if whole else candidates.nearest(row.point, free)
    predicted, names, point = labels[candidates.predicted], certified.names, found.point
    if point is None:
        nowhere, exact = np.full(len(names), np.nan), bool(np.isinf(found.floor))
        lower = found.proven
        return Counterfactual(nowhere, predicted, predicted, np.inf, lower, exact, [], names, to)
    becomes, distance = int(row.classes(point[None])[0]), candidates.length(point)
    return Counterfactual(
        point,
        predicted,
        labels[becomes],
        distance,
        min(found.proven, distance),
        distance <= found.floor * (1 + SAME),
        changes_of(row, point, becomes, sizes, whole),
        names,
        to,
    )


def _class_index(labels: Array, to: Any) -> int:
    known = labels.tolist()
    if to not in known:
        raise ValueError(f"to must be a class of the model: {known}. Got {to!r} instead.")
    return int(known.index(to))


def _weights(model: CertifiedModel, weights: Any) -> Array:
    """The weights as an array; 1 for inputs that are not named."""
    found = np.ones(len(model.names))
    if isinstance(weights, Mapping):
        for name, value in weights.items():
            found[model.index("weights", name)] = value
    elif weights is not None:
        found = np.asarray(weights, dtype=float)
    if found.shape != (len(model.names),) or not (np.isfinite(found) & (found > 0)).all():
        raise ValueError(
            f"weights must be {len(model.names)} positive numbers. To hold an input, use fixed."
        )
    return found


def _set_bounds(row: Row, bounds: Mapping[Any, tuple[float | None, float | None]] | None) -> None:
    """Set the lower and upper limits of the inputs."""
    for name, (least, most) in (bounds or {}).items():
        i = row.model.index("bounds", name)
        low, high = -np.inf if least is None else least, np.inf if most is None else most
        if not low <= row.point[i] <= high:
            raise ValueError(
                f"bounds must contain x. {row.model.names[i]} is {written(row.point[i])}, which "
                f"is not between {written(low)} and {written(high)}."
            )
        row.low[i], row.high[i] = low, high
