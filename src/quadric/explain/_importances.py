"""The importance of each input: its share of the variance of z, or the drop if it is shuffled."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from quadric.checks import Array, check_integer
from quadric.explain._dependence import Columns
from quadric.explain._terms import Expansion
from quadric.models import classes_of, input_names_of
from quadric.network import Network


@dataclass(frozen=True)
class Importance:
    """The share of the variance of z that comes from one input.

    Parameters
    ----------
    name : str
        The input. The columns of a one-hot encoding count as one input.
    linear : float
        Share of the linear terms of the input.
    squared : float
        Share of its squared terms.
    interactions : float
        Half of the shares of its products with other inputs. The other half belongs to the other
        input.
    """

    name: str
    linear: float
    squared: float
    interactions: float

    @property
    def total(self) -> float:
        """The sum of the three parts; the totals of all inputs add up to 1."""
        return self.linear + self.squared + self.interactions

    def to_dict(self) -> dict[str, Any]:
        """Convert the importance to plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
            The attributes and the total.
        """
        return {"name": self.name, "total": self.total, **asdict(self)}


def importances(expansions: Sequence[Expansion], groups: Sequence[str]) -> list[Importance]:
    """The importance of every input, the most important first.

    With several outputs, the variance is the sum of the outputs' variances.
    """
    names = list(dict.fromkeys(groups))
    index = {name: g for g, name in enumerate(names)}
    members = np.array([index[group] for group in groups])
    total = sum(one.variance for one in expansions)
    slopes = sum(one.covariances[0] for one in expansions)
    products = np.array(sum(one.covariances[1] for one in expansions))
    linear = np.bincount(members, slopes, len(names))
    rows = np.zeros((len(names), len(members)))
    np.add.at(rows, members, products)
    pairs = np.zeros((len(names), len(names)))
    np.add.at(pairs.T, members, rows.T)
    squared = np.diagonal(pairs)
    between = pairs - np.diag(squared)
    mixed = (between.sum(axis=0) + between.sum(axis=1)) / 2
    scale = 1 / total if total > 0 else 0.0
    parts = np.stack([linear, squared, mixed]) * scale
    order = np.argsort(-np.abs(parts.sum(axis=0)), kind="stable")
    return [Importance(names[g], *map(float, parts[:, g])) for g in order.tolist()]


@dataclass(frozen=True)
class PermutationImportance:
    """How much the score drops if the values of one input are shuffled.

    Parameters
    ----------
    name : str
        The input: a column of the data, before any encoding.
    mean, std : float
        Mean and standard deviation of the drop over the repetitions. The score is the accuracy of
        a classifier, or R² of a regressor, averaged over its outputs. A row with several labels
        counts as correct if all of them are.
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
    y : array of shape (n_samples,) or (n_samples, n_outputs)
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
    repeats = check_integer("repeats", repeats, at_least=1)
    columns, y = Columns(X, input_names_of(model)), _one_column(y)
    if y.shape[:1] != (len(columns),):
        raise ValueError(
            f"y must hold {len(columns)} values, one per row of X. Got shape {y.shape}."
        )
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


def _one_column(y: Any) -> Array:
    """The targets as an array; a single column becomes a vector."""
    y = np.asarray(y)
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _score(model: Any, X: Any, y: Array) -> float:
    """Accuracy, or R² averaged over the outputs, as `score` in scikit-learn."""
    predicted = _one_column(model.predict(X))
    if predicted.shape != y.shape:  # otherwise, NumPy would compare all pairs of rows
        raise ValueError(
            f"y must have shape {predicted.shape}, as the predictions of the model. Got {y.shape}."
        )
    network = isinstance(model, Network) and model.activations[-1] in ("logistic", "softmax")
    if network or classes_of(model) is not None:
        right = predicted == y
        return float(np.mean(right if right.ndim == 1 else right.all(axis=1)))
    return float(r2_score(y, predicted))
