"""Results of the sparse estimators: a path of models, and frequencies of selection."""

from dataclasses import dataclass

from quadric.checks import Array


@dataclass(frozen=True)
class SparsePath:
    """The models for a sequence of penalties.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
        The penalties, in decreasing order.
    terms : list of tuple of int
        The terms that are not zero somewhere on the path: (i,) for x_i, (i, i) for its square and
        (i, j) for a product.
    coefficients : array of shape (n_alphas, n_terms, n_outputs)
        The coefficients of the standardized terms.
    losses : array of shape (n_alphas,)
        The mean losses on the samples of the fit.
    """

    alphas: Array
    terms: list[tuple[int, ...]]
    coefficients: Array
    losses: Array


@dataclass(frozen=True)
class Stability:
    """How often terms are selected on halves of the samples.

    Parameters
    ----------
    terms : list of tuple of int
        The terms that were selected at least once, the most frequent first.
    frequencies : array of shape (n_terms,)
        The share of the halves on which each was selected.
    threshold : float
        The frequency from which a term counts as stable.
    expected_false : float
        The bound on the expected number of false terms among the stable ones.
    n_candidates : int
        The number of all terms.
    """

    terms: list[tuple[int, ...]]
    frequencies: Array
    threshold: float
    expected_false: float
    n_candidates: int

    @property
    def stable(self) -> list[tuple[int, ...]]:
        """The terms whose frequency is at least the threshold."""
        found = zip(self.terms, self.frequencies.tolist(), strict=True)
        return [term for term, frequency in found if frequency >= self.threshold]

    @property
    def by_term(self) -> dict[tuple[int, ...], float]:
        """The frequency of each term."""
        return dict(zip(self.terms, self.frequencies.tolist(), strict=True))
