"""Permutation importance: how much the score drops if the values of one input are shuffled."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import Array
from quadric.explain._columns import Columns


@dataclass(frozen=True)
class PermutationImportance:
    """How much the score drops if the values of one input are shuffled.

    Parameters
    ----------
    name : str
        The input: a column of the data, before any encoding.
    mean, std : float
        Mean and standard deviation of the drop over the repetitions. The score is the accuracy of
        a classifier and R² of a regressor.
    """

    name: str
    mean: float
    std: float

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
            The attributes.
        """
        return asdict(self)


def permutation_importances(
    model: Any, X: Any, y: Any, *, repeats: int = 5, rng: Any = 0
) -> list[PermutationImportance]:
    """Measure how much a model's score drops if the values of one input are shuffled.

    Parameters
    ----------
    model : fitted estimator, or Pipeline
        A classifier or regressor.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, preferably not used in training.
    y : array of shape (n_samples,)
        The true classes or numbers.
    repeats : int
        Number of times each input is shuffled.
    rng : int, Generator or None
        Seed of the shuffling.

    Returns
    -------
    list of PermutationImportance
        One entry per column of X, the most important first.

    Notes
    -----
    If two inputs carry the same information, shuffling one of them changes little, and both seem
    unimportant.
    """
    repeats = checks.check_integer("repeats", repeats, at_least=1)
    columns, y = Columns(X, getattr(model, "feature_names_in_", None)), np.asarray(y)
    if len(y) != len(columns):
        raise ValueError(f"y must hold {len(columns)} values, one per row of X. Got {len(y)}.")
    rng, score = np.random.default_rng(rng), _score(model, X, y)
    found = []
    for k, name in enumerate(columns.names):
        values = columns.values(k)
        drops = [
            score - _score(model, columns.replaced({k: rng.permutation(values)}), y)
            for _ in range(repeats)
        ]
        found.append(PermutationImportance(name, float(np.mean(drops)), float(np.std(drops))))
    return sorted(found, key=lambda one: -one.mean)


def _score(model: Any, X: Any, y: Array) -> float:
    """Accuracy, or R² averaged over the outputs."""
    predicted = np.asarray(model.predict(X))
    if getattr(model, "classes_", None) is not None:
        return float(np.mean(predicted == y))
    spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    errors = ((y - predicted) ** 2).sum(axis=0)
    return float(np.mean(1 - errors / np.where(spread > 0, spread, 1.0)))
