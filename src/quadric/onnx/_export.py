"""Export models as ONNX graphs: `export`, and converters for skl2onnx.

`export` writes one graph with the preprocessing, the network and the outputs. With the converters,
skl2onnx can convert Pipelines and ensembles that contain the estimators.
"""

import json
import os
from collections.abc import Sequence
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.pipeline import Pipeline

import quadric
from quadric.checks import Array, as_dtype
from quadric.errors import expect
from quadric.estimators import (
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    SparseQuadraticClassifier,
    SparseQuadraticRegressor,
)
from quadric.models import ModelView, UnknownStepError, translated
from quadric.onnx._nodes import (
    ML_DOMAIN,
    Graph,
    Outputs,
    Signature,
    add_logits,
    add_outputs,
    as_matrix,
    declare_inputs,
    element_type,
    translate,
    unique_names,
)
from quadric.utils import require, write_whole

OLDEST_OPSET = 13  # the first version that has all the operators used here
DEFAULT_OPSET = 17  # supported by most runtimes
ML_OPSET = 3
LARGEST = 2**31 - 1  # maximum size of a protobuf message, in bytes
OUTPUT_NAMES = ("label", "probabilities", "variable", "outputs", "logits")
CLASSIFIER_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [False, True],
    "raw_scores": [False, True],
}


def export(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float32",
    opset: int = DEFAULT_OPSET,
) -> Any:
    """Convert a model to an ONNX graph.

    The graph has a few nodes per layer, regardless of the layer's size, and accepts any batch size.

    Parameters
    ----------
    model : Network, fitted quadric estimator, or Pipeline that ends with one
        The model to convert.
    path : str or path, optional
        File to write the graph to. An existing file is replaced only after the new one is
        complete.
    dtype : {'float32', 'float64'}, default='float32'
        Type of the inputs, parameters and outputs.
    opset : int, default=17
        Version of the ONNX operators, at least 13.

    Returns
    -------
    onnx.ModelProto
        The graph. Its input is ``X`` of shape (batch, n). If an encoder takes text or whole
        numbers, or a ColumnTransformer drops named columns, each column that is used becomes a
        separate input of shape (batch, 1) with the column's name. The outputs are ``label`` and
        ``probabilities`` for a classifier, ``variable`` of shape (batch, outputs) for a
        regressor, and ``outputs`` and ``logits`` for a Network.

    Examples
    --------
    >>> from quadric import Network
    >>> net = Network.create(784, [("linear", 30, "logistic"), ("quadratic", 10, "logistic")])
    >>> len(export(net).graph.node)
    11
    """
    newest = onnx.defs.onnx_opset_version()
    expect(
        type(opset) is int and OLDEST_OPSET <= opset <= newest,
        ValueError(
            f"opset must be an integer from {OLDEST_OPSET} to {newest}. Got {opset!r} instead."
        ),
    )
    view = ModelView.of(model)
    try:
        proto = _build(view, dtype, opset)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"ONNX stores text as UTF-8, which cannot encode {error.object!r:.60}. Rename this "
            "class, category or column before fitting."
        ) from None
    expect(
        proto.ByteSize() <= LARGEST,
        ValueError(
            f"the graph would take {proto.ByteSize() / 2**30:.1f} GiB, but an ONNX file holds at "
            "most 2 GiB. Use fewer neurons, or reduced layers."
        ),
    )
    if path is not None:
        write_whole(Path(path), proto.SerializeToString())
    return proto


def _build(view: ModelView, dtype: str, opset: int) -> Any:
    """Return the ONNX model; features without names are called x0, x1, ..."""
    given = view.input_names
    names = [f"x{i}" for i in range(view.n_inputs)] if given is None else list(map(str, given))
    graph = Graph(as_dtype(dtype), unique_names({*OUTPUT_NAMES, *names, "X"}))
    try:
        named_operations = view.operations
    except UnknownStepError as error:
        raise TypeError(
            f"step {error.path!r} cannot be exported: {error.reason}. To convert a Pipeline that "
            "contains such steps, use skl2onnx.to_onnx."
        ) from None
    every = [operation for inside in named_operations.values() for operation in inside]
    inputs, features = declare_inputs(graph, every, names, named=given is not None)
    refused = [name for name in inputs if not name or name in OUTPUT_NAMES]
    if refused:
        raise ValueError(
            f"column {refused[0]!r} cannot be an input: the name of an input must not be empty or "
            f"one of {', '.join(OUTPUT_NAMES)}. Rename the column before fitting."
        )
    features = translated(named_operations, features, partial(translate, graph))
    logits = add_logits(graph, view.network, as_matrix(graph, features).tensor)
    labels = None if view.classes is None else class_labels(view)
    outputs = add_outputs(graph, view, logits, labels)
    for name, (tensor, _, _) in outputs.items():
        graph.add("Identity", tensor, output=name)
    proto = _assemble(graph, inputs, outputs, opset)
    properties = {
        "quadric_version": quadric.__version__,
        "model": view.name,
        "feature_names": json.dumps(names),
    }
    if labels is not None:
        properties["classes"] = json.dumps(labels.tolist())
    helper.set_model_props(proto, properties)
    return proto


