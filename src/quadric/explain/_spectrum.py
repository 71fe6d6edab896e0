"""Eigenvalues and eigenvectors of the interaction matrices Q, one matrix per class or output."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from quadric.checks import Array
from quadric.convert import eigenpairs
from quadric.explain import _spectrum_text as text
from quadric.explain._interactions import interactions

NEGLIGIBLE = 1e-12  # eigenvalues below this share of the largest one are rounding errors


class Eigenpairs(NamedTuple):
    """Some of the eigenvalues of a matrix, and their eigenvectors.

    Parameters
    ----------
    eigenvalues : array of shape (count,)
        The eigenvalues, by decreasing magnitude.
    eigenvectors : array of shape (count, n)
        The eigenvectors, one per row.
    """

    eigenvalues: Array
    eigenvectors: Array


@dataclass(frozen=True)
class Spectrum:
    """The result of `spectrum`: for each of m outputs, the eigenvalues of its n x n matrix Q.

    Parameters
    ----------
    labels : list
        The classes, or the names of the outputs or neurons.
    names : list of str
        The names of the n coordinates.
    note : str
        A description of the coordinates and of the scores whose Q are decomposed.
    eigenvalues : array of shape (m, n)
        The eigenvalues, by decreasing magnitude.
    eigenvectors : array of shape (m, n, n)
        The eigenvectors: ``eigenvectors[k, i]`` belongs to ``eigenvalues[k, i]``. They have length
        1, and their largest component is positive.
    """

    labels: list[Any]
    names: list[str]
    note: str
    eigenvalues: Array
    eigenvectors: Array

    @property
    def energy(self) -> Array:
        """The share of each eigenvalue in the sum of their squares, shape (m, n)."""
        squares = self._scaled**2
        total = squares.sum(axis=1, keepdims=True)
        return squares / np.where(total > 0, total, 1.0)

    @property
    def effective_rank(self) -> Array:
        """The participation ratio (sum |lambda|)² / sum lambda² of each output, shape (m,)."""
        sums, squares = np.abs(self._scaled).sum(axis=1), (self._scaled**2).sum(axis=1)
        return sums**2 / np.where(squares > 0, squares, 1.0)

    @property
    def _scaled(self) -> Array:
        """The eigenvalues of each output, times a power of two so that squares do not overflow."""
        largest = np.abs(self.eigenvalues).max(axis=1, keepdims=True)
        return np.ldexp(self.eigenvalues, -np.frexp(largest)[1])

    @property
    def positive(self) -> list[Eigenpairs]:
        """For each output, the positive eigenvalues, the largest first, and their eigenvectors."""
        return self._where(1)

    @property
    def negative(self) -> list[Eigenpairs]:
        """For each output, the negative eigenvalues, the lowest first, and their eigenvectors."""
        return self._where(-1)

    def _where(self, sign: int) -> list[Eigenpairs]:
        pairs = []
        for values, vectors in zip(self.eigenvalues, self.eigenvectors, strict=True):
            chosen = sign * values > NEGLIGIBLE * np.abs(values).max()
            pairs.append(Eigenpairs(values[chosen], vectors[chosen]))
        return pairs

    def images(self, shape: tuple[int, ...]) -> Array:
        """Reshape the eigenvectors to images.

        Parameters
        ----------
        shape : tuple of int
            The shape of an image, such as (28, 28). Its size must be the number of inputs.

        Returns
        -------
        array of shape (m, n, *shape)
            The eigenvectors as images.
        """
        n = len(self.names)
        if not np.shape(shape) or np.prod(shape) != n:
            raise ValueError(f"shape must describe images with {n} pixels. Got {shape} instead.")
        return self.eigenvectors.reshape(-1, n, *shape)

    def to_dict(self, top: int = 5) -> dict[str, Any]:
        """Convert the spectrum to plain numbers, strings, lists and dicts, ready for JSON.

        Parameters
        ----------
        top : int
            The number of eigenvectors per output. All eigenvalues are included.

        Returns
        -------
        dict
            The note, the names of the coordinates and, for each output, its eigenvalues, effective
            rank and strongest eigenvectors.
        """
        found = [
            {
                "label": label.item() if isinstance(label, np.generic) else label,
                "effective_rank": float(rank),
                "eigenvalues": values.tolist(),
                "eigenvectors": vectors[:top].tolist(),
            }
            for label, rank, values, vectors in zip(
                self.labels, self.effective_rank, self.eigenvalues, self.eigenvectors, strict=True
            )
        ]
        return {"note": self.note, "names": self.names, "outputs": found}

    def to_text(self, top: int = 3, most: int | None = text.MOST_LABELS) -> str:
        """Describe the spectrum as text.

        Parameters
        ----------
        top : int
            The number of eigenvectors per output.
        most : int, optional
            The number of outputs; None for all of them.

        Returns
        -------
        str
            The eigenvalues of each output, and the strongest inputs of its eigenvectors.
        """
        return text.as_text(self, top, most=most)

    def __str__(self) -> str:
        return self.to_text()

    __repr__ = __str__


def spectrum(
    model: Any,
    *,
    between: tuple[Any, Any] | None = None,
    centered: bool | None = None,
    units: str = "inputs",
) -> Spectrum:
    """Decompose the interaction matrix Q of each class into eigenvalues and eigenvectors.

    The score of a class is x'Qx + w'x + b, and x'Qx is the sum of lambda (v'x)² over the eigenpairs
    of Q. An input that resembles v, or -v, raises the score if lambda is positive, and lowers it
    otherwise.

    Parameters
    ----------
    model : Network, layer, fitted estimator, Pipeline or torch.nn.Module
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    between : pair of class labels, optional
        Decompose only the difference of the scores of two classes, the first minus the second.
    centered : bool, optional
        Whether to subtract the mean Q of all outputs. This changes no prediction of a softmax,
        because it adds the same number to all scores. The default is True for a softmax, as in
        `explain`, and False otherwise.
    units : {'inputs', 'scaled'}
        Whether Q refers to the units of the inputs, with scalers and other affine steps of a
        pipeline undone, or to standard deviations, as learned by the scaler of a pipeline. The
        eigenvectors depend on the units.

    Returns
    -------
    Spectrum
        Eigenvalues, eigenvectors, shares of energy and effective ranks, which can be printed.

    Notes
    -----
    The effective rank is the participation ratio of the magnitudes, (sum |lambda|)² / sum lambda²:
    the squared ratio of the 1-norm and the 2-norm. It is 1 for a single eigenvalue, and r for r
    eigenvalues of the same magnitude. Effective ranks of bilinear MLPs [1]_ are published without
    their definition. This one agrees with them within 0.7 (`quadric reproduce bilinear`) if it is
    applied to the Q of a block without its embedding, and without centering:
    ``spectrum(fold_bilinear(W, V, out)).effective_rank``.

    References
    ----------
    .. [1] M. Pearce et al., "Bilinear MLPs enable weight-based mechanistic interpretability", ICLR
       2025, arXiv:2410.08417.

    Examples
    --------
    >>> from quadric.core import Quadratic
    >>> product = Quadratic(W=[[0.0, 0.0]], b=[0.0], Q=[[[0.0, 0.5], [0.5, 0.0]]])  # x1 x2
    >>> found = spectrum(product)
    >>> sorted(found.eigenvalues[0].tolist()), found.effective_rank.round(2).tolist()
    ([-0.5, 0.5], [2.0])
    """
    found = interactions(model, between=between, centered=centered, units=units)
    return Spectrum(found.labels, found.names, found.note, *eigenpairs(found.Q))
