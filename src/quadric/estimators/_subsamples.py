"""Parts of the samples for cross-validation and for stability selection, stratified by class."""

import numpy as np

from quadric.checks import Array


def strata_of(Y: Array, loss: str) -> Array:
    """The class of each sample, of which there is one if the targets are numbers."""
    if loss == "squared":
        return np.zeros(len(Y), dtype=int)
    return Y.argmax(axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0).astype(int)


def halves_of(strata: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Two complementary halves of the samples, with about half of each class."""
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    return order[::2], order[1::2]


def folds(strata: Array, weight: Array | None, count: int, rng: np.random.RandomState) -> Array:
    """The fold of each sample; -1 for weight zero and for the only member of a stratum."""
    fold, next_fold = np.full(len(strata), -1), 0
    for value in np.unique(strata):
        inside = strata == value if weight is None else (strata == value) & (weight > 0)
        members = rng.permutation(np.flatnonzero(inside))
        if len(members) > 1:
            fold[members] = (next_fold + np.arange(len(members))) % count
            next_fold += len(members)
    if next_fold == 0:
        raise ValueError(
            "alpha='auto' needs at least 2 samples of a class. Got n_samples = "
            f"{len(strata)}. Set alpha to a number."
        )
    return fold
