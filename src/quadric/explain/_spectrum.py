"""The interaction matrices Q of classes or outputs: eigenvalues, eigenvectors and similarity."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from quadric.checks import Array, check_choice
from quadric.convert import centers, eigenpairs, fold_along, view_of_one_layer, without_mean
from quadric.explain._explained_layer import ExplainedLayer, tie, two_classes
from quadric.explain._text_and_html import percent
from quadric.models import check_matrices
from quadric.utils import counted, visible

NEGLIGIBLE = 1e-12  # eigenvalues below this share of the largest one are rounding errors
MOST_LABELS, MOST_INPUTS = 20, 4  # in the text: outputs, and inputs of each eigenvector


class Interactions(NamedTuple):
    """The matrices Q of the outputs, shape (m, n, n), and what they refer to."""

    Q: Array
    labels: list[Any]
    names: list[str]
    note: str


def interactions(
    model: Any,
    *,
    between: tuple[Any, Any] | None = None,
    centered: bool | None = None,
    units: str = "inputs",
) -> Interactions:
    """The matrices Q of a model that folds to one layer; the arguments are those of `spectrum`."""
    check_choice("units", units, ("inputs", "scaled"))
    view = view_of_one_layer(model)
    layer, space = view.one_layer, view.coordinates
    check_matrices(layer.n_outputs, space.widest)
    selected = ExplainedLayer(view, layer, True, space)
    subtracts = centers(view.network, centered)
    Q, W, b = selected.functions
    numbered = view.chooses_a_class and view.classes is None and len(b) > 1
    labels = selected.labels if numbered else [label for label, _ in selected.outputs("y")]
    scaled = "The eigenvectors are in the inputs, each measured in its standard deviations."
    note = scaled if units == "scaled" else space.note("eigenvectors")
    if between is not None:
        i, j = two_classes(selected, between)
        surfaces = [tie(selected, i, j)]
        labels = [f"{selected.labels[i]} - {selected.labels[j]}"]
    else:
        if subtracts:
            Q = without_mean(Q)
            note += " The mean Q of all outputs is subtracted."
        surfaces = selected.surfaces(Q, W, b)
    Q = np.stack([surface.Q for surface in surfaces])
    if units == "scaled":
        sizes = space.scales()
        Q = Q * np.outer(sizes, sizes)
    return Interactions(Q, labels, space.names, note)


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
        The eigenvalues, by decreasing magnitude; with a `direction`, those that can be nonzero.
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
        least = NEGLIGIBLE * np.abs(self.eigenvalues).max(axis=1, keepdims=True)
        chosen = sign * self.eigenvalues > least
        return [
            Eigenpairs(values[some], vectors[some])
            for values, vectors, some in zip(
                self.eigenvalues, self.eigenvectors, chosen, strict=True
            )
        ]

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
        return self.eigenvectors.reshape(*self.eigenvectors.shape[:2], *shape)

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

    def text(self, top: int = 3, *, all_outputs: bool = False) -> str:
        """Describe the spectrum in a table per output.

        Parameters
        ----------
        top : int
            The number of eigenvectors per output.
        all_outputs : bool
            Whether to describe all outputs, instead of the first 20.

        Returns
        -------
        str
            The tables, with the strongest inputs of each eigenvector.
        """
        n, count = len(self.names), len(self.labels)
        lines = [
            f"Spectrum of Q for {counted(count, 'output')} over {counted(n, 'input')}.",
            self.note,
            "A positive eigenvalue raises the score of inputs that resemble the eigenvector or its "
            "negative; a negative one lowers it.",
            "Share: of the sum of the squared eigenvalues. Effective rank: (sum |λ|)² / sum λ².",
        ]
        shown = count if all_outputs else min(count, MOST_LABELS)
        for k, label in enumerate(self.labels[:shown]):
            lines += ["", *_output_lines(self, k, label, top)]
        if count > shown:
            lines += ["", f"({counted(count - shown, 'more output')}; all_outputs=True lists all)"]
        return "\n".join(map(visible, lines))

    __str__ = __repr__ = text


def spectrum(
    model: Any,
    *,
    between: tuple[Any, Any] | None = None,
    centered: bool | None = None,
    units: str = "inputs",
    direction: Any = None,
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
    direction : array of shape (n_outputs,), optional
        Decompose only the sum of the outputs with these weights: a direction in the space of the
        outputs, such as an unembedding vector or the difference of two logits. If the model begins
        with a linear layer from n inputs to d < n neurons, such as an embedding, the result has the
        d eigenpairs that can be nonzero, and no n x n matrix is built.

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
    if direction is not None:
        if between is not None or centered is not None or units != "inputs":
            raise ValueError("direction cannot be combined with between, centered or units.")
        return _spectrum_along(model, direction)
    found = interactions(model, between=between, centered=centered, units=units)
    return Spectrum(found.labels, found.names, found.note, *eigenpairs(found.Q))


def _spectrum_along(model: Any, direction: Any) -> Spectrum:
    """The spectrum of the weighted sum of the outputs.

    With an embedding E, its matrix is E'ME. With E' = ZR for orthonormal columns Z, this is
    Z (RMR') Z', whose eigenvectors are those of the small matrix RMR', multiplied by Z.
    """
    E, neuron, names = fold_along(model, direction)
    if E is None:
        values, vectors = eigenpairs(neuron.Q)
    else:
        Z, R = np.linalg.qr(E.T)
        values, vectors = eigenpairs(R @ neuron.Q @ R.T)
        vectors = vectors @ Z.T
        largest = np.abs(vectors).argmax(axis=-1, keepdims=True)
        vectors *= np.sign(np.take_along_axis(vectors, largest, axis=-1))
    note = "Q of the sum of the outputs, weighted by direction. The eigenvectors are in the inputs."
    return Spectrum(["direction"], names, note, values, vectors)


def similarity(
    a: Any, b: Any = None, *, centered: bool | None = None, units: str = "inputs"
) -> Array:
    """Compute the cosine similarity of the interaction matrices Q of classes.

    The similarity of two matrices is the sum of the products of their entries, divided by the
    product of their Frobenius norms. It is 1 if they are equal up to a positive factor, -1 up to a
    negative factor, and 0 for a matrix of zeros.

    Parameters
    ----------
    a : Network, layer, fitted estimator, Pipeline or torch.nn.Module
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    b : like a, optional
        Another model with the same inputs. By default, the classes of `a` are compared with each
        other.
    centered, units : bool and str, optional
        As in `spectrum`.

    Returns
    -------
    array of shape (m_a, m_b)
        The similarity of each class of `a` with each class of `b`.
    """
    first = interactions(a, centered=centered, units=units)
    second = first if b is None else interactions(b, centered=centered, units=units)
    n, m = len(first.names), len(second.names)
    if n != m:
        raise ValueError(f"a and b must have the same inputs. Got {n} and {m} inputs.")
    return np.clip(_normalized(first.Q) @ _normalized(second.Q).T, -1.0, 1.0)


def _normalized(Q: Array) -> Array:
    """The matrices as rows of length 1, or 0 for a matrix of zeros."""
    size = np.abs(Q).max(axis=(1, 2), keepdims=True)  # avoids overflow of the squares
    rows = (Q / np.where(size > 0, size, 1.0)).reshape(len(Q), -1)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


# --------------------------------------------------------------------------------- text


def _output_lines(found: Spectrum, k: int, label: Any, top: int) -> list[str]:
    values, shares = found.eigenvalues[k], found.energy[k]
    plus, minus = len(found.positive[k].eigenvalues), len(found.negative[k].eigenvalues)
    lines = [
        f"{label}: effective rank {found.effective_rank[k]:.1f}, "
        f"{plus} positive and {minus} negative eigenvalues",
        "  eigenvalue    share   strongest inputs",
    ]
    lines += [
        f"  {value:+10.4g}  {percent(share)}   {strongest(vector, found.names, MOST_INPUTS)}"
        for value, share, vector in zip(values[:top], shares, found.eigenvectors[k], strict=False)
    ]
    if len(values) > top:
        rest = counted(len(values) - top, "smaller eigenvalue")
        lines.append(f"  {'':10}  {percent(shares[top:].sum())}   ({rest})")
    return lines


def strongest(vector: Array, names: list[str], count: int) -> str:
    """The inputs with the largest components, such as '+0.89 age, -0.45 income'.

    >>> strongest(np.array([0.6, 0.0, -0.8]), ["a", "b", "c"], 2)
    '-0.80 c, +0.60 a'
    """
    order = np.argsort(-np.abs(vector), kind="stable")[:count]
    return ", ".join(f"{vector[i]:+.2f} {visible(names[i])}" for i in order if vector[i])
