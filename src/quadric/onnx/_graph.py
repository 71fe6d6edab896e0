"""A builder for ONNX graphs, and the nodes of a network: layers, activations and outputs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from numbers import Real
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from quadric.checks import Array
from quadric.models import ModelView
from quadric.network import Network

ML_DOMAIN = "ai.onnx.ml"  # the domain of LabelEncoder; all other nodes are in the default domain
# for each name: tensor, dtype and shape of one row
Outputs = dict[str, tuple[str, Any, tuple[int, ...]]]


def element_type(dtype: Any) -> int:
    """Return ONNX's code for a NumPy dtype, which is STRING for any type of text."""
    text = np.dtype(dtype).kind in "OUT"
    return int(TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def unique_names(reserved: Iterable[str]) -> Callable[[str], str]:
    """Return a function that appends a number to names that are reserved or already used."""
    used = set(reserved)

    def unique_name(wish: str) -> str:
        wishes = chain([wish], (f"{wish}_{i}" for i in count(2)))
        name = next(name for name in wishes if name not in used)
        used.add(name)
        return name

    return unique_name


@dataclass(frozen=True)
class Graph:
    """Nodes and constants of a graph with a single floating-point type.

    Tensors are referred to by their names.

    Parameters
    ----------
    dtype : float32 or float64 as a NumPy dtype
        Type of every real number in the graph.
    unique_name : callable
        Returns an unused name that resembles its argument.
    nodes, initializers : list
        Filled by `add` and `constant`.
    """

    dtype: np.dtype[Any]
    unique_name: Callable[[str], str]
    nodes: list[Any] = field(default_factory=list)
    initializers: list[Any] = field(default_factory=list)

    def add(
        self, op: str, *inputs: str, domain: str = "", output: str | None = None, **attributes: Any
    ) -> str:
        """Add a node with one output and return the output's name."""
        name = self.unique_name(op) if output is None else output
        self.nodes.append(
            helper.make_node(op, list(inputs), [name], name=name, domain=domain, **attributes)
        )
        return name

    def constant(self, values: Any, name: str = "constant", *, dtype: Any = None) -> str:
        """Add a constant, by default with the dtype that `as_tensor` chooses."""
        name = self.unique_name(name)
        tensor = self.as_tensor(values) if dtype is None else np.asarray(values, dtype=dtype)
        self.initializers.append(numpy_helper.from_array(tensor, name))
        return name

    def as_tensor(self, values: Any) -> Array:
        """Convert reals to the graph's dtype, whole numbers to int64, and text to objects."""
        array = np.asarray(values)
        dtypes: dict[str, Any] = {"f": self.dtype, "i": np.int64, "u": np.int64, "b": np.int64}
        return np.asarray(array, dtype=dtypes.get(array.dtype.kind, object), order="C")

    def cast(self, tensor: str, dtype: Any = None) -> str:
        """Convert a tensor, by default to the graph's dtype."""
        return self.add("Cast", tensor, to=element_type(self.dtype if dtype is None else dtype))

    def concat(self, tensors: Sequence[str]) -> str:
        """Concatenate tensors along their columns."""
        return tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=1)


# --------------------------------------------------------------------------- networks


def add_logits(graph: Graph, network: Network, X: str) -> str:
    """Add the layers and return the tensor of the last layer's z."""
    network = network.astype(graph.dtype)
    z = X
    for l, layer in enumerate(network.layers):
        a = z if l == 0 else _activation(graph, network.activations[l - 1], z)
        z = LAYER_NODES[layer.kind](graph, layer, a, f"layers.{l}.")
    return z


def add_outputs(graph: Graph, view: ModelView, z: str, labels: Array | None = None) -> Outputs:
    """Compute a fitted model's outputs from its logits z; `labels` replaces the classes."""
    if view.classes is None:
        a, width = _activation(graph, view.network.activations[-1], z), (view.network.n_outputs,)
        if view.estimator is not view.network:
            return {"variable": (a, graph.dtype, width)}
        return {"outputs": (a, graph.dtype, width), "logits": (z, graph.dtype, width)}
    labels = class_labels(view) if labels is None else labels
    width = (len(labels),)
    label, probabilities = _label(graph, view, labels, z), _probabilities(graph, view, z)
    return {
        "label": (label, labels.dtype, width if view.is_multilabel else ()),
        "probabilities": (probabilities, graph.dtype, width),
    }


