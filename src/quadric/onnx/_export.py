"""A model as one ONNX graph: preprocessing, network, answers."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

import quadric
from quadric._utils.whole_files import write_whole
from quadric.network import Network
from quadric.onnx._features import as_matrix
from quadric.onnx._graph import ML, Graph, element_type
from quadric.onnx._inputs import Input, declared_inputs, feature_names
from quadric.onnx._layers import logits_node
from quadric.onnx._network import Output, label_values, output_nodes
from quadric.onnx._operations import apply
from quadric.pipelines._operations import Operation
from quadric.pipelines._table import UnknownStepError, operations, split

OPSETS = (13, 17)  # the oldest that has these operators, and the default: widely supported
ML_OPSET = 3
LARGEST = 2**31 - 1  # bytes of a protobuf message
RESULTS = ("label", "probabilities", "variable", "outputs", "logits")


def export(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float32",
    opset: int = OPSETS[1],
) -> Any:
    """The model as an ONNX graph, of a few nodes a layer and any batch size.

    Parameters
    ----------
    model : Network, fitted quadric estimator, or Pipeline that ends with one
    path : str or path, optional
        Where to write the graph; the file appears whole or not at all.
    dtype : {'float32', 'float64'}
        Of inputs, parameters and results.
    opset : int, default=17
        ONNX's version of the operators, at least 13.

    Returns
    -------
    onnx.ModelProto
        Input: ``X`` of shape (batch, n). If an encoder takes text or whole numbers, or a
        ColumnTransformer drops columns of a table, there is instead one input of shape (batch, 1)
        for each column that is used, under the column's name.
        Outputs: ``label`` and ``probabilities`` of a classifier, ``variable`` of a regressor
        (batch, outputs), ``outputs`` and ``logits`` of a Network.

    Examples
    --------
    >>> from quadric import Network
    >>> net = Network.create(784, [("linear", 30, "logistic"), ("quadratic", 10, "logistic")])
    >>> len(export(net).graph.node)
    11
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64'. Got {dtype!r} instead.")
    newest = onnx.defs.onnx_opset_version()
    if isinstance(opset, bool) or not isinstance(opset, int) or not OPSETS[0] <= opset <= newest:
        raise ValueError(f"opset must be {OPSETS[0]} to {newest}. Got {opset!r} instead.")
    steps, last = _split(model)
    network = last if isinstance(last, Network) else last.network_
    named = hasattr(model, "feature_names_in_")
    names = feature_names(model, _n_features(steps, network))
    graph = Graph(dtype, {*RESULTS, *names, "X"})
    try:
        proto = _build(graph, steps, last, names, opset, named=named)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"ONNX holds text as UTF-8, which cannot encode {error.object!r:.60}. Rename this "
            "class, category or column before fit."
        ) from None
    if proto.ByteSize() > LARGEST:
        raise ValueError(
            f"the graph would take {proto.ByteSize() / 2**30:.1f} GiB; an ONNX file holds 2 GiB."
        )
    if path is not None:
        write_whole(Path(path), proto.SerializeToString())
    return proto


def _build(
    graph: Graph,
    steps: Sequence[tuple[str, Any]],
    last: Any,
    names: Sequence[str],
    opset: int,
    *,
    named: bool,
) -> Any:
    """Preprocessing, network and answers, assembled."""
    network = last if isinstance(last, Network) else last.network_
    found = [(name, _operations(name, step)) for name, step in steps]
    every = [operation for _, inside in found for operation in inside]
    inputs, table = declared_inputs(graph, every, names, named=named)
    _check_names(inputs)
    for name, inside in found:
        try:
            table = apply(graph, inside, table)
        except UnicodeEncodeError:
            raise
        except (TypeError, ValueError) as error:
            raise type(error)(f"step {name!r} cannot be exported: {error}") from None
    X = as_matrix(graph, table)
    results = output_nodes(graph, last, logits_node(graph, network, X.tensor))
    proto = _assemble(graph, inputs, results, opset)
    helper.set_model_props(proto, _properties(last, names))
    return proto


def _split(model: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The steps in front, and the Network or estimator at the end."""
    steps, last = split(model)
    if isinstance(last, Network) or isinstance(getattr(last, "network_", None), Network):
        return steps, last
    advice = "."
    if hasattr(last, "best_estimator_"):
        advice = "; pass its best_estimator_."
    elif type(last).__module__.startswith("quadric."):
        advice = "; call fit first."
    raise TypeError(
        "model must be a Network, a fitted quadric estimator, or a Pipeline that ends with one. "
        f"Got {type(last).__name__}{advice}"
    )


def _operations(name: str, step: Any) -> list[Operation]:
    try:
        return operations(step)
    except UnknownStepError as error:
        error = error.inside(name)
        raise TypeError(
            f"step {error.path!r} cannot be exported: {error.reason}. For other steps convert the "
            "Pipeline with skl2onnx.to_onnx."
        ) from None


def _n_features(steps: Sequence[tuple[str, Any]], network: Network) -> int:
    for _, step in steps:
        if hasattr(step, "n_features_in_"):
            return int(step.n_features_in_)
    return network.n_inputs


def _check_names(inputs: Sequence[Input]) -> None:
    if any(not name for name, _, _ in inputs):
        raise ValueError("a column has no name, which ONNX needs: name it before fit.")
    clash = [name for name, _, _ in inputs if name in RESULTS]
    if clash:
        raise ValueError(f"column {clash[0]!r} has the name of an output: rename it before fit.")


def _assemble(graph: Graph, inputs: Sequence[Input], results: Sequence[Output], opset: int) -> Any:
    for result in results:
        graph.add("Identity", result.tensor, output=result.name)
    opsets = [helper.make_opsetid("", opset)]
    if any(node.domain == ML for node in graph.nodes):
        opsets.append(helper.make_opsetid(ML, ML_OPSET))
    whole = helper.make_graph(
        graph.nodes,
        "quadric",
        [
            helper.make_tensor_value_info(name, element_type(dtype), ["batch", width])
            for name, dtype, width in inputs
        ],
        [
            helper.make_tensor_value_info(r.name, element_type(r.dtype), ["batch", *r.shape])
            for r in results
        ],
        graph.initializers,
    )
    return helper.make_model(
        whole,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="quadric",
        producer_version=quadric.__version__,
    )


def _properties(last: Any, names: Sequence[str]) -> dict[str, str]:
    """What a reader of the file may want to know; lists as JSON."""
    properties = {
        "quadric_version": quadric.__version__,
        "model": type(last).__name__,
        "feature_names": json.dumps(list(names)),
    }
    if hasattr(last, "classes_"):
        properties["classes"] = json.dumps(np.asarray(label_values(last)).tolist())
    return properties
