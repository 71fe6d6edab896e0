"""Fold layers that are together a polynomial of degree two into one quadratic layer, exactly."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from quadric._utils.arrays import FLOAT64, as_numbers
from quadric._utils.memory import check_limit
from quadric.convert._layers import layer_to_quadratic
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.network import Network
from quadric.pipelines._affine import affine_map
from quadric.pipelines._table import split_network

ACCEPTED = (
    "a Network, a fitted quadric estimator, a Pipeline that ends with one, or a torch Sequential"
)


def fold(model: Any) -> Network:
    """Fold layers that are together a polynomial of degree two into one layer.

    Linear layers with identity activation, the affine steps of a pipeline and one quadratic or
    reduced layer are composed into one quadratic layer that computes the same function. Layers are
    composed until an activation other than the identity separates them or the degree would exceed
    two. A linear, a reduced and a linear layer, which is called a bilinear MLP, thus become a
    single quadratic layer.

    Parameters
    ----------
    model : Network, fitted estimator, Pipeline or torch.nn.Module
        The model. A module is converted by `quadric.torch.to_network`. The steps of a pipeline must
        be affine, such as scalers and PCA.

    Returns
    -------
    Network
        The folded network with the output activation of the model, in float64. Its inputs are those
        of the model: for a pipeline, the raw features. If the features are much farther from zero
        than from each other, the coefficients about zero are less precise than the model.

    Examples
    --------
    >>> from quadric import Network
    >>> net = Network.create(
    ...     5, [("linear", 3, "identity"), ("reduced", 8, "identity"), ("linear", 2, "softmax")]
    ... )
    >>> fold(net).layers
    (Quadratic(5 -> 2, float64),)
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from quadric.torch import to_network

        model = to_network(model)
    named_steps, _, network = split_network(model, ACCEPTED)
    steps = [step for _, step in named_steps]
    layers: list[Layer] = []
    for k, step in enumerate(steps):
        change = affine_map(step, steps[k + 1 :])
        layers.append(Linear(change.matrix, change.t))
    network = network.astype(FLOAT64)
    activations = ["identity"] * len(layers) + list(network.activations)
    return Network(*_fold([*layers, *network.layers], activations))


def fold_bilinear(
    W: Any,
    V: Any,
    out: Any,
    *,
    embed: Any = None,
    biases: Mapping[str, Any] | None = None,
    residual: bool = False,
) -> Quadratic:
    """Fold a bilinear block, given by its matrices, into one quadratic layer.

    The block computes ``h = embed x``, then ``out (W h * V h)`` and, with `residual`, adds ``h``
    before `out` is applied: ``out (W h * V h + h)``.

    Parameters
    ----------
    W, V : arrays of shape (m, d)
        The two factors of the product.
    out : array of shape (k, m)
        The matrix after the product.
    embed : array of shape (d, n), optional
        The matrix before the product. By default, the block's inputs are h.
    biases : dict of arrays, optional
        Biases by the name of their matrix: 'W', 'V', 'out' and 'embed'. A missing one is zero.
    residual : bool, default=False
        Whether h is added to the product. This requires m = d.

    Returns
    -------
    Quadratic
        A layer with n inputs and k neurons that computes the same function, in float64.
    """
    given = {"W": W, "V": V, "out": out} | ({} if embed is None else {"embed": embed})
    matrices = {name: as_numbers(name, value, FLOAT64) for name, value in given.items()}
    wrong = [name for name, matrix in matrices.items() if matrix.ndim != 2 or not matrix.size]
    if wrong:
        raise ValueError(f"{wrong[0]} must be a matrix. Got shape {matrices[wrong[0]].shape}.")
    unknown = set(biases or {}) - set(matrices)
    if unknown:
        raise ValueError(f"biases must name matrices that are given. Got {sorted(unknown)}.")
    b = {
        name: as_numbers(f"biases[{name!r}]", (biases or {}).get(name, np.zeros(len(m))), FLOAT64)
        for name, m in matrices.items()
    }
    product = Reduced(matrices["W"], b["W"], matrices["V"], b["V"])
    last = Linear(matrices["out"], b["out"])
    if last.n_inputs != product.n_outputs:
        raise ValueError(
            f"out must have {product.n_outputs} columns, one per row of W and V. "
            f"Got shape {matrices['out'].shape}."
        )
    layer = _compose(product, last)
    if residual:
        if product.n_inputs != product.n_outputs:
            raise ValueError(
                "residual requires square W and V, because h is added to their product. "
                f"Got shape {matrices['W'].shape}."
            )
        layer.W += last.W
    if embed is not None:
        first = Linear(matrices["embed"], b["embed"])
        if first.n_outputs != product.n_inputs:
            raise ValueError(
                f"embed must have {product.n_inputs} rows, one per column of W and V. "
                f"Got shape {matrices['embed'].shape}."
            )
        layer = _compose(first, layer)
    return layer_to_quadratic(layer)


def _fold(layers: Sequence[Layer], activations: Sequence[str]) -> tuple[list[Layer], list[str]]:
    """Fold every stretch of layers whose composition has degree two at most."""
    folded, kept = [layers[0]], [activations[0]]
    for layer, activation in zip(layers[1:], activations[1:], strict=True):
        linear = isinstance(layer, Linear) or isinstance(folded[-1], Linear)
        if kept[-1] == "identity" and linear:
            folded[-1], kept[-1] = _compose(folded[-1], layer), activation
        else:
            folded.append(layer)
            kept.append(activation)
    return [one if isinstance(one, Linear) else layer_to_quadratic(one) for one in folded], kept


def _compose(first: Layer, second: Layer) -> Layer:
    """The layer that computes second(first(x)); one of the two is linear."""
    n, m = first.n_inputs, second.n_outputs
    if not (isinstance(first, Linear) and isinstance(second, (Linear, Reduced))):
        check_limit(
            3 * 8 * m * n * n,
            f"{m:,} quadratic neurons with {n:,} inputs",
            "Fold a model with fewer inputs.",
        )
    try:
        with np.errstate(all="ignore"):
            if isinstance(first, Linear):
                return _after_linear(first, second)
            assert isinstance(second, Linear)
            return _before_linear(first, second)
    except ValueError:  # a coefficient is not finite
        raise ValueError(
            "the folded layer is larger than floating-point numbers can represent. Products of the "
            "weights overflow; measure the inputs in other units."
        ) from None


def _after_linear(first: Linear, second: Layer) -> Layer:
    A, moved = first.W, second.shifted(first.b)
    if isinstance(moved, Linear):
        return Linear(moved.W @ A, moved.b)
    if isinstance(moved, Reduced):
        return Reduced(moved.W @ A, moved.b, moved.U @ A, moved.c)
    assert isinstance(moved, Quadratic)
    return Quadratic(moved.W @ A, moved.b, A.T @ moved.Q @ A)


def _before_linear(first: Layer, second: Linear) -> Quadratic:
    P, b = second.W, second.b
    if isinstance(first, Quadratic):
        return Quadratic(P @ first.W, P @ first.b + b, packed=first.packed @ P.T)
    assert isinstance(first, Reduced)
    # the neurons' own matrices are never built: there may be hundreds of them
    Q = np.stack([(first.W.T * p) @ first.U for p in P])
    W = P @ (first.c[:, None] * first.W + first.b[:, None] * first.U)
    return Quadratic(W, P @ (first.b * first.c) + b, Q)
