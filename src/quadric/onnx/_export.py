"""Export a model as one ONNX graph: preprocessing, network and outputs."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

import quadric
from quadric.checks import as_dtype
from quadric.models import ModelView, UnknownStepError
from quadric.onnx._graph import (
    ML_DOMAIN,
    Graph,
    Signature,
    as_matrix,
    declare_inputs,
    element_type,
    unique_names,
)
from quadric.onnx._network import Outputs, add_logits, add_outputs, class_labels
from quadric.onnx._operations import apply
from quadric.utils import write_whole

OLDEST_OPSET = 13  # the first version that has all the operators used here
DEFAULT_OPSET = 17  # supported by most runtimes
ML_OPSET = 3
LARGEST = 2**31 - 1  # maximum size of a protobuf message, in bytes
OUTPUT_NAMES = ("label", "probabilities", "variable", "outputs", "logits")


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
    if type(opset) is not int or not OLDEST_OPSET <= opset <= newest:
        raise ValueError(
            f"opset must be an integer from {OLDEST_OPSET} to {newest}. Got {opset!r} instead."
        )
    view = ModelView.of(model)
    try:
        proto = _build(view, dtype, opset)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"ONNX stores text as UTF-8, which cannot encode {error.object!r:.60}. Rename this "
            "class, category or column before fitting."
        ) from None
    if proto.ByteSize() > LARGEST:
        raise ValueError(
            f"the graph would take {proto.ByteSize() / 2**30:.1f} GiB, but an ONNX file holds at "
            "most 2 GiB. Use fewer neurons, or reduced layers."
        )
    if path is not None:
        write_whole(Path(path), proto.SerializeToString())
    return proto


def _build(view: ModelView, dtype: str, opset: int) -> Any:
    """Return the ONNX model; features without names are called x0, x1, ..."""
    given_names = view.input_names
    names = [f"x{i}" for i in range(view.n_inputs)]
    names = names if given_names is None else list(map(str, given_names))
    graph = Graph(as_dtype(dtype), unique_names({*OUTPUT_NAMES, *names, "X"}))
    try:
        found = view.operations
    except UnknownStepError as error:
        raise TypeError(
            f"step {error.path!r} cannot be exported: {error.reason}. To convert a Pipeline that "
            "contains such steps, use skl2onnx.to_onnx."
        ) from None
    every = [operation for inside in found.values() for operation in inside]
    inputs, features = declare_inputs(graph, every, names, named=given_names is not None)
    refused = [name for name in inputs if not name or name in OUTPUT_NAMES]
    if refused:
        raise ValueError(
            f"column {refused[0]!r} cannot be an input: the name of an input must not be empty or "
            f"one of {', '.join(OUTPUT_NAMES)}. Rename the column before fitting."
        )
    for name, inside in found.items():
        try:
            features = apply(graph, inside, features)
        except UnicodeEncodeError:
            raise
        except (TypeError, ValueError) as error:
            raise type(error)(f"step {name!r} cannot be exported: {error}") from None
    logits = add_logits(graph, view.network, as_matrix(graph, features).tensor)
    outputs = add_outputs(graph, view, logits)
    for name, (tensor, _, _) in outputs.items():
        graph.add("Identity", tensor, output=name)
    proto = _assemble(graph, inputs, outputs, opset)
    properties = {
        "quadric_version": quadric.__version__,
        "model": view.name,
        "feature_names": json.dumps(names),
    }
    if view.classes is not None:
        properties["classes"] = json.dumps(class_labels(view).tolist())
    helper.set_model_props(proto, properties)
    return proto


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
