"""Checked training data."""

from dataclasses import dataclass
from typing import Self

from scipy import sparse

from quadric._utils.arrays import Array, Matrix


@dataclass(frozen=True)
class Samples:
    """Inputs, targets, sample weights and a constant that is added to every input."""

    X: Matrix
    Y: Array
    weight: Array | None = None
    offset: Array | None = None

    def __len__(self) -> int:
        return len(self.Y)

    def take(self, rows: Array) -> Self:
        """Return some of the samples, with the offset added to their inputs."""
        weight = None if self.weight is None else self.weight[rows]
        return type(self)(self.shift(self.X[rows]), self.Y[rows], weight)

    def shift(self, X: Matrix) -> Matrix:
        """Return X plus the offset, which makes a sparse X dense."""
        if self.offset is None:
            return X
        return (X.toarray() if sparse.issparse(X) else X) + self.offset


def squared(X: Matrix) -> Matrix:
    """Return the squared entries of a CSR matrix; SciPy's product needs three times the memory."""
    return sparse.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape)