def class_labels(view: ModelView) -> Array:
    """Return the classes as strings or int64, the two label types of ONNX."""
    classes = view.labels
    if all(isinstance(value, str) for value in classes):
        return classes.astype(object)
    expect(
        all(isinstance(c, (Real, np.bool_)) and c % 1 == 0 for c in classes),
        TypeError(
            f"classes must be all strings or all integers. Got {classes!r}; convert them before "
            "fitting."
        ),
    )
    return classes.astype(np.int64)


def _assemble(graph: Graph, inputs: Signature, outputs: Outputs, opset: int) -> Any:
    opsets = [helper.make_opsetid("", opset)]
    if any(node.domain == ML_DOMAIN for node in graph.nodes):
        opsets.append(helper.make_opsetid(ML_DOMAIN, ML_OPSET))
    whole = helper.make_graph(
        graph.nodes,
        "quadric",
        [_value_info(name, *value) for name, value in inputs.items()],
        [_value_info(name, *value) for name, (_, *value) in outputs.items()],
        graph.initializers,
    )
    return helper.make_model(
        whole,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="quadric",
        producer_version=quadric.__version__,
    )


def _value_info(name: str, dtype: Any, shape: Sequence[int]) -> Any:
    return helper.make_tensor_value_info(name, element_type(dtype), ["batch", *shape])


# --------------------------------------------------------------------------- skl2onnx


def register() -> None:
    """Register the estimators with skl2onnx; importing `quadric.onnx` does this automatically.

    The classifiers have the options 'zipmap' (True, False or 'columns'), 'output_class_labels',
    'nocl' (class numbers instead of class names) and 'raw_scores' (the decision function instead of
    the probabilities), as documented by skl2onnx.
    """
    require("skl2onnx", extra="onnx", by="quadric.onnx.register")
    from skl2onnx import update_registered_converter

    for estimator, options in (
        (QuadraticClassifier, CLASSIFIER_OPTIONS),
        (QuadraticLogisticRegression, CLASSIFIER_OPTIONS),
        (SparseQuadraticClassifier, CLASSIFIER_OPTIONS),
        (QuadraticRegressor, None),
        (SparseQuadraticRegressor, None),
    ):
        update_registered_converter(
            estimator, f"Quadric{estimator.__name__}", _set_shapes, _convert, options=options
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
    tensors = {name: made[0] for name, made in add_outputs(graph, view, z, labels).items()}
    if labels is not None and (scores := _raw_scores(graph, scope, container, view, z)):
        tensors["probabilities"] = scores
    for tensor, variable in zip(tensors.values(), operator.outputs, strict=True):
        graph.add("Identity", tensor, output=variable.full_name)
    container.initializers.extend(graph.initializers)
    for node in graph.nodes:
        container.add_node(
            node.op_type,
            [*node.input],
            [*node.output],
            node.domain,
            name=scope.get_unique_operator_name(node.op_type),
            **{one.name: helper.get_attribute_value(one) for one in node.attribute},
        )


def _raw_scores(graph: Graph, scope: Any, container: Any, view: ModelView, z: str) -> str | None:
    """Return the decision function if it is wanted in place of the probabilities.

    skl2onnx sets the option 'raw_scores', but not for a model in a Pipeline or search. For two
    classes it wants the columns -z and z, except in a StackingClassifier, where it needs the
    single column of scikit-learn's decision function.
    """
    wanted = container.get_options(view.model, {"raw_scores": False})["raw_scores"]
    converted = [operator.raw_operator for operator in scope.operators.values()]
    whole = _outermost(converted, view.model)
    wanted |= any(
        whole is each.estimator
        for outer in converted
        if isinstance(outer, CalibratedClassifierCV)
        for each in outer.calibrated_classifiers_
    )
    stacked = any(
        whole is each and method == "decision_function"
        for outer in converted
        if isinstance(outer, StackingClassifier)
        for each, method in zip(outer.estimators_, outer.stack_method_, strict=True)
    )
    if not (wanted or stacked):
        return None
    if len(view.labels) != 2 or view.is_multilabel:
        return z
    if view.network.n_outputs == 2:
        z = graph.add("MatMul", z, graph.constant([[-1.0], [1.0]]))
    return z if stacked else graph.concat([graph.add("Neg", z), z])


def _outermost(converted: Sequence[Any], model: Any) -> Any:
    """Return the outermost of the Pipelines that end with the model and the searches that chose it.

    `converted` lists all models that skl2onnx is converting.
    """
    for outer in converted:
        inner = outer[-1] if isinstance(outer, Pipeline) else None
        if getattr(outer, "best_estimator_", inner) is model:
            return _outermost(converted, outer)
    return model


def _labels(scope: Any, view: ModelView) -> Array:
    labels, options = class_labels(view), scope.get_options(view.model, {"nocl": False})
    return np.arange(len(labels)) if options["nocl"] else labels


def _set_shapes(operator: Any) -> None:
    """Set the types and shapes of the outputs of a model that skl2onnx converts."""
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    view = ModelView.of(operator.raw_operator)
    rows, width = operator.inputs[0].get_first_dimension(), view.network.n_outputs
    if view.classes is not None:
        labels = _labels(operator.scope_inst, view)
        width = len(labels)
        kind = StringTensorType if labels.dtype.kind == "O" else Int64TensorType
        operator.outputs[0].set_type(kind([rows, width] if view.is_multilabel else [rows]))
    operator.outputs[-1].type.shape = [rows, width]
