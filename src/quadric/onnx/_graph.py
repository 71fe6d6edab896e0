"""A builder for ONNX graphs with a single floating-point type."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from quadric._utils.arrays import Array

ML_DOMAIN = "ai.onnx.ml"  # the domain of LabelEncoder; all other nodes are in the default domain


def element_type(dtype: Any) -> int:
    """Return ONNX's code of a NumPy dtype; every kind of text is STRING."""
    text = np.dtype(dtype).kind in "OUT"
    return int(TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def unique_names(reserved: Iterable[str]) -> Callable[[str], str]:
    """Return a function that numbers names which are reserved or already used."""
    used = set(reserved)

    def unique_name(wish: str) -> str:
        numbered = (f"{wish}_{i}" for i in count(2))
        name = next(name for name in chain([wish], numbered) if name not in used)
        used.add(name)
        return name

    return unique_name


class Graph:
    """Nodes and constants of a graph; tensors are referred to by their names.

    Parameters
    ----------
    dtype : {'float32', 'float64'}
        Type of every real number in the graph.
    unique_name : callable
        Returns an unused name that resembles its argument.
    """

    def __init__(self, dtype: Any, unique_name: Callable[[str], str]) -> None:
        self.dtype = np.dtype(dtype)
        self.unique_name = unique_name
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

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
        dtypes = {"f": self.dtype, "i": np.int64, "u": np.int64, "b": np.int64}
        return np.asarray(array, dtype=dtypes.get(array.dtype.kind, object), order="C")

    def cast(self, tensor: str, dtype: Any = None) -> str:
        """Convert a tensor, by default to the graph's dtype."""
        return self.add("Cast", tensor, to=element_type(self.dtype if dtype is None else dtype))

    def concat(self, tensors: Sequence[str]) -> str:
        """Concatenate tensors along their columns."""
        return tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=1)

    def in_float64(self) -> Graph:
        """Return a view of the graph that adds nodes which compute in float64."""
        view = copy.copy(self)  # shares the lists and the names
        view.dtype = np.dtype(np.float64)
        return view
