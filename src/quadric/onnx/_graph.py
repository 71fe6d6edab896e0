"""A graph under construction: nodes and constants, in one floating-point type."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from quadric._utils.arrays import Array

ML = "ai.onnx.ml"  # the domain of LabelEncoder; all other nodes are of the main one


def element_type(dtype: Any) -> int:
    """ONNX's number for a NumPy dtype; any kind of text is STRING."""
    dtype = np.dtype(dtype)
    if dtype.kind in "OUT":
        return int(TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(dtype))


class Graph:
    """Collects nodes; every node has one output, whose name `add` returns.

    Parameters
    ----------
    dtype : {'float32', 'float64'}
        Of every real number in the graph.
    taken : collection of str
        Names that belong to inputs and outputs.
    """

    def __init__(self, dtype: Any, taken: Any = ()) -> None:
        self.dtype = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._taken = set(taken)

    def add(
        self, op: str, *inputs: str, domain: str = "", output: str | None = None, **attributes: Any
    ) -> str:
        """A node; without `output` its result gets a new name."""
        name = self._new_name(op) if output is None else output
        self.nodes.append(
            helper.make_node(op, list(inputs), [name], name=name, domain=domain, **attributes)
        )
        return name

    def constant(self, values: Any, name: str = "constant", *, kind: Any = None) -> str:
        """A constant tensor: reals in the graph's dtype, whole numbers as int64, text."""
        name = self._new_name(name)
        tensor = self.as_tensor(values) if kind is None else np.asarray(values, dtype=kind)
        self.initializers.append(numpy_helper.from_array(tensor, name))
        return name

    def double(self) -> Graph:
        """The same graph, for nodes that compute in float64."""
        view = copy.copy(self)  # the lists and the names are shared
        view.dtype = np.dtype(np.float64)
        return view

    def as_tensor(self, values: Any) -> Array:
        array = np.asarray(values)
        if array.dtype.kind == "f":
            return np.ascontiguousarray(array, dtype=self.dtype)
        if array.dtype.kind in "iub":
            return np.ascontiguousarray(array, dtype=np.int64)
        return array.astype(object)

    def cast(self, name: str, dtype: Any = None) -> str:
        """The tensor in another type, by default the graph's own."""
        return self.add("Cast", name, to=element_type(self.dtype if dtype is None else dtype))

    def _new_name(self, wish: str) -> str:
        name, count = wish, 1
        while name in self._taken:
            count += 1
            name = f"{wish}_{count}"
        self._taken.add(name)
        return name
