"""Fold layers that are together a polynomial of degree two into one quadratic layer, exactly."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric.checks import FLOAT64
from quadric.convert._layers import layer_to_quadratic
from quadric.convert._offsets import check_offsets
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.models import affine_map, split_network
from quadric.network import Network
from quadric.utils import check_limit

ACCEPTED = (
    "a Network, a layer, a fitted quadric estimator, a Pipeline that ends with one, or a torch "
    "Sequential"
)


def fold(model: Any) -> Network:
    """Fold layers that are together a polynomial of degree two into one layer.

    Linear layers with identity activation, the affine steps of a pipeline and one quadratic or
    reduced layer are composed into one quadratic layer that computes the same function. Layers are
    composed until an activation other than the identity separates them or the degree would exceed
    two. A bilinear MLP, which consists of a linear, a reduced and a linear layer, thus becomes a
    single quadratic layer.

    Parameters
    ----------
    model : Network, layer, fitted estimator, Pipeline or torch.nn.Module
        The model. A module is converted by `quadric.torch.to_network`. The steps of a pipeline must
        be affine, such as scalers and PCA.

    Returns
    -------
    Network
        The folded network with the output activation of the model, in float64. Its inputs are those
        of the model: for a pipeline, the raw features.

    Raises
    ------
    ValueError
        If the features of a pipeline are so far from zero, relative to their spread, that rounding
        errors may reach 1e-7 of the outputs. The coefficients of a layer refer to the origin, so
        the errors grow with the square of this ratio.

    Examples
    --------
    >>> from quadric import Network
    >>> net = Network.create(
    ...     5, [("linear", 3, "identity"), ("reduced", 8, "identity"), ("linear", 2, "softmax")]
    ... )
    >>> fold(net).layers
    (Quadratic(5 -> 2, float64),)
    """
    named_steps, _, network = split_network(_as_model(model), ACCEPTED)
    return fold_steps([step for _, step in named_steps], network)


def fold_steps(steps: Sequence[Any], network: Network) -> Network:
    """Fold the steps of a pipeline and a network; raises NotAffineError for other steps."""
    layers, activations = _fold(network.astype(FLOAT64).layers, network.activations)
    for affine in reversed(affine_layers(steps, layers[0])):
        layers[0] = compose(affine, layers[0])
    return Network(layers, activations)


def fold_to_one_layer(model: Any) -> tuple[list[Any], Any, Network]:
    """The steps of a model, its estimator, and its network folded to one quadratic layer.

    The steps are not folded. Raises ValueError if the network does not fold to one layer.
    """
    named_steps, estimator, network = split_network(_as_model(model), ACCEPTED)
    check_matrices(network.n_outputs, network.n_inputs)
    folded = fold(network)
    if len(folded.layers) > 1:
        raise ValueError(
            f"model must fold to a single quadratic layer. This {type(estimator).__name__} folds "
            f"to {len(folded.layers)} layers. Train with hidden_layer_sizes=() (--hidden none), or "
            "with activation='identity' and one quadratic layer."
        )
    one = Network([layer_to_quadratic(folded.layers[0])], folded.activations)
    return [step for _, step in named_steps], estimator, one


def check_matrices(m: int, n: int) -> None:
    """Check the limit before m matrices of size n x n are built and decomposed."""
    check_limit(
        (4 * m + 6) * 8 * n * n,
        f"{m:,} quadratic neurons with {n:,} inputs as matrices",
        "Use a model with fewer inputs.",
    )


def affine_layers(steps: Sequence[Any], last: Layer) -> list[Layer]:
    """The steps of a pipeline as linear layers, to be composed with the layer that follows.

    Raises NotAffineError if a step is not affine, and ValueError if the composition is not precise.
    """
    changes = [affine_map(step, steps[k + 1 :]) for k, step in enumerate(steps)]
    if changes:
        check_offsets(steps, last)
    return [Linear(change.matrix, change.t) for change in changes]


def _as_model(model: Any) -> Any:
    """The model; a single layer and a torch module as a network."""
    if isinstance(model, Layer):
        return Network([model], ["identity"])
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from quadric.torch import to_network

        return to_network(model)
    return model


def add_residual(layer: Layer) -> Layer:
    """Add a residual connection to a layer: the result computes ``layer(x) + x``.

    Use it to write a residual block as a layer of a Network, which `fold` composes with the layers
    around it.

    Parameters
    ----------
    layer : Linear, Quadratic or Reduced
        A layer with as many neurons as inputs and without an activation.

    Returns
    -------
    Linear or Quadratic
        A layer of the same dtype. A reduced layer becomes a quadratic one.

    Examples
    --------
    >>> from quadric.core import Linear
    >>> add_residual(Linear([[1.0, 2.0], [0.0, 3.0]], [0.0, 0.0])).W
    array([[2., 2.],
           [0., 4.]])
    """
    if layer.n_inputs != layer.n_outputs:
        raise ValueError(
            "a residual connection requires as many neurons as inputs, because they are added. "
            f"Got {layer!r}."
        )
    whole = layer.copy() if isinstance(layer, Linear) else layer_to_quadratic(layer)
    whole.W += np.eye(layer.n_inputs, dtype=layer.dtype)
    return whole


def _fold(layers: Sequence[Layer], activations: Sequence[str]) -> tuple[list[Layer], list[str]]:
    """Fold every stretch of layers whose composition has degree two at most."""
    folded, kept = [layers[0]], [activations[0]]
    for layer, activation in zip(layers[1:], activations[1:], strict=True):
        linear = isinstance(layer, Linear) or isinstance(folded[-1], Linear)
        if kept[-1] == "identity" and linear:
            folded[-1], kept[-1] = compose(folded[-1], layer), activation
        else:
            folded.append(layer)
            kept.append(activation)
    return [one if isinstance(one, Linear) else layer_to_quadratic(one) for one in folded], kept


def compose(first: Layer, second: Layer) -> Layer:
    """The layer that computes second(first(x)); one of the two is linear."""
    n, m = first.n_inputs, second.n_outputs
    factored = isinstance(first, Linear) and isinstance(second, (Linear, Reduced))
    check_limit(
        3 * 8 * m * n * (1 if factored else n),
        f"{m:,} {second.kind if factored else 'quadratic'} neurons with {n:,} inputs",
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
