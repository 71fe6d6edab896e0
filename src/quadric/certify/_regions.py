"""Regions of inputs, and a score of a model as a function of steps within a region.

Every region is the image of steps y under x = center + L y, where y is in a ball (|y| <= 1) or in a
box (|y_i| <= 1). There, a score is F + g'y + y'Ay, up to the errors of all numbers and of the
model's own roundings, which change it by at most `error`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quadric.certify._model_and_rounding import (
    EPS,
    SLACK,
    CertifiedModel,
    certified_model,
    checked_view,
    class_scores,
    factor_of,
    gamma,
    norm,
    precision_of,
    underflows,
    unit_roundoff,
)
from quadric.certify._radius import Search
from quadric.certify._row_and_changes import Row, one_row
from quadric.checks import Array, check_choice, check_number
from quadric.explain import ExplainedLayer, class_at, named_scores, score_name
from quadric.models import ModelView

WIDER = 1 + 16 * EPS  # so that rounded regions contain the given ones


@dataclass(frozen=True, eq=False)
class Box:
    """All inputs between two rows.

    Parameters
    ----------
    low, high : array of shape (n_features,), or table with one row
        The limits of each input, in the form that the model accepts. Encoded categories must be the
        same in both.
    """

    low: Any
    high: Any


@dataclass(frozen=True, eq=False)
class Ball:
    """All inputs whose distance to a row is at most a radius.

    Parameters
    ----------
    center : array of shape (n_features,), or table with one row
        The row. Encoded categories do not move.
    radius : float
        The largest distance.
    units : {'inputs', 'scaled'}
        Whether distances are in the units of the inputs or in the standard deviations that the
        scaler of a pipeline has learned.
    """

    center: Any
    radius: float
    units: str = "inputs"


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """All inputs x with (x - center)' inv(covariance) (x - center) <= radius².

    Parameters
    ----------
    center : array of shape (n_features,), or table with one row
        The center.
    covariance : array of shape (n_coordinates, n_coordinates)
        A symmetric matrix without negative eigenvalues. Inputs without variance do not move.
    radius : float
        The Mahalanobis distance of the surface from the center.
    """

    center: Any
    covariance: Any
    radius: float = 1.0


@dataclass(frozen=True)
class Place:
    """A region as steps from a center: x = center + L y for y in a ball or in a box.

    `sizes` is the diagonal of L for all coordinates, or L for those in `free`. `low` and `high`
    limit the coordinates of a box.
    """

    model: CertifiedModel
    row: Row
    center: Array
    free: Array
    sizes: Array
    is_box: bool

    @property
    def dimensions(self) -> int:
        """The number of components of a step."""
        return int(self.sizes.shape[1]) if self.sizes.ndim == 2 else len(self.free)

    @property
    def reach(self) -> float:
        """The largest length of a step."""
        return (np.sqrt(self.dimensions) if self.is_box else 1.0) * SLACK

    @property
    def factor(self) -> Array:
        """L, from steps to the free coordinates."""
        return self.sizes if self.sizes.ndim == 2 else np.diag(self.sizes[self.free])

    def points(self, steps: Array) -> Array:
        """The points at the ends of steps, in the region and in the precision of its rows."""
        found = np.tile(self.center, (len(steps), 1))
        moves = steps @ self.sizes.T if self.sizes.ndim == 2 else steps * self.sizes[self.free]
        shrink = 1.0 if self.is_box else 1 - 8 * EPS * len(self.free)
        found[:, self.free] += shrink * moves
        return self.row.rounded(found.clip(self.row.low, self.row.high))


def place(model: Any, region: Any) -> Place:
    """Place a region in the coordinates of a model."""
    given = checked_view(model)
    view, named = given.after_reading, given.input_names is not None

    def read(x: Any) -> Any:
        return given.read(one_row(x, named=named))

    if isinstance(region, Box):
        low, high = read(region.low), read(region.high)
        certified = _with_rounded_inputs(view, low)
        row, other = Row(certified, low), Row(certified, high)
        row.low, row.high = row.point, other.point
        wide = row.high - row.low
        if (wide < 0).any() or (certified.held & (wide > 0)).any():
            raise ValueError(
                "region must have low <= high, and equal categories in both rows. "
                f"Got low {row.low.tolist()} and high {row.high.tolist()}."
            )
        center = row.low + wide / 2
        more = 8 * EPS * np.maximum(np.abs(row.low), np.abs(row.high))
        sizes = np.where(wide > 0, wide / 2 * WIDER + more, 0.0)
        return Place(certified, row, center, _moving(wide > 0), sizes, True)
    if not isinstance(region, (Ball, Ellipsoid)):
        raise TypeError(
            f"region must be a Box, Ball or Ellipsoid of quadric.certify. Got {region!r}."
        )
    x = read(region.center)
    certified = _with_rounded_inputs(view, x)
    row, size = Row(certified, x), check_number("radius", region.radius, above=0) * WIDER
    if isinstance(region, Ball):
        check_choice("units", region.units, ("inputs", "scaled"))
        sizes = np.where(certified.held, 0.0, size * certified.sizes(region.units))
        return Place(certified, row, row.point, _moving(sizes > 0), sizes, False)
    covariance, n = np.asarray(region.covariance, dtype=float), len(certified.names)
    if list(covariance.shape) != [n, n]:
        raise ValueError(f"covariance must have shape ({n}, {n}). Got {covariance.shape}.")
    free = _moving(~certified.held & (np.diag(covariance) > 0))
    factor = size * factor_of("covariance", covariance[np.ix_(free, free)])
    return Place(certified, row, row.point, free, factor, False)


def _moving(free: Array) -> Array:
    if not free.any():
        raise ValueError("region must let at least one input move. Got a single point.")
    return np.flatnonzero(free)


def _with_rounded_inputs(view: ModelView, x: Any) -> CertifiedModel:
    """The model, with the error of rounding an input to the dtype of the region's rows."""
    found = certified_model(view, x)
    return replace(found, share=found.share + 2 * unit_roundoff(precision_of(x)))


