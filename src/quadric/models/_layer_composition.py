"""Composition of layers: successive layers of degree two at most as one quadratic layer.

All layers but one are linear, and no activation comes between them. `fold_layers` composes all such
layers of a network, and `compose` two of them.
"""

from functools import reduce

import numpy as np

from quadric.checks import FLOAT64
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.errors import expect
from quadric.network import Network
from quadric.utils import check_limit


def fold_layers(network: Network) -> Network:
    """Fold every stretch of layers whose composition has degree two at most, in float64."""
    found = stretches(network.astype(FLOAT64))
    wholes = [reduce(compose, layers) for layers, _ in found]
    folded = [layer_to_quadratic(one) if isinstance(one, Reduced) else one for one in wholes]
    return Network(folded, [activation for _, activation in found])


def stretches(network: Network) -> list[tuple[list[Layer], str]]:
    """Successive layers that are together of degree two at most, and the activation after them."""
    found: list[tuple[list[Layer], str]] = []
    for layer, activation in zip(network.layers, network.activations, strict=True):
        before, last = found[-1] if found else ([], "")
        curved = [one for one in (*before, layer) if not isinstance(one, Linear)]
        if last == "identity" and len(curved) < 2:
            found[-1] = [*before, layer], activation
        else:
            found.append(([layer], activation))
    return found


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
    if isinstance(moved, Quadratic):
        return Quadratic(moved.W @ A, moved.b, A.T @ moved.Q @ A)
    if isinstance(moved, Reduced):
        return Reduced(moved.W @ A, moved.b, moved.U @ A, moved.c)
    return Linear(moved.W @ A, moved.b)


def _before_linear(first: Layer, second: Linear) -> Quadratic:
    P, b = second.W, second.b
    if isinstance(first, Quadratic):
        return Quadratic(P @ first.W, P @ first.b + b, packed=first.packed @ P.T)
    assert isinstance(first, Reduced)
    # the neurons' own matrices are never built: there may be hundreds of them
    Q = np.stack([(first.W.T * p) @ first.U for p in P])
    W = P @ (first.c[:, None] * first.W + first.b[:, None] * first.U)
    return Quadratic(W, P @ (first.b * first.c) + b, Q)


def layer_to_quadratic(layer: Layer) -> Quadratic:
    """A copy with quadratic neurons."""
    if isinstance(layer, Quadratic):
        return layer.copy()
    if isinstance(layer, Reduced):
        W, b, U, c = layer.W, layer.b, layer.U, layer.c
        with np.errstate(all="ignore"):
            parts = c[:, None] * W + b[:, None] * U, b * c, W[:, :, None] * U[:, None, :]
        expect(
            all(np.isfinite(part).all() for part in parts),
            ValueError(
                "the quadratic layer is larger than floating-point numbers can represent. Products "
                "of the weights of the reduced layer overflow."
            ),
        )
        return Quadratic(*parts)
    m, n = layer.W.shape
    return Quadratic(layer.W, layer.b, np.zeros((m, n, n), dtype=layer.dtype))


def check_matrices(m: int, n: int) -> None:
    """Check the limit before m matrices of size n x n are built and decomposed."""
    check_limit(
        (4 * m + 6) * 8 * n * n,
        f"{m:,} quadratic neurons with {n:,} inputs as matrices",
        "Use a model with fewer inputs.",
    )