def class_labels(view: ModelView) -> Array:
    """Return the classes as strings or int64, the two label types of ONNX."""
    classes = view.labels
    if all(isinstance(value, str) for value in classes):
        return classes.astype(object)
    if not all(isinstance(c, (Real, np.bool_)) and c % 1 == 0 for c in classes):
        raise TypeError(
            f"classes must be all strings or all integers. Got {classes!r}; convert them before "
            "fitting."
        )
    return classes.astype(np.int64)


def _linear(graph: Graph, layer: Any, X: str, prefix: str, names: str = "Wb") -> str:
    W, b = (graph.constant(getattr(layer, name), prefix + name) for name in names)
    return graph.add("Gemm", X, W, b, transB=1)


def _quadratic(graph: Graph, layer: Any, X: str, prefix: str) -> str:
    """z = (W + V) a + b with V = a'Q; W + V of all neurons is one product of shape (batch, m n)."""
    m, n = layer.W.shape
    Q = graph.constant(layer.Q.reshape(m * n, n), prefix + "Q")
    W = graph.constant(layer.W.reshape(m * n), prefix + "W")
    b = graph.constant(layer.b, prefix + "b")
    W_plus_V = graph.add("Gemm", X, Q, W, transB=1)
    W_plus_V = graph.add("Reshape", W_plus_V, graph.constant([0, m, n]))  # 0 keeps the batch size
    a = graph.add("Unsqueeze", X, graph.constant([2]))
    z = graph.add("Squeeze", graph.add("MatMul", W_plus_V, a), graph.constant([2]))
    return graph.add("Add", z, b)


def _reduced(graph: Graph, layer: Any, X: str, prefix: str) -> str:
    v1, v2 = (_linear(graph, layer, X, prefix, names) for names in ("Wb", "Uc"))
    return graph.add("Mul", v1, v2)


LAYER_NODES: dict[str, Callable[[Graph, Any, str, str], str]] = {
    "linear": _linear,
    "quadratic": _quadratic,
    "reduced": _reduced,
}
ACTIVATION_NODES = {
    "logistic": "Sigmoid",
    "tanh": "Tanh",
    "relu": "Relu",
    "softmax": "Softmax",
    "exponential": "Exp",
}


def _activation(graph: Graph, activation: str, z: str) -> str:
    return z if activation == "identity" else graph.add(ACTIVATION_NODES[activation], z)


def _label(graph: Graph, view: ModelView, labels: Array, z: str) -> str:
    """Compute `predict`: the sign of a single logit, or the first of the largest logits."""
    if view.is_multilabel:
        return _is_above(graph, z, 0.0)
    if view.network.n_outputs > 1:
        index = graph.add("ArgMax", z, axis=1, keepdims=0)
    else:  # a model with one class never predicts a second class
        index = _is_above(graph, z, 0.0 if len(labels) > 1 else np.inf)
        index = graph.add("Squeeze", index, graph.constant([1]))
    return graph.add("Gather", graph.constant(labels, "classes"), index)


def _is_above(graph: Graph, z: str, bound: float) -> str:
    return graph.cast(graph.add("Greater", z, graph.constant(bound)), np.int64)


def _probabilities(graph: Graph, view: ModelView, z: str) -> str:
    """Compute `predict_proba` without taking exponentials of large numbers."""
    if view.is_multilabel:
        return graph.add("Sigmoid", z)
    if len(view.labels) == 1:
        return graph.cast(graph.add("Not", graph.add("Greater", z, graph.constant(np.inf))))
    if view.network.n_outputs == 1:
        # The softmax of -z/2 and z/2 is (1 - p, p), and is accurate even if p or 1 - p is tiny.
        # Clipping keeps an infinite z, which float32 reaches before float64, from producing NaN.
        halves = graph.add("Mul", z, graph.constant([[-0.5, 0.5]]))
        bound = float(np.finfo(graph.dtype).max) / 4
        z = graph.add("Clip", halves, graph.constant(-bound), graph.constant(bound))
    elif view.network.activations[-1] == "logistic":
        # one sigmoid per class; the softmax of their logarithms normalizes them. The logarithm of a
        # sigmoid is min(z, 0) - log(1 + exp(-|z|)).
        exponential = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
        logarithm = graph.add("Log", graph.add("Add", exponential, graph.constant(1.0)))
        z = graph.add("Sub", graph.add("Min", z, graph.constant(0.0)), logarithm)
    return graph.add("Softmax", z)