# ---------------------------------------------------------------------- scores in a region


@dataclass(frozen=True)
class Local:
    """F + g'y + y'Ay, which differs by at most `error` from what the model computes."""

    F: float
    g: Array
    A: Array
    error: float

    def at(self, steps: Array) -> Array:
        """The values at the ends of steps."""
        return np.asarray(self.F + ((steps @ self.A + self.g) * steps).sum(axis=-1))


class LocalScores:
    """The scores of a model as functions of the steps of a region."""

    def __init__(self, where: Place) -> None:
        self.where, self.scores = where, class_scores(where.model)
        self.search = Search(self.scores, where.free, where.sizes)
        self.block = self.search.block(where.center[None])

    def of(self, weights: Array) -> Local:
        """The sum of the scores of the classes times these weights."""
        search, scores, block, reach = self.search, self.scores, self.block, self.where.reach
        Q = np.tensordot(weights, scores.Q, 1)
        A = search.change.pull_back(search.change.pull_back(Q).T)
        slopes, n = np.stack([g[0] for g in block.g]), len(Q)
        sizes, size = np.abs(weights), search.stretch * search.size_A
        curves = gamma(2 * n) * search.sizes_Q * size + scores.rounding.curve(
            search.stretch, search.spread
        )
        curves = curves + underflows(n) * (1 + search.size_A) ** 2
        errors = block.F_error[0] + (block.g_error[0] + curves * reach) * reach
        # the sum of scores is rounded, here and by those who compute it from the model's scores
        largest = (
            np.abs(block.F[0]) + (norm(slopes, axis=1) + search.sizes_Q * size * reach) * reach
        )
        error = sizes @ (errors + 4 * (len(weights) + 4) * EPS * largest)
        F, g = float(weights @ block.F[0]), weights @ slopes
        return Local(F, g, (A + A.T) / 2, float(error) * SLACK)


def weights_of(where: Place, of: Any) -> tuple[Array, str]:
    """The weights of the scores of the classes in the score `of`, and its name."""
    view = where.model.view
    selected = ExplainedLayer(view, view.one_layer, True, view.coordinates)
    if isinstance(of, (tuple, list)):
        named = named_scores(selected, of)
        return _padded(named.weights[0]), named.labels[0]
    named = named_scores(selected)
    if of is None:
        if len(named.labels) > 1:
            raise ValueError(
                f"of must name one of the scores, or two classes. Their labels are "
                f"{selected.labels}."
            )
        return _padded(named.weights[0]), named.labels[0]
    k = class_at(selected, of)
    sign = -1.0 if len(named.labels) == 1 and k == 0 and selected.view.chooses_a_class else 1.0
    row = named.weights[min(k, len(named.labels) - 1)]
    return _padded(sign * row), score_name(selected, named, k)


def _padded(weights: Array) -> Array:
    """The weights of the scores 0 and z, for a model with one output."""
    return np.array([0.0, weights[0]]) if len(weights) == 1 else weights


def model_scores(where: Place, points: Array, weights: Array) -> Array:
    """The score at points as the model itself computes it."""
    view, rows = where.model.view, where.row.at(points)
    if view.model is view.network:
        z: Array = view.network.logits(rows)
    elif view.classes is not None:
        z = np.asarray(view.model.decision_function(rows))
    else:
        z = np.asarray(view.model.predict(rows))
        z = np.log(z) if view.network.activations[-1] == "exponential" else z
    z = z.reshape(len(points), -1).astype(float)
    z = np.column_stack([np.zeros(len(z)), z]) if z.shape[1] == 1 else z
    return np.asarray(z @ weights)


def input_places(where: Place, one: Any) -> tuple[int, int]:
    """The coordinate of an input, and its place among the free ones."""
    i = where.model.index("input", one)
    free: Sequence[int] = where.free.tolist()
    if i not in free:
        raise ValueError(f"input must move in the region. {where.model.names[i]} does not.")
    return i, free.index(i)
