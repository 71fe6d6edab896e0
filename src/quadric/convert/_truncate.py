"""Keep the strongest eigenvectors of a quadratic layer: low rank, and cheap to evaluate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.metrics import r2_score

from quadric.checks import (
    FLOAT64,
    Array,
    as_inputs,
    check_flag,
    check_integer,
    check_number,
    subtract,
    unmasked,
)
from quadric.convert._fold import view_of_one_layer, with_steps
from quadric.core import ACTIVATIONS, Layer, Linear, Quadratic, Reduced
from quadric.models import ModelView, transformed
from quadric.network import Network
from quadric.utils import check_limit

BLOCK = 16  # eigenvectors of each output that are evaluated at once


def truncate(
    model: Any,
    rank: int | Sequence[int] | None = None,
    *,
    tolerance: float | None = None,
    X: Any = None,
    y: Any = None,
    centered: bool | None = None,
) -> Network:
    """Keep the eigenvectors of Q whose eigenvalues have the largest magnitude.

    Each output x'Qx + w'x + b becomes the sum of lambda (v'x)² over the kept eigenvectors, plus
    w'x + b. A reduced neuron computes each of the squares, and a linear layer adds them. For n
    inputs, a prediction costs O(n rank) instead of O(n²) for each output.

    Parameters
    ----------
    model : Network, layer, fitted estimator, Pipeline or torch.nn.Module
        A model that folds to one quadratic layer; see `fold`.
    rank : int or sequence of int, optional
        The number of eigenvectors to keep, for all outputs or for each. The number of inputs keeps
        all of them, and 0 keeps only the linear part.
    tolerance : float, optional
        Instead of `rank`: the accepted loss of accuracy on X and y, such as 0.01 for one percentage
        point. The smallest common rank within it is found first, and is then lowered for single
        outputs as long as the accuracy allows. For a regressor, it is the accepted loss of R².
    X : array or table of shape (n_samples, n_features), optional
        Inputs, in the form that the model accepts. Required with `tolerance`.
    y : array of shape (n_samples,), optional
        The true classes or numbers. For a Network, the classes are the indices of its outputs.
    centered : bool, optional
        Whether to subtract the mean Q of all outputs first, as in `quadric.explain.spectrum`. This
        changes no prediction of a softmax, because it adds the same number to all scores. The
        default is True for a softmax, and False otherwise.

    Returns
    -------
    Network
        A reduced and a linear layer with the output activation of the model, in float64. It has the
        inputs of the model (for a pipeline, the raw features), and can be trained further. With
        all eigenvectors, its outputs are those of the model.

    Notes
    -----
    The eigenvectors of a pipeline are those in the scaled features, because the size of an
    eigenvalue depends on the units. The affine steps are then folded into the reduced layer. The
    ranks of the outputs are ``np.count_nonzero(network.layers[1].W, axis=1) - 1``.

    Examples
    --------
    >>> net = Network.create(20, [("quadratic", 3, "softmax")], rng=0)
    >>> truncate(net, 4)
    Network(20 -> reduced 15 identity, linear 3 softmax; float64)
    """
    if (rank is None) == (tolerance is None):
        raise TypeError("truncate needs exactly one of rank and tolerance.")
    view = view_of_one_layer(model)
    parts = Eigenparts(view, centered)
    if tolerance is None:
        ranks = _checked_ranks(rank, parts)
    else:
        tolerance = check_number("tolerance", tolerance, at_least=0)
        if X is None or y is None:
            raise TypeError("tolerance needs X and y, on which the accuracy is measured.")
        Z = _inputs(view, X)
        ranks = _lowest_ranks(parts, Z, _Score.of(view, y, len(Z)), tolerance)
    reduced, total = parts.reduced(ranks)
    return Network([with_steps(view, reduced), total], ["identity", view.network.activations[-1]])


def truncation_scores(
    model: Any,
    X: Any,
    y: Any,
    ranks: Sequence[int] | None = None,
    *,
    centered: bool | None = None,
) -> tuple[Array, Array]:
    """Compute the accuracy of a model, or R² of a regressor, truncated to each of several ranks.

    Parameters
    ----------
    model : Network, layer, fitted estimator, Pipeline or torch.nn.Module
        A model that folds to one quadratic layer; see `fold`.
    X : array or table of shape (n_samples, n_features)
        Inputs, as in `truncate`.
    y : array of shape (n_samples,)
        The true classes or numbers, as in `truncate`.
    ranks : sequence of int, optional
        The numbers of eigenvectors that all outputs keep. By default, 0, 1, ... up to the number of
        inputs.
    centered : bool, optional
        Whether to subtract the mean Q of all outputs first, as in `truncate`.

    Returns
    -------
    ranks : array of shape (n_ranks,)
        The ranks, in ascending order.
    scores : array of shape (n_ranks,)
        The score for each rank.
    """
    return scored_truncations(model, X, y, ranks, centered)[:2]


def scored_truncations(
    model: Any, X: Any, y: Any, ranks: Sequence[int] | None, centered: bool | None = None
) -> tuple[Array, Array, str]:
    """The ranks, their scores and the name of the score; see `truncation_scores`."""
    view = view_of_one_layer(model)
    parts = Eigenparts(view, centered)
    given = range(parts.n + 1) if ranks is None else ranks
    wanted = sorted({check_integer("ranks", rank, at_least=0) for rank in given})
    if not wanted or wanted[-1] > parts.n:
        raise ValueError(f"ranks must hold whole numbers up to {parts.n}, the number of inputs.")
    Z = _inputs(view, X)
    score = _Score.of(view, y, len(Z))
    scores, z = [], parts.linear(Z)
    for rank, more in enumerate(parts.terms(Z, wanted[-1])):
        if rank in wanted:
            scores.append(score(z))
        z = z + more
    scores.append(score(z))
    return np.array(wanted), np.array(scores), "R²" if score.labels is None else "accuracy"


def centers(network: Network, centered: bool | None) -> bool:
    """Whether to subtract the mean Q of all outputs; by default, only for a softmax."""
    if centered is None:
        centered = network.activations[-1] == "softmax"
    return check_flag("centered", centered) and network.n_outputs > 1


def without_mean(Q: Array) -> Array:
    """The matrices minus their mean, which adds the same number to all scores of an input."""
    return subtract(Q, Q.mean(axis=0))


def eigenpairs(Q: Array) -> tuple[Array, Array]:
    """Eigenvalues by decreasing magnitude, and eigenvectors as rows; for a stack of matrices.

    The largest component of an eigenvector is positive.
    """
    values, P = np.linalg.eigh(Q)
    order = np.argsort(-np.abs(values), axis=-1, kind="stable")
    values = np.take_along_axis(values, order, axis=-1)
    vectors = np.take_along_axis(P.swapaxes(-1, -2), order[..., None], axis=-2)
    largest = np.abs(vectors).argmax(axis=-1, keepdims=True)
    return values, vectors * np.sign(np.take_along_axis(vectors, largest, axis=-1))


class Eigenparts:
    """The outputs of a quadratic layer as sums of lambda (v'x)² and a linear part."""

    def __init__(self, view: ModelView, centered: bool | None) -> None:
        layer = view.one_layer
        if centers(view.network, centered):
            layer = Quadratic(layer.W, layer.b, without_mean(layer.Q))
        self.layer, (self.m, self.n) = layer, layer.W.shape
        check_limit(
            4 * 8 * self.m * self.n**2,
            f"the eigenvectors of {self.m:,} outputs with {self.n:,} inputs",
            "Use a model with fewer inputs.",
        )
        self.values, self.vectors = eigenpairs(layer.Q)

    def linear(self, Z: Array) -> Array:
        """w'x + b for each row and output."""
        return np.asarray(Z @ self.layer.W.T + self.layer.b)

    def terms(self, Z: Array, rank: int) -> Iterator[Array]:
        """Yield the term of each output's next eigenvector, shape (n_samples, m), up to `rank`."""
        for start in range(0, rank, BLOCK):
            end = min(start + BLOCK, rank)
            V = self.vectors[:, start:end].reshape(-1, self.n)
            squares = (Z @ V.T).reshape(len(Z), self.m, end - start) ** 2
            yield from np.moveaxis(self.values[:, start:end] * squares, 2, 0)

    def reduced(self, ranks: Sequence[int]) -> tuple[Layer, Linear]:
        """The reduced layer with the kept eigenvectors, and the layer that adds its neurons.

        lambda (v'x)² is computed as ±(s'x)(s'x) with s = sqrt(|lambda|) v, so that both factors
        have the same size, which helps further training. The linear part is (w'x + b)·1.
        """
        kept = [(k, r) for k in range(self.m) for r in range(ranks[k])]
        k, r = np.array(kept, dtype=int).reshape(-1, 2).T
        values = self.values[k, r]
        S = np.sqrt(np.abs(values))[:, None] * self.vectors[k, r]
        zero, one, none = np.zeros(len(S)), np.ones(self.m), np.zeros((self.m, self.n))
        product = Reduced(
            np.vstack([S, self.layer.W]),
            np.concatenate([zero, self.layer.b]),
            np.vstack([S, none]),
            np.concatenate([zero, one]),
        )
        signs = np.zeros((self.m, len(S)))
        signs[k, np.arange(len(S))] = np.where(values < 0, -1.0, 1.0)
        return product, Linear(np.hstack([signs, np.eye(self.m)]), np.zeros(self.m))


@dataclass(frozen=True)
class _Score:
    """The score of a model's logits for the targets `y`.

    `labels` are the classes of the outputs, or None for numbers, which are `activation(z)`.
    """

    y: Array
    labels: Array | None
    activation: str

    @classmethod
    def of(cls, view: ModelView, y: Any, n_samples: int) -> Self:
        """Check the targets.

        For a classifier, y holds classes. For other models, it holds indices of
        outputs, one-hot rows or numbers.
        """
        if view.is_multilabel:
            raise ValueError("the outputs are not mutually exclusive classes; give rank instead.")
        y = np.asarray(unmasked("y", y))
        m, last, classes = view.network.n_outputs, view.network.activations[-1], view.classes
        if y.shape not in ((n_samples,), (n_samples, m if classes is None else 1)):
            raise ValueError(f"y must have shape ({n_samples},), one entry per row. Got {y.shape}.")
        numbers = classes is None and last not in ("logistic", "softmax")
        if numbers and (m == 1 or y.ndim == 2):
            return cls(y.reshape(n_samples, m).astype(float), None, last)
        if classes is None and y.ndim == 2 and m > 1:
            y = y.argmax(axis=1)
        labels = view.labels
        unknown = sorted(set(y.ravel().tolist()) - set(labels.tolist()), key=str)
        if unknown:
            raise ValueError(f"y must hold the model's classes, {labels.tolist()}. Got {unknown}.")
        return cls(y.ravel(), labels, last)

    def __call__(self, z: Array) -> float:
        if self.labels is None:
            return float(r2_score(self.y, ACTIVATIONS[self.activation].function(z)))
        predicted = (z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)
        return float(np.mean(self.labels[predicted] == self.y))


def _lowest_ranks(parts: Eigenparts, Z: Array, score: _Score, tolerance: float) -> list[int]:
    """The smallest common rank within the tolerance, lowered for each output while possible."""
    wanted = score(parts.layer.forward(Z)[0]) - tolerance
    z, terms = parts.linear(Z), []
    for term in parts.terms(Z, parts.n):
        if score(z) >= wanted:
            break
        z = z + term
        terms.append(term)
        check_limit(
            8 * len(terms) * term.size, f"{len(terms)} terms of all rows", "Give fewer rows."
        )
    ranks = [len(terms)] * parts.m
    lowered = True
    while lowered:
        lowered = False
        last = {k: abs(parts.values[k, rank - 1]) for k, rank in enumerate(ranks) if rank}
        for k in sorted(last, key=last.__getitem__):
            fewer = z.copy()
            fewer[:, k] -= terms[ranks[k] - 1][:, k]
            if score(fewer) >= wanted:
                z, lowered = fewer, True
                ranks[k] -= 1
    return ranks


def _inputs(view: ModelView, X: Any) -> Array:
    Z = as_inputs("X", transformed(view.transformers, view.read(X)), view.network.n_inputs, FLOAT64)
    return Z.toarray() if hasattr(Z, "toarray") else Z


def _checked_ranks(rank: Any, parts: Eigenparts) -> list[int]:
    given = [rank] * parts.m if np.ndim(rank) == 0 else list(rank)
    ranks = [check_integer("rank", one, at_least=0) for one in given]
    if len(ranks) != parts.m or max(ranks) > parts.n:
        raise ValueError(
            f"rank must be one number or one for each of the {parts.m} outputs, up to {parts.n}, "
            f"the number of inputs. Got {rank!r} instead."
        )
    return ranks
