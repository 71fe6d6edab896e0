"""From one kind of neuron to another: to quadratic exactly, to reduced as nearly as can be."""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._layers import LAYERS, Layer, Linear, Quadratic, Reduced
from quadric.network import Network

Model = TypeVar("Model", Network, Layer)


@dataclass(frozen=True)
class Reduction:
    """A model of reduced neurons, and how far it is from the one that it was made from.

    Attributes
    ----------
    model : Network or Reduced
    error : array
        For each neuron of the converted layer: the Frobenius norm of what is lost of its matrix
        [[Q, w/2], [w'/2, b]]. Zero where the neuron was a product of two affine functions.
    relative_error : array
        The same, as a share of the matrix's norm.
    """

    model: Any
    error: Array
    relative_error: Array


def to_quadratic(model: Model, layer: int | None = None) -> Model:
    """The same function with quadratic neurons, exactly.

    A linear neuron takes Q = 0; a reduced one, (w'x + b)(u'x + c), takes Q = (wu' + uw')/2,
    w = cw + bu and b = bc. The copy can be trained on from there.

    Parameters
    ----------
    model : Network or Layer
    layer : int, optional
        Which layer of a network to convert; the default is all of them.
    """
    if isinstance(model, Layer):
        return layer_to_quadratic(model)
    _check_network(model)
    return _with_layers(
        model, {l: layer_to_quadratic(model.layers[l]) for l in _chosen(model, layer)}
    )


def to_reduced(model: Network | Layer, layer: int = -1) -> Reduction:
    """The nearest model with reduced neurons in one layer, and the error that is made.

    Of the matrix [[Q, w/2], [w'/2, b]] of a neuron a product of two affine functions can have one
    positive and one negative eigenvalue; the largest and the lowest are kept, which is the
    nearest one in the Frobenius norm. Linear neurons convert exactly.

    Parameters
    ----------
    model : Network or Layer
    layer : int
        Which layer of a network to convert.
    """
    if isinstance(model, Layer):
        return _layer_to_reduced(model)
    _check_network(model)
    if layer is None:
        raise ValueError(f"layer must be one of the network's {len(model.layers)} layers.")
    (l,) = _chosen(model, layer)
    reduction = _layer_to_reduced(model.layers[l])
    network = _with_layers(model, {l: reduction.model})
    return Reduction(network, reduction.error, reduction.relative_error)


def layer_to_quadratic(layer: Layer) -> Quadratic:
    """The same neurons as quadratic ones."""
    if isinstance(layer, Quadratic):
        return layer.copy()
    m, n = layer.W.shape
    if isinstance(layer, Linear):
        return Quadratic(layer.W, layer.b, np.zeros((m, n, n), dtype=layer.dtype))
    assert isinstance(layer, Reduced)
    W, b, U, c = layer.W, layer.b, layer.U, layer.c
    return Quadratic(c[:, None] * W + b[:, None] * U, b * c, W[:, :, None] * U[:, None, :])


def _layer_to_reduced(layer: Layer) -> Reduction:
    m, n = layer.W.shape
    nothing = np.zeros(m)
    if isinstance(layer, Reduced):
        return Reduction(layer.copy(), nothing, nothing.copy())
    if isinstance(layer, Linear):
        one = np.ones(m, dtype=layer.dtype)
        reduced = Reduced(layer.W, layer.b, np.zeros_like(layer.W), one)
        return Reduction(reduced, nothing, nothing.copy())
    assert isinstance(layer, Quadratic)
    factors = np.empty((m, 2, n + 1))
    error, size = np.empty(m), np.empty(m)
    for k in range(m):
        H = np.empty((n + 1, n + 1))
        H[:n, :n], H[n, n] = layer.Q[k], layer.b[k]
        H[:n, n] = H[n, :n] = layer.W[k] / 2
        eigenvalues, vectors = np.linalg.eigh(H)
        plus = np.sqrt(max(eigenvalues[-1], 0.0)) * vectors[:, -1]
        minus = np.sqrt(max(-eigenvalues[0], 0.0)) * vectors[:, 0]
        # l uu' - k vv' is the symmetric part of (plus + minus)(plus - minus)'
        factors[k] = plus + minus, plus - minus
        lost = eigenvalues.copy()
        lost[-1], lost[0] = min(lost[-1], 0.0), max(lost[0], 0.0)
        error[k], size[k] = np.linalg.norm(lost), np.linalg.norm(eigenvalues)
    first, second = factors.astype(layer.dtype).transpose(1, 0, 2)
    reduced = Reduced(first[:, :n], first[:, n], second[:, :n], second[:, n])
    return Reduction(reduced, error, error / np.where(size > 0, size, 1.0))


def _chosen(network: Network, layer: int | None) -> list[int]:
    count = len(network.layers)
    if layer is None:
        return list(range(count))
    if not isinstance(layer, (int, np.integer)) or not -count <= layer < count:
        raise ValueError(f"layer must be one of the network's {count} layers. Got {layer!r}.")
    return [int(layer) % count]


def _check_network(model: Any) -> None:
    if not isinstance(model, Network):
        kinds = ", ".join(kind.__name__ for kind in LAYERS.values())
        raise TypeError(
            f"model must be a Network or a layer ({kinds}). Got {type(model).__name__}; of an "
            "estimator take its network_."
        )


def _with_layers(network: Network, new: dict[int, Layer]) -> Network:
    layers = [new[l] if l in new else layer.copy() for l, layer in enumerate(network.layers)]
    return Network(layers, network.activations)
