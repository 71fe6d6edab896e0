"""From logits to what a model answers: labels and probabilities, values, activations."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.network import Network
from quadric.onnx._graph import Graph
from quadric.onnx._layers import activation_node


@dataclass(frozen=True)
class Output:
    """A named result: its tensor, dtype and shape without the batch."""

    name: str
    tensor: str
    dtype: Any
    shape: tuple[int, ...]


def output_nodes(graph: Graph, model: Any, z: str, labels: Array | None = None) -> list[Output]:
    """The results of a fitted model, from the tensor z of its network's logits.

    `labels` may stand in the place of the classes.
    """
    if isinstance(model, Network):
        width = (model.n_outputs,)
        a = activation_node(graph, model.activations[-1], z)
        return [Output("outputs", a, graph.dtype, width), Output("logits", z, graph.dtype, width)]
    if not hasattr(model, "classes_"):
        return [Output("variable", z, graph.dtype, (model.network_.n_outputs,))]
    labels = label_values(model) if labels is None else labels
    several = (len(labels),) if model._is_multilabel else ()
    return [
        Output("label", _label(graph, model, labels, z), labels.dtype, several),
        Output("probabilities", _probabilities(graph, model, z), graph.dtype, (len(labels),)),
    ]


def label_values(model: Any) -> Array:
    """The classes as ONNX can hold them: text, or whole numbers (False and True are 0 and 1)."""
    classes = np.asarray(model.classes_)
    if all(isinstance(value, str) for value in classes):
        return classes.astype(object)
    try:
        whole = classes.astype(np.int64)
    except (TypeError, ValueError):
        whole = None
    if whole is None or not (whole == classes).all():
        raise TypeError(f"classes must be all text or all whole numbers. Got {classes!r}.")
    return whole


def _label(graph: Graph, model: Any, labels: Array, z: str) -> str:
    """As `predict`: the side of zero, or the first of the largest logits."""
    one = model.network_.n_outputs == 1
    if model._is_multilabel or one:
        # of a single class no logit is large enough for a second
        bound = np.inf if len(labels) == 1 and not model._is_multilabel else 0.0
        index = graph.cast(graph.add("Greater", z, graph.constant(bound)), np.int64)
        if model._is_multilabel:
            return index
        index = graph.add("Squeeze", index, graph.constant([1]))
    else:
        index = graph.add("ArgMax", z, axis=1, keepdims=0)
    return graph.add("Gather", graph.constant(labels, "classes"), index)


def _probabilities(graph: Graph, model: Any, z: str) -> str:
    """As `predict_proba`, and like it without exp of a large number."""
    if model._is_multilabel:
        return graph.add("Sigmoid", z)
    if len(model.classes_) == 1:
        less = graph.add("Greater", z, graph.constant(np.inf))
        return graph.cast(graph.add("Not", less))
    if model.network_.n_outputs == 1:
        # softmax of -z/2 and z/2: two sigmoids, to full accuracy where one of them is tiny.
        # An infinite z, which float32 meets before float64 does, is as sure as a large one.
        halves = graph.add("Mul", z, graph.constant([[-0.5, 0.5]]))
        bound = float(np.finfo(graph.dtype).max) / 4
        z = graph.add("Clip", halves, graph.constant(-bound), graph.constant(bound))
    elif model.network_.activations[-1] == "logistic":
        z = _log_sigmoid(graph, z)  # one sigmoid for each class, normalised by the softmax
    return graph.add("Softmax", z, axis=1)


def _log_sigmoid(graph: Graph, z: str) -> str:
    """min(z, 0) - log(1 + exp(-|z|))."""
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
    tail = graph.add("Log", graph.add("Add", small, graph.constant(1.0)))
    return graph.add("Sub", graph.add("Min", z, graph.constant(0.0)), tail)
