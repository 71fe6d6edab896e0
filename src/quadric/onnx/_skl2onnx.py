"""Converters for skl2onnx, which can then convert Pipelines and ensembles of the estimators."""

from typing import Any

import numpy as np
from onnx import helper
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.pipeline import Pipeline

from quadric.checks import Array, as_dtype
from quadric.estimators import QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor
from quadric.models import ModelView
from quadric.onnx._graph import Graph
from quadric.onnx._network import add_logits, add_outputs, class_labels
from quadric.utils import require

CLASSIFIER_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [False, True],
    "raw_scores": [False, True],
}


def register() -> None:
    """Register the estimators with skl2onnx; importing `quadric.onnx` does this automatically.

    The classifiers have the options 'zipmap' (True, False or 'columns'), 'output_class_labels',
    'nocl' (class numbers instead of class names) and 'raw_scores' (the decision function instead of
    the probabilities), as documented by skl2onnx.
    """
    require("skl2onnx", extra="onnx", by="quadric.onnx.register")
    from skl2onnx import update_registered_converter

    for estimator, shapes, options in (
        (QuadraticClassifier, _classifier_shapes, CLASSIFIER_OPTIONS),
        (QuadraticLogisticRegression, _classifier_shapes, CLASSIFIER_OPTIONS),
        (QuadraticRegressor, _regressor_shapes, None),
    ):
        update_registered_converter(
            estimator, f"Quadric{estimator.__name__}", shapes, _convert, options=options
        )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the network's nodes to skl2onnx's container, after concatenating the inputs."""
    from skl2onnx.common.data_types import DoubleTensorType

    double = isinstance(operator.outputs[-1].type, DoubleTensorType)
    graph = Graph(as_dtype("float64" if double else "float32"), scope.get_unique_variable_name)
    X = graph.concat([graph.cast(variable.full_name) for variable in operator.inputs])
    view = ModelView.of(operator.raw_operator)
    labels = None if view.classes is None else _labels(scope, view)
    z = add_logits(graph, view.network, X)
    outputs = add_outputs(graph, view, z, labels)
    tensors = {name: tensor for name, (tensor, _, _) in outputs.items()}
    if labels is not None and (scores := _raw_scores(graph, scope, container, view, z)):
        tensors["probabilities"] = scores
    for tensor, variable in zip(tensors.values(), operator.outputs, strict=True):
        graph.add("Identity", tensor, output=variable.full_name)
    container.initializers.extend(graph.initializers)
    for node in graph.nodes:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        name = scope.get_unique_operator_name(node.op_type)
        container.add_node(
            node.op_type, [*node.input], [*node.output], node.domain, name=name, **attributes
        )


def _raw_scores(graph: Graph, scope: Any, container: Any, view: ModelView, z: str) -> str | None:
    """Return the decision function if it is wanted in place of the probabilities.

    skl2onnx sets the option 'raw_scores', but not for a model in a Pipeline or search. For two
    classes it wants the columns -z and z, except in a StackingClassifier, where it needs the
    single column of scikit-learn's decision function.
    """
    model = view.model
    wanted = container.get_options(model, {"raw_scores": False})["raw_scores"]
    whole, stacked = [model, *_containing(scope, model)][-1], False
    for one in _converted(scope):
        if isinstance(one, CalibratedClassifierCV):
            wanted |= any(whole is each.estimator for each in one.calibrated_classifiers_)
        elif isinstance(one, StackingClassifier):
            methods = zip(one.estimators_, one.stack_method_, strict=True)
            stacked |= any(each is whole and m == "decision_function" for each, m in methods)
    if not (wanted or stacked):
        return None
    if len(view.labels) != 2 or view.is_multilabel:
        return z
    if view.network.n_outputs == 2:
        z = graph.add("MatMul", z, graph.constant([[-1.0], [1.0]]))
    return z if stacked else graph.concat([graph.add("Neg", z), z])


def _containing(scope: Any, model: Any) -> list[Any]:
    """Return the Pipelines that end with the model and the searches that chose it, inside out."""
    for one in _converted(scope):
        inner = one[-1] if isinstance(one, Pipeline) else None
        if getattr(one, "best_estimator_", inner) is model:
            return [one, *_containing(scope, one)]
    return []


def _converted(scope: Any) -> list[Any]:
    """Return all models that skl2onnx is converting."""
    return [operator.raw_operator for operator in scope.operators.values()]


def _labels(scope: Any, view: ModelView) -> Array:
    labels, options = class_labels(view), scope.get_options(view.model, {"nocl": False})
    return np.arange(len(labels)) if options["nocl"] else labels


def _classifier_shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    view = ModelView.of(operator.raw_operator)
    rows, labels = operator.inputs[0].get_first_dimension(), _labels(operator.scope_inst, view)
    kind = StringTensorType if labels.dtype.kind == "O" else Int64TensorType
    operator.outputs[0].set_type(kind([rows, len(labels)] if view.is_multilabel else [rows]))
    operator.outputs[1].type.shape = [rows, len(labels)]


def _regressor_shapes(operator: Any) -> None:
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type.shape = [rows, operator.raw_operator.network_.n_outputs]
