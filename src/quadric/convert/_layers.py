"""Layers made of other neurons: exactly of quadratic ones, or of the nearest reduced ones."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from quadric.checks import Array
from quadric.core import LAYERS, Layer, Quadratic, Reduced
from quadric.models import layer_to_quadratic
from quadric.network import Network

Model = TypeVar("Model", Network, Layer)


@dataclass(frozen=True)
class Reduction:
    """A model of reduced neurons, and its distance from the original model.

    Parameters
    ----------
    model : Network or Reduced
        The converted model.
    error : array of shape (n_neurons,)
        For each neuron, the Frobenius norm of the change in the matrix [[Q, w/2], [w'/2, b]]. It is
        zero if the neuron was a product of two affine functions.
    relative_error : array of shape (n_neurons,)
        The error divided by the norm of the original matrix.
    """

    model: Any
    error: Array
    relative_error: Array


def to_quadratic(model: Model, layer: int | None = None) -> Model:
    """Convert a model to quadratic neurons that compute exactly the same function.

    A linear neuron gets Q = 0. A reduced neuron, (w'x + b)(u'x + c), gets Q = (wu' + uw')/2, the
    weights cw + bu and the bias bc. The converted model can be trained further.

    Parameters
    ----------
    model : Network or Layer
        The model.
    layer : int, optional
        Index of the layer of a network to convert. By default, all layers are converted.

    Returns
    -------
    Network or Quadratic
        A copy with quadratic neurons.
    """
    if isinstance(model, Layer):
        return layer_to_quadratic(model)
    _check_network(model)
    chosen = range(len(model.layers)) if layer is None else [layer_index(model, layer)]
    return _with_layers(model, {l: layer_to_quadratic(model.layers[l]) for l in chosen})


def to_reduced(model: Network | Layer, layer: int = -1) -> Reduction:
    """Convert one layer of a model to the nearest reduced neurons.

    The matrix [[Q, w/2], [w'/2, b]] of a product of two affine functions has at most one positive
    and one negative eigenvalue. Keeping the largest and the smallest eigenvalue gives the nearest
    such matrix in the Frobenius norm. Linear neurons are converted exactly.

    Parameters
    ----------
    model : Network or Layer
        The model.
    layer : int
        Index of the layer of a network to convert.

    Returns
    -------
    Reduction
        The converted model and its errors.
    """
    if isinstance(model, Layer):
        return _layer_to_reduced(model)
    _check_network(model)
    l = layer_index(model, layer)
    reduction = _layer_to_reduced(model.layers[l])
    return replace(reduction, model=_with_layers(model, {l: reduction.model}))


def _layer_to_reduced(layer: Layer) -> Reduction:
    m, n = layer.W.shape
    if not isinstance(layer, Quadratic):
        linear = Reduced(layer.W, layer.b, np.zeros_like(layer.W), np.ones(m, dtype=layer.dtype))
        exact = layer.copy() if isinstance(layer, Reduced) else linear
        return Reduction(exact, np.zeros(m), np.zeros(m))
    H = np.empty((m, n + 1, n + 1))
    H[:, :n, :n], H[:, n, n] = layer.Q, layer.b
    H[:, :n, n] = H[:, n, :n] = layer.W / 2
    eigenvalues, vectors = np.linalg.eigh(H)
    kept = np.zeros_like(eigenvalues)
    kept[:, -1], kept[:, 0] = eigenvalues[:, -1].clip(min=0), eigenvalues[:, 0].clip(max=0)
    plus = np.sqrt(kept[:, [-1]]) * vectors[:, :, -1]
    minus = np.sqrt(-kept[:, [0]]) * vectors[:, :, 0]
    # plus plus' - minus minus' is the symmetric part of (plus + minus)(plus - minus)'
    first, second = (plus + minus).astype(layer.dtype), (plus - minus).astype(layer.dtype)
    reduced = Reduced(first[:, :n], first[:, n], second[:, :n], second[:, n])
    error = np.linalg.norm(eigenvalues - kept, axis=1)
    size = np.linalg.norm(eigenvalues, axis=1)
    return Reduction(reduced, error, error / np.where(size > 0, size, 1.0))


def layer_index(network: Network, layer: int) -> int:
    """Return a valid index as a non-negative number; negative indices count from the end."""
    count = len(network.layers)
    if not isinstance(layer, (int, np.integer)) or not -count <= layer < count:
        raise ValueError(f"layer must be one of the network's {count} layers. Got {layer!r}.")
    return int(layer) % count


def _check_network(model: Any) -> None:
    if not isinstance(model, Network):
        kinds = ", ".join(kind.__name__ for kind in LAYERS.values())
        raise TypeError(
            f"model must be a Network or a layer ({kinds}). Got {type(model).__name__}; pass the "
            "network_ of an estimator."
        )


def _with_layers(network: Network, new: dict[int, Layer]) -> Network:
    layers = [new[l] if l in new else layer.copy() for l, layer in enumerate(network.layers)]
    return Network(layers, network.activations)
