"""The importance of each input: the share of the variance of z that comes from its terms."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quadric.explain._terms import Expansion


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
