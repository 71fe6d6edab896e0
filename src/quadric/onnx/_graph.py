"""A builder for ONNX graphs, and the features that pass through the preprocessing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby
from operator import itemgetter
from typing import Any, Self

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from quadric.checks import Array
from quadric.models import (
    Affine,
    Beside,
    Impute,
    OneHot,
    Operation,
    Ordinal,
    Select,
    is_missing,
    width_after,
)

GENERALITY = ("int64", "float", "string")  # a column used as two kinds gets the more general one
ML_DOMAIN = "ai.onnx.ml"  # the domain of LabelEncoder; all other nodes are in the default domain


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

    def in_float64(self) -> Self:
        """Return a view of the graph through which nodes that compute in float64 are added."""
        return replace(self, dtype=np.dtype(np.float64))  # shares the lists and the names


@dataclass(frozen=True)
class FeatureBlock:
    """A tensor of shape (batch, width).

    The features of a graph are a list of such blocks.

    Attributes
    ----------
    tensor : str
        Name of the tensor.
    kind : {'float', 'string', 'int64', None}
        'float' stands for the graph's dtype, and 'int64' for a column of categories. None stands
        for a column that no step uses; the graph has no tensor for it. Only blocks of floats can
        be wider than 1.
    width : int
        Number of columns.
    complete : bool
        Whether missing values have been replaced.
    """

    tensor: str
    kind: str | None
    width: int = 1
    complete: bool = False


Features = list[FeatureBlock]
Kinds = list[str | None]
Signature = dict[str, tuple[Any, tuple[int, ...]]]  # for each name, dtype and shape of one row


def as_matrix(graph: Graph, features: Features) -> FeatureBlock:
    """Concatenate all features, which must be real numbers."""
    if any(block.kind != "float" for block in features):
        raise TypeError("expected numbers but got text or categories. Encode them first.")
    joined = graph.concat([block.tensor for block in features])
    return FeatureBlock(joined, "float", sum(block.width for block in features))


def as_columns(graph: Graph, features: Features) -> Features:
    """Split the features into blocks of width 1."""
    n = sum(block.width for block in features)
    return [column for i in range(n) for column in take_columns(graph, features, [i])]


def take_columns(graph: Graph, features: Features, indices: Iterable[int]) -> Features:
    """Select the columns at `indices`, in the given order."""
    places = [(block, j) for block in features for j in range(block.width)]
    taken = []
    for block, group in groupby((places[i] for i in indices), key=itemgetter(0)):
        columns = [j for _, j in group]
        if block.width == 1:
            taken += [block] * len(columns)
        elif columns == list(range(block.width)):
            taken.append(block)
        else:
            tensor = graph.add("Gather", block.tensor, graph.constant(columns), axis=1)
            taken.append(FeatureBlock(tensor, "float", len(columns)))
    return taken


def kind_of_values(values: Any) -> str:
    """Return 'string', 'int64' or 'float', the type of a column with these categories."""
    array = np.asarray(values)
    present = [value for value in array if not is_missing(value)]
    if any(isinstance(value, str) for value in present):
        return "string"
    whole = all(isinstance(value, (bool, int, np.integer, np.bool_)) for value in present)
    return "int64" if whole and len(present) == len(array) else "float"


def declare_inputs(
    graph: Graph, operations: Sequence[Operation], names: Sequence[str], *, named: bool
) -> tuple[Signature, Features]:
    """Return the inputs of the graph, and the features that they form.

    The input is one matrix if all columns are numeric. However, if `fit` was given named columns
    and a ColumnTransformer drops some of them, which may be text, each column that is used becomes
    a separate input.
    """
    n = len(names)
    kinds = _kinds_before(operations, ["float"] * width_after(operations, n))
    dropped = None in kinds and isinstance(operations[0], Beside)
    if not (named and dropped) and not {"string", "int64"} & set(kinds):
        return {"X": (graph.dtype, (n,))}, [FeatureBlock("X", "float", n)]
    dtypes = {"string": np.dtype(object), "int64": np.dtype(np.int64), "float": graph.dtype}
    columns = [FeatureBlock(name, kind) for name, kind in zip(names, kinds, strict=True)]
    # unused columns remain in the list, so that indices refer to the same columns as in the table
    return {c.tensor: (dtypes[c.kind], (1,)) for c in columns if c.kind is not None}, columns


def _kinds_before(operations: Sequence[Operation], kinds: Kinds) -> Kinds:
    """Return the kinds of the columns before the operations, given the kinds needed after them."""
    for operation in reversed(operations):
        match operation:
            case OneHot() | Ordinal():
                kinds = [kind_of_values(column.values) for column in operation.columns]
            case Impute():  # whole numbers with missing values are floats
                kinds = ["string" if isinstance(v, str) else "float" for v in operation.fill]
            case Affine():
                kinds = ["float"] * len(operation.center)
            case Select():
                kinds = _combined([(operation.indices, kinds)], operation.n)
            case Beside():
                branches = [
                    (branch.columns, _kinds_before(branch.operations, part))
                    for branch, part in operation.split(kinds)
                ]
                kinds = _combined(branches, operation.n)
            case _:
                kinds = ["float"] * len(kinds)
    return kinds


def _combined(parts: Iterable[tuple[Any, Kinds]], n: int) -> Kinds:
    """Return, for each of n columns, the most general kind that the parts need, or None."""
    kinds: Kinds = [None] * n
    for columns, needed in parts:
        for i, kind in zip(columns, needed, strict=True):
            kinds[i] = max(filter(None, (kinds[i], kind)), key=GENERALITY.index, default=None)
    return kinds
