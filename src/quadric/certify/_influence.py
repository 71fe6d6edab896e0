"""Whether the predicted class can depend on an input in a region: a proof, or two inputs.

`depends_on` first tries to prove independence: the input may have no weight, or one class may be
predicted in the whole region, because the minimum of its margin over every other class is positive.
Otherwise, it searches for two inputs of the region that differ in this input only and have other
classes. Points on the boundary between classes are promising, because a small change of the input
leads to the other side unless the boundary is parallel to its axis.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.certify._extrema import minimum
from quadric.certify._model_and_rounding import view_of_classifier
from quadric.certify._regions import LocalScores, Place, input_places, place
from quadric.checks import Array

SAMPLES = 2000
NODES = 20_000  # for each margin in a box
HALVINGS = 50
VALUES = 9  # of the input at each point


@dataclass(frozen=True)
class Influence:
    """The result of `depends_on`.

    Parameters
    ----------
    answer : {'no', 'yes', 'undecided'}
        Whether the predicted class depends on the input anywhere in the region. 'no' is proven, for
        the model's own predictions. 'yes' comes with a verified example.
    reason : str
        The proof in a sentence, or what is known.
    points : array of shape (2, n_coordinates) or None
        Two inputs of the region that differ in this input only.
    classes : tuple or None
        The classes that the model predicts for them.
    """

    answer: str
    reason: str
    points: Array | None = None
    classes: tuple[Any, Any] | None = None

    def __bool__(self) -> bool:
        return self.answer != "no"


def depends_on(model: Any, input: Any, region: Any) -> Influence:  # noqa: A002
    """Decide whether the predicted class can depend on an input in a region.

    Parameters
    ----------
    model : Network, fitted classifier, or Pipeline that ends with one
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    input : str or int
        The name or index of the input.
    region : Box, Ball or Ellipsoid
        The region. The other inputs are equal in both inputs that are compared.

    Returns
    -------
    Influence
        A proof that the class never depends on the input, two inputs that show that it does, or
        'undecided'. Only 'no' counts as false.
    """
    view_of_classifier(model)
    where = place(model, region)
    i, _ = input_places(where, input)
    scores = LocalScores(where)
    name = where.model.names[i]
    if _has_no_weight(scores, i):
        return Influence("no", f"no score depends on {name}.")
    labels = where.model.view.labels
    steps, own = _rivals_steps(scores)
    if steps is None:
        return Influence("no", f"class {labels[own]} is predicted in the whole region.")
    found = _example(where, i, steps)
    if found is not None:
        points, (a, b) = found
        classes = labels[a], labels[b]
        return Influence("yes", f"only {name} differs between two classes.", points, classes)
    return Influence("undecided", "several classes are possible, but no example was found.")


def _has_no_weight(scores: LocalScores, i: int) -> bool:
    """Whether all weights that an input is multiplied with are zero."""
    network = scores.where.model.view.network
    reached = np.flatnonzero(scores.scores.change.matrix[:, i])
    weights = scores.scores.Q[:, reached].any() or scores.scores.W[:, reached].any()
    return len(network.layers) == 1 and not weights


def _rivals_steps(scores: LocalScores) -> tuple[Array | None, int]:
    """Steps where other classes are most likely; None if there is one class, which is returned."""
    where, K = scores.where, len(scores.scores.b)
    own = int(where.row.classes(where.points(np.zeros((1, where.dimensions))))[0])
    steps, one_class = [], True
    for k in range(K):
        if k == own:
            continue
        local = scores.of(np.eye(K)[own] - np.eye(K)[k])
        step, bound = minimum(local, where, most=NODES)
        steps.append(step)
        one_class &= bound > local.error
    return (None, own) if one_class else (np.array(steps), own)


def _example(where: Place, i: int, steps: Array) -> tuple[Array, tuple[int, int]] | None:
    """Two points that differ in coordinate i only and have different classes."""
    rng, m = np.random.default_rng(0), where.dimensions
    if where.is_box:
        inside = rng.uniform(-1, 1, size=(SAMPLES, m))
        inside = np.where(rng.random(inside.shape) < 0.2, np.sign(inside), inside)
    else:
        inside = rng.normal(size=(SAMPLES, m))
        inside *= rng.random((SAMPLES, 1)) ** (1 / m) / np.linalg.norm(inside, axis=1)[:, None]
    inside = np.concatenate([np.zeros((1, m)), steps, 0.5 * steps, inside])
    classes = where.row.classes(where.points(inside))
    starts = [inside]
    others = np.flatnonzero(classes != classes[0])
    if len(others):  # between the middle and the points of other classes, and between pairs
        mates = rng.integers(len(inside), size=len(inside))
        apart = classes != classes[mates]
        starts.append(_on_boundaries(where, inside[apart], inside[mates[apart]]))
        starts.append(_on_boundaries(where, inside[others], np.zeros((len(others), m))))
    for some in reversed(starts):
        found = _changed(where, i, some)
        if found is not None:
            return found
    return None


def _on_boundaries(where: Place, a: Array, b: Array) -> Array:
    """Steps between a and b, close to where the class changes."""
    class_a = where.row.classes(where.points(a))
    for _ in range(HALVINGS if len(a) else 0):
        middle = (a + b) / 2
        same = (where.row.classes(where.points(middle)) == class_a)[:, None]
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    return np.concatenate([a, b])


def _changed(where: Place, i: int, steps: Array) -> tuple[Array, tuple[int, int]] | None:
    """Change coordinate i of each point within the region until the class changes."""
    if not len(steps):
        return None
    points = where.points(steps)
    low, high = _range_of(where, i, steps, points)
    classes = where.row.classes(points)
    for share in np.linspace(0, 1, VALUES):
        moved = points.copy()
        moved[:, i] = np.clip(low + share * (high - low), low, high)
        moved = where.row.rounded(moved)
        after = where.row.classes(moved)
        for row in np.flatnonzero(after != classes)[:4]:
            pair = np.stack([points[row], moved[row]])
            a, b = (int(where.row.classes(one[None])[0]) for one in pair)
            if a != b:  # also if each is predicted alone
                return pair, (a, b)
    return None


def _range_of(where: Place, i: int, steps: Array, points: Array) -> tuple[Array, Array]:
    """The smallest and the largest value of coordinate i in the region at each point."""
    count = len(points)
    if where.is_box:
        return np.full(count, where.row.low[i]), np.full(count, where.row.high[i])
    unit = (where.free == i).astype(float)
    d = np.linalg.lstsq(where.factor, unit, rcond=None)[0]
    if np.abs(where.factor @ d - unit).max() > 1e-9:  # it cannot move alone
        return points[:, i], points[:, i]
    # |y + t d| <= 1
    a, b, c = d @ d, steps @ d, np.maximum(1 - (steps * steps).sum(axis=1), 0.0)
    root = np.sqrt(b * b + a * c) * (1 - 1e-9)
    return points[:, i] + (-b - root) / a, points[:, i] + (-b + root) / a
