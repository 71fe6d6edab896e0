"""Thresholds: the probability from which one of two classes is predicted, and the cheapest one.

Costs are those of missing a row of a class, so that they do not depend on which class is positive.
"""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quadric.apps.shell.tables._options import refuse
from quadric.checks import Array
from quadric.utils import listed, rounded

PARTS = 5  # of the rows, on each of which a threshold is tested that the others chose


@dataclass(frozen=True)
class Threshold:
    """One of two classes is predicted where its probability is at least `value`.

    Attributes
    ----------
    index : int
        The index of the class.
    label, other : str or int
        This class and the other one.
    value : float
    """

    index: int
    label: Any
    other: Any
    value: float

    @classmethod
    def parse(cls, text: str, classes: Sequence[Any]) -> "Threshold":
        """Return a threshold from 'CLASS=T', or from 'T' for the second class.

        >>> Threshold.parse("no=0.2", ["no", "yes"])
        Threshold(index=0, label='no', other='yes', value=0.2)
        """
        name, _, number = text.rpartition("=")
        labels, value = list(map(str, classes)), _number(number)
        refuse(
            {
                "--threshold needs a classifier of two classes.": len(classes) != 2,
                f"--threshold must be a probability such as 0.2, or CLASS=0.2. Got {text!r}.": (
                    not 0 <= value <= 1
                ),
                f"--threshold names {name!r}, but the classes are {_classes(labels)}.": (
                    name and name not in labels
                ),
            }
        )
        k = labels.index(name) if name else 1
        return cls(k, classes[k], classes[1 - k], value)

    def predict(self, probabilities: Array) -> list[Any]:
        """Return the class of each row of probabilities."""
        chosen = probabilities[:, self.index] >= self.value
        return [self.label if yes else self.other for yes in chosen.tolist()]

    @property
    def sentence(self) -> str:
        """A description for the user."""
        return (
            f"Predicted {self.label!r} where its probability is at least {self.value}, and "
            f"{self.other!r} elsewhere."
        )


@dataclass(frozen=True)
class CheapestThreshold:
    """The threshold with the lowest cost on test rows.

    Attributes
    ----------
    label : str or int
        The class that costs more to miss.
    value : float
        Its threshold.
    costs : dict
        The cost of missing a row of each class.
    cost : float
        The mean cost of a row. Each fifth of the rows is predicted with the threshold that is the
        cheapest for the others, because the cost on the rows that chose it is too optimistic.
    cost_of_half : float
        The mean cost at the threshold 0.5.
    constant : str or int
        The class that is the cheapest if it is always predicted.
    cost_of_constant : float
    """

    label: Any
    value: float
    costs: dict[str, float]
    cost: float
    cost_of_half: float
    constant: Any
    cost_of_constant: float

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as JSON values."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """A description for the user, with the option of `predict`."""
        what = " and ".join(f"of {name!r} costs {cost:g}" for name, cost in self.costs.items())
        return (
            f"Cheapest threshold if missing a row {what}: predict {self.label!r} from a "
            f"probability of {self.value}. Its mean cost is {rounded(self.cost)} per row; "
            f"{rounded(self.cost_of_half)} at 0.5, and {rounded(self.cost_of_constant)} for always "
            f"{self.constant!r}. Use it with: quadric predict --threshold "
            f"{shlex.quote(f'{self.label}={self.value}')}"
        )


def parse_costs(texts: Sequence[str], classes: Sequence[Any]) -> dict[str, float]:
    """Return the cost of missing each class from texts such as 'fraud=20'; 1 if it is not given.

    >>> parse_costs(["yes=20"], ["no", "yes"])
    {'no': 1.0, 'yes': 20.0}
    """
    labels = list(map(str, classes))
    given = dict(_cost(text) for text in texts)
    unknown = next((name for name in given if name not in labels), "")
    refuse(
        {
            "--cost needs a classifier of two classes.": len(classes) != 2,
            f"--cost names {unknown!r}, but the classes are {_classes(labels)}.": unknown,
        }
    )
    return dict.fromkeys(labels, 1.0) | given


def _cost(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    value = _number(number)
    refuse(
        {
            f"--cost must be CLASS=COST, such as fraud=20, with a positive cost. Got {text!r}.": (
                not name or not 0 < value < math.inf
            )
        }
    )
    return name, value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _classes(labels: Sequence[str]) -> str:
    return listed(map(repr, labels))


def cheapest_threshold(
    truth: Array, probabilities: Array, classes: Sequence[Any], costs: Mapping[str, float]
) -> CheapestThreshold:
    """Return the threshold with the lowest mean cost.

    Parameters
    ----------
    truth : array of int of shape (n_rows,)
        The indices of the true classes.
    probabilities : array of shape (n_rows, 2)
        Predictions for rows that the model was not trained on.
    classes : sequence of two classes
    costs : mapping of str to float
        See `parse_costs`.
    """
    each = [costs[str(label)] for label in classes]
    k = 0 if each[0] > each[1] else 1
    p, is_class = probabilities[:, k], truth == k
    cost = np.where(is_class, each[k], each[1 - k])
    bayes = each[1 - k] / sum(each)
    paid = np.empty(len(truth))
    for rest, part in _parts(is_class):
        value = _cheapest(p[rest], is_class[rest], cost[rest], bayes)
        paid[part] = cost[part] * ((p[part] >= value) != is_class[part])
    constants = [float((cost * (truth != one)).mean()) for one in (0, 1)]
    best = int(np.argmin(constants))
    return CheapestThreshold(
        classes[k],
        _cheapest(p, is_class, cost, bayes),
        dict(zip(map(str, classes), each, strict=True)),
        float(paid.mean()),
        float((cost * ((p >= 0.5) != is_class)).mean()),
        classes[best],
        constants[best],
    )


def _parts(is_class: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the rows that choose a threshold and those that test it, stratified by class."""
    rng = np.random.default_rng(0)
    part = np.empty(len(is_class), dtype=np.int64)
    for rows in (np.flatnonzero(is_class), np.flatnonzero(~is_class)):
        part[rng.permutation(rows)] = np.arange(len(rows)) % PARTS
    for k in range(PARTS):
        yield np.flatnonzero(part != k), np.flatnonzero(part == k)


def _cheapest(p: Array, is_class: Array, cost: Array, bayes: float) -> float:
    """Return the cheapest threshold; of several, the one closest to `bayes`.

    This is the cheapest one for true probabilities. A threshold between two probabilities is
    rounded to the fewest digits.
    """
    levels, level = np.unique(p, return_inverse=True)
    # from the lowest level up, the rows of a level are no longer predicted as the class
    change = np.bincount(level, np.where(is_class, cost, -cost), minlength=len(levels))
    total = np.concatenate([[0.0], np.cumsum(change)]) + cost[~is_class].sum()
    if levels[-1] >= 1:  # no threshold is above it
        total[-1] = np.inf
    ends = np.concatenate([[-1.0], levels, [np.inf]])
    closest = []
    for i in np.flatnonzero(total <= total.min() + 1e-9 * cost.sum()):
        low, high = max(float(ends[i]), 0.0), min(float(ends[i + 1]), 1.0)
        closest.append((abs(min(max(bayes, low), high) - bayes), low, high))
    _, low, high = min(closest)
    if low < bayes <= high:
        return _shortest(bayes, low, high)
    return _shortest((low + high) / 2, low, high)


def _shortest(value: float, low: float, high: float) -> float:
    """Return the number with the fewest digits near the value and in (low, high]."""
    for digits in range(2, 17):
        short = float(f"{value:.{digits}g}")
        if low < short <= high:
            return short
    return value
