"""Layers and activations as nodes: a handful for each layer, whatever its size."""

from collections.abc import Callable
from typing import Any

from quadric.network import Network
from quadric.onnx._graph import Graph


def logits_node(graph: Graph, network: Network, X: str) -> str:
    """The tensor of the last layer's z, for the tensor X of shape (batch, n)."""
    network = network.astype(graph.dtype)
    z = X
    for l, layer in enumerate(network.layers):
        a = z if l == 0 else activation_node(graph, network.activations[l - 1], z)
        z = LAYER_NODES[layer.kind](graph, layer, a, f"layers.{l}.")
    return z


def activation_node(graph: Graph, activation: str, z: str) -> str:
    """The tensor g(z)."""
    op, attributes = ACTIVATION_NODES[activation]
    return z if op is None else graph.add(op, z, **attributes)


def _linear(graph: Graph, layer: Any, X: str, prefix: str) -> str:
    W, b = (graph.constant(getattr(layer, name), prefix + name) for name in "Wb")
    return graph.add("Gemm", X, W, b, transB=1)


def _quadratic(graph: Graph, layer: Any, X: str, prefix: str) -> str:
    """z = (W + V) a + b with V = a'Q: one product gives W + V for all neurons.

    It has shape (batch, m n), and is what takes memory.
    """
    m, n = layer.W.shape
    Q = graph.constant(layer.Q.reshape(m * n, n), prefix + "Q")
    W = graph.constant(layer.W.reshape(m * n), prefix + "W")
    b = graph.constant(layer.b, prefix + "b")
    both = graph.add("Gemm", X, Q, W, transB=1)
    both = graph.add("Reshape", both, graph.constant([0, m, n]))  # 0: as many rows as there are
    column = graph.add("Unsqueeze", X, graph.constant([2]))
    z = graph.add("MatMul", both, column)
    z = graph.add("Squeeze", z, graph.constant([2]))
    return graph.add("Add", z, b)


def _reduced(graph: Graph, layer: Any, X: str, prefix: str) -> str:
    W, b, U, c = (graph.constant(getattr(layer, name), prefix + name) for name in "WbUc")
    v1 = graph.add("Gemm", X, W, b, transB=1)
    v2 = graph.add("Gemm", X, U, c, transB=1)
    return graph.add("Mul", v1, v2)


LAYER_NODES: dict[str, Callable[[Graph, Any, str, str], str]] = {
    "linear": _linear,
    "quadratic": _quadratic,
    "reduced": _reduced,
}

ACTIVATION_NODES: dict[str, tuple[str | None, dict[str, Any]]] = {
    "identity": (None, {}),
    "logistic": ("Sigmoid", {}),
    "tanh": ("Tanh", {}),
    "relu": ("Relu", {}),
    "softmax": ("Softmax", {"axis": 1}),
}
