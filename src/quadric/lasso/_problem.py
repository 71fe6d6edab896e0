"""The lasso over all terms: what is minimized, its groups, and how far a point is from optimal."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.lasso._losses import LOSSES, Loss
from quadric.lasso._terms import Terms

HIERARCHIES = ("none", "strong")


@dataclass(frozen=True)
class Problem:
    """Minimize mean loss(z, y) + alpha * penalty, with z = intercept + terms @ coefficients.

    Parameters
    ----------
    terms : Terms
        The standardized terms of the samples, and the weights of the samples.
    Y : array of shape (n_samples, K)
        The targets.
    loss : {'squared', 'logistic', 'multinomial'}
        The loss.
    hierarchy : {'none', 'strong'}
        'none': the penalty is the sum of the absolute coefficients. 'strong': the overlapping group
        lasso. A group has the number of its last term: s_i alone, (s_i, s_i^2) or
        (s_i, s_j, s_i s_j). Each has its own latent coefficients, the sum of which are the
        coefficients of the terms, and the penalty is the sum of sqrt(size) * norm over all groups.

    Notes
    -----
    The score of a group is the norm of its gradient divided by sqrt(size). At the optimum, it is at
    most alpha, and equal to alpha in the groups that are not zero. The score is never larger than
    the root mean square of the residual, because a standardized term has the mean square 1.
    """

    terms: Terms
    Y: Array
    loss: str
    hierarchy: str = "none"
    _members: dict[int, list[int]] = field(default_factory=dict, repr=False)

    @property
    def function(self) -> Loss:
        """The loss."""
        return LOSSES[self.loss]

    @cached_property
    def usable(self) -> Array:
        """Whether a group can have a coefficient: its last term is not constant."""
        return np.isfinite(self.terms.deviation)

    def members(self, group: int) -> list[int]:
        """The terms of a group, of which the last has the group's number."""
        if self.hierarchy == "none" or group < self.terms.n:
            return [group]
        if group not in self._members:
            i, j = (int(one[0]) for one in self.terms.inputs_of(np.array([group])))
            self._members[group] = [*sorted({i, j}), group]
        return self._members[group]

    def scores(self, gradient: Array) -> Array:
        """The scores of all groups, shape (n_terms, K), from the gradients of all terms."""
        if self.hierarchy == "none":
            return np.abs(gradient)
        n, (i, j) = self.terms.n, self.terms.pairs
        squares = gradient**2
        total = squares[n:] + squares[i] + np.where((i == j)[:, None], 0.0, squares[j])
        size = np.where(i == j, 2.0, 3.0)[:, None]
        return np.concatenate([np.abs(gradient[:n]), np.sqrt(total / size)])

    def average(self, values: Array) -> Array:
        """The weighted mean over the samples."""
        mean: Array = self.terms.weight @ values
        return mean

    def mean_loss(self, z: Array) -> float:
        """The weighted mean of the losses."""
        return float(self.average(self.function.values(z, self.Y)))

    def gap(self, z: Array, residual: Array, penalty: float, alpha: float, largest: float) -> float:
        """The duality gap of a point whose penalty and largest score are given.

        The residual, multiplied by alpha / largest if that is less than 1, is a feasible point of
        the dual problem; the residual sums to zero because the intercept is optimal.
        """
        shrink = min(1.0, alpha / largest) if largest > 0 else 1.0
        dual = -self.average(self.function.conjugate(shrink * residual, self.Y))
        return float(self.mean_loss(z) + alpha * penalty - dual)


@dataclass
class Solution:
    """Coefficients of the groups that are not zero, and the scores z of the samples."""

    intercept: Array
    z: Array
    groups: dict[tuple[int, int], Array] = field(default_factory=dict)  # by class and group

    @classmethod
    def zero(cls, problem: Problem) -> "Solution":
        return cls(np.zeros(problem.Y.shape[1]), np.zeros(problem.Y.shape))

    @property
    def penalty(self) -> float:
        """The penalty, without the factor alpha."""
        return float(sum(np.sqrt(len(v)) * np.linalg.norm(v) for v in self.groups.values()))

    def coefficients(self, problem: Problem) -> tuple[Array, Array]:
        """The terms that are not zero, in order, and their coefficients, shape (terms, K)."""
        found: dict[int, Any] = {}
        for (k, group), values in self.groups.items():
            for term, value in zip(problem.members(group), values, strict=True):
                found.setdefault(term, np.zeros(len(self.intercept)))[k] += value
        terms = np.array(sorted(found), dtype=np.intp)
        return terms, np.array([found[t] for t in terms]).reshape(len(terms), len(self.intercept))
