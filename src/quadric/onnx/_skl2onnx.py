"""Converters that teach skl2onnx the estimators, so that any Pipeline around them converts."""

from typing import Any

import numpy as np
from onnx import helper

from quadric._utils.arrays import Array
from quadric._utils.extras import require
from quadric.estimators import (
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)
from quadric.onnx._graph import Graph
from quadric.onnx._network import add_logits, add_outputs, class_labels

CLASSIFIER_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [False, True],
}


def register() -> None:
    """Register the estimators with skl2onnx; importing `quadric.onnx` does this.

    The classifiers have the options 'zipmap' (True, False or 'columns'), 'output_class_labels' and
    'nocl' (class numbers instead of class names), as documented by skl2onnx.
    """
    require("skl2onnx", extra="onnx", by="quadric.onnx.register")
    from skl2onnx import update_registered_converter

    for estimator, shapes, options in (
        (QuadraticClassifier, _classifier_shapes, CLASSIFIER_OPTIONS),
        (QuadraticLogisticRegression, _classifier_shapes, CLASSIFIER_OPTIONS),
        (QuadraticRegressor, _regressor_shapes, None),
    ):
        name = f"Quadric{estimator.__name__}"
        update_registered_converter(estimator, name, shapes, _convert, options=options)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the network's nodes to skl2onnx's container, after concatenating the inputs."""
    from skl2onnx.common.data_types import DoubleTensorType

    double = isinstance(operator.outputs[-1].type, DoubleTensorType)
    graph = Graph(np.float64 if double else np.float32, scope.get_unique_variable_name)
    X = graph.concat([graph.cast(variable.full_name) for variable in operator.inputs])
    model = operator.raw_operator
    labels = _labels(scope, model) if hasattr(model, "classes_") else None
    outputs = add_outputs(graph, model, add_logits(graph, model.network_, X), labels)
    for (tensor, _, _), variable in zip(outputs.values(), operator.outputs, strict=True):
        graph.add("Identity", tensor, output=variable.full_name)
    container.initializers.extend(graph.initializers)
    for node in graph.nodes:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        name = scope.get_unique_operator_name(node.op_type)
        container.add_node(
            node.op_type, [*node.input], [*node.output], node.domain, name=name, **attributes
        )


def _labels(scope: Any, model: Any) -> Array:
    labels = class_labels(model)
    return np.arange(len(labels)) if scope.get_options(model, {"nocl": False})["nocl"] else labels


def _classifier_shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    model = operator.raw_operator
    rows, labels = operator.inputs[0].get_first_dimension(), _labels(operator.scope_inst, model)
    kind = StringTensorType if labels.dtype.kind == "O" else Int64TensorType
    operator.outputs[0].set_type(kind([rows, len(labels)] if model._is_multilabel else [rows]))
    operator.outputs[1].type.shape = [rows, len(labels)]


def _regressor_shapes(operator: Any) -> None:
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type.shape = [rows, operator.raw_operator.network_.n_outputs]
