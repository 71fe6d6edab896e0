"""The estimators made known to skl2onnx, so that any Pipeline around them converts."""

from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.estimators import (
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)
from quadric.onnx._graph import Graph, element_type
from quadric.onnx._layers import logits_node
from quadric.onnx._network import label_values, output_nodes

CLASSIFIERS = (QuadraticClassifier, QuadraticLogisticRegression)
OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [False, True],
}


def register() -> None:
    """Make `skl2onnx.to_onnx` know the estimators; importing `quadric.onnx` does this.

    Options of the classifiers: 'zipmap' (True, False, 'columns'), 'output_class_labels', and
    'nocl' (the classes' numbers in the place of their names), as skl2onnx documents them.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        raise ImportError(
            'converting with skl2onnx needs that package: pip install "quadric[onnx]"'
        ) from None
    for estimator in CLASSIFIERS:
        update_registered_converter(
            estimator, f"Quadric{estimator.__name__}", _classifier_types, _convert,
            options=OPTIONS,
        )  # fmt: skip
    update_registered_converter(
        QuadraticRegressor, "QuadricQuadraticRegressor", _regressor_types, _convert
    )


class _Container(Graph):
    """A Graph whose nodes go to skl2onnx."""

    def __init__(self, scope: Any, container: Any, dtype: Any) -> None:
        super().__init__(dtype)
        self._scope, self._container = scope, container

    def add(
        self, op: str, *inputs: str, domain: str = "", output: str | None = None, **attributes: Any
    ) -> str:
        name = self._new_name(op) if output is None else output
        self._container.add_node(
            op, list(inputs), [name], op_domain=domain,
            name=self._scope.get_unique_operator_name(op), **attributes,
        )  # fmt: skip
        return name

    def constant(self, values: Any, name: str = "constant", *, kind: Any = None) -> str:
        name = self._new_name(name)
        tensor = self.as_tensor(values) if kind is None else np.asarray(values, dtype=kind)
        content: Any = tensor.ravel()
        if tensor.dtype.kind == "O":
            content = [text.encode() for text in content]
        kind = element_type(tensor.dtype)
        self._container.add_initializer(name, kind, list(tensor.shape), content)
        return name

    def _new_name(self, wish: str) -> str:
        return str(self._scope.get_unique_variable_name(wish))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Concatenates the inputs, which may be of several types, and adds the network."""
    from skl2onnx.common.data_types import DoubleTensorType

    double = isinstance(operator.outputs[-1].type, DoubleTensorType)
    graph = _Container(scope, container, np.float64 if double else np.float32)
    tensors = [graph.cast(variable.full_name) for variable in operator.inputs]
    X = tensors[0] if len(tensors) == 1 else graph.add("Concat", *tensors, axis=1)
    model = operator.raw_operator
    labels = _labels(scope, model) if hasattr(model, "classes_") else None
    results = output_nodes(graph, model, logits_node(graph, model.network_, X), labels)
    for result, variable in zip(results, operator.outputs, strict=True):
        graph.add("Identity", result.tensor, output=variable.full_name)


def _labels(scope: Any, model: Any) -> Array:
    labels = label_values(model)
    return np.arange(len(labels)) if scope.get_options(model, {"nocl": False})["nocl"] else labels


def _classifier_types(operator: Any) -> None:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    model = operator.raw_operator
    rows, labels = operator.inputs[0].get_first_dimension(), _labels(operator.scope_inst, model)
    kind = StringTensorType if labels.dtype.kind == "O" else Int64TensorType
    shape = [rows, len(labels)] if model._is_multilabel else [rows]
    operator.outputs[0].set_type(kind(shape))
    operator.outputs[1].type.shape = [rows, len(labels)]


def _regressor_types(operator: Any) -> None:
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type.shape = [rows, operator.raw_operator.network_.n_outputs]
