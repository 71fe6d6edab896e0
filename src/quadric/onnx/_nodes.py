"""A builder for ONNX graphs, and the nodes of operations, layers, activations and outputs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain, count, groupby
from operator import itemgetter
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from quadric.checks import Array
from quadric.errors import expect
from quadric.models import (
    Affine,
    Beside,
    Bin,
    Categories,
    Clip,
    Impute,
    Indicate,
    ModelView,
    OneHot,
    Operation,
    Ordinal,
    Power,
    Select,
    is_missing,
    kind_of_values,
    kinds_before,
    width_after,
)
from quadric.network import Network

ML_DOMAIN = "ai.onnx.ml"  # the domain of LabelEncoder; all other nodes are in the default domain
MISSING_TEXT = ""  # ONNX cannot represent missing text, so an empty string stands for it
# for each name: tensor, dtype and shape of one row
Outputs = dict[str, tuple[str, Any, tuple[int, ...]]]


def element_type(dtype: Any) -> int:
    """Return ONNX's code for a NumPy dtype, which is STRING for any type of text."""
    text = np.dtype(dtype).kind in "OUT"
    return int(TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def unique_names(reserved: Iterable[str]) -> Callable[[str], str]:
    """Return a function that appends a number to names that are reserved or already used."""
    used = set(reserved)

    def unique_name(wish: str) -> str:
        others = (f"{wish}_{i}" for i in count(2))
        name = next(name for name in chain([wish], others) if name not in used)
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

    def constant(self, values: Any, name: str = "constant") -> str:
        """Add a constant with the dtype that `as_tensor` chooses."""
        name = self.unique_name(name)
        self.initializers.append(numpy_helper.from_array(self.as_tensor(values), name))
        return name

    def as_tensor(self, values: Any) -> Array:
        """Convert reals to the graph's dtype, integers to int64, and text to objects."""
        array = np.asarray(values)
        dtypes: dict[str, Any] = {"f": self.dtype, "i": np.int64, "u": np.int64, "b": np.bool_}
        return np.asarray(array, dtype=dtypes.get(array.dtype.kind, object), order="C")

    def cast(self, tensor: str, dtype: Any = None) -> str:
        """Convert a tensor, by default to the graph's dtype."""
        return self.add("Cast", tensor, to=element_type(self.dtype if dtype is None else dtype))

    def concat(self, tensors: Sequence[str]) -> str:
        """Concatenate tensors along their columns."""
        return tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=1)


# ---------------------------------------------------------------- features and inputs


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
Signature = dict[str, tuple[Any, tuple[int, ...]]]  # for each name, dtype and shape of one row


def as_matrix(graph: Graph, features: Features) -> FeatureBlock:
    """Concatenate all features, which must be real numbers."""
    expect(
        all(block.kind == "float" for block in features),
        TypeError("expected numbers but got text or categories. Encode them first."),
    )
    width = sum(block.width for block in features)
    return FeatureBlock(graph.concat([block.tensor for block in features]), "float", width)


def as_columns(graph: Graph, features: Features) -> Features:
    """Split the features into blocks of width 1."""
    indices = range(sum(block.width for block in features))
    return [column for i in indices for column in take_columns(graph, features, [i])]


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


def declare_inputs(
    graph: Graph, operations: Sequence[Operation], names: Sequence[str], *, named: bool
) -> tuple[Signature, Features]:
    """Return the inputs of the graph, and the features that they form.

    The input is one matrix if all columns are numeric. However, if `fit` was given named columns
    and a ColumnTransformer drops some of them, which may be text, each column that is used becomes
    a separate input.
    """
    n = len(names)
    kinds = kinds_before(operations, ["float"] * width_after(operations, n))
    dropped = None in kinds and isinstance(operations[0], Beside)
    if not (named and dropped) and not {"string", "int64"} & set(kinds):
        return {"X": (graph.dtype, (n,))}, [FeatureBlock("X", "float", n)]
    dtypes = {"string": np.dtype(object), "int64": np.dtype(np.int64), "float": graph.dtype}
    columns = [FeatureBlock(name, kind) for name, kind in zip(names, kinds, strict=True)]
    # unused columns remain in the list, so that indices refer to the same columns as in the table
    return {c.tensor: (dtypes[c.kind], (1,)) for c in columns if c.kind is not None}, columns


def apply(graph: Graph, operations: Sequence[Operation], features: Features) -> Features:
    """Add the nodes of the operations and return the resulting features."""
    return reduce(partial(translate, graph), operations, features)


def translate(graph: Graph, features: Features, operation: Operation) -> Features:
    """Add the nodes of one operation and return the resulting features."""
    if type(operation) not in NUMERIC_NODES:
        return NODES[type(operation)](graph, operation, features)
    x = as_matrix(graph, features)
    tensor = NUMERIC_NODES[type(operation)](graph, operation, x.tensor)
    return [FeatureBlock(tensor, "float", width_after([operation], x.width))]


# ---------------------------------------------------------------------------- numbers


def _affine(graph: Graph, operation: Affine, x: str) -> str:
    center = operation.center
    for _ in range(2):
        # A float64 center is subtracted in two parts: rounding it to float32 would shift features
        # whose mean is large compared with their spread.
        part = center.astype(graph.dtype)
        if part.any():
            x = graph.add("Sub", x, graph.constant(part[None]))
        center = center - part
    if operation.A.ndim == 2:
        x = graph.add("MatMul", x, graph.constant(operation.A.T))
    elif (operation.A != 1).any():
        x = graph.add("Mul", x, graph.constant(operation.A[None]))
    if operation.shift.any():
        x = graph.add("Add", x, graph.constant(operation.shift[None]))
    return x


def _clip(graph: Graph, operation: Clip, x: str) -> str:
    low, high = graph.constant(float(operation.low)), graph.constant(float(operation.high))
    return graph.add("Clip", x, low, high)


def _bin(graph: Graph, operation: Bin, x: str) -> str:
    """Count the edges that do not exceed x."""
    most = max(1, *(len(edges) for edges in operation.edges))
    # padded with NaN, because x >= NaN is false for every x
    edges = np.array(
        [np.pad(row, (0, most - len(row)), constant_values=np.nan) for row in operation.edges]
    )
    if operation.dtype == np.float32 and graph.dtype == np.float64:
        x = graph.cast(graph.cast(x, np.float32))
    x = graph.add("Unsqueeze", x, graph.constant([2]))
    reached = graph.add("GreaterOrEqual", x, graph.constant(_rounded_up(edges, graph.dtype)[None]))
    return graph.add("ReduceSum", graph.cast(reached), graph.constant([2]), keepdims=0)


def _rounded_up(values: Array, dtype: Any) -> Array:
    """Round up to `dtype`: for any x of this dtype, x >= result if and only if x >= values."""
    rounded = values.astype(dtype)
    above = np.nextafter(rounded, np.array(np.inf, dtype=dtype))
    return np.where(rounded < values, above, rounded).astype(dtype)


def _power(graph: Graph, operation: Power, x: str) -> str:
    """Compute in float64 as scikit-learn does, because small exponents cause cancellation."""
    double, lambdas = replace(graph, dtype=np.dtype(np.float64)), operation.lambdas
    x = double.cast(x)
    if operation.method == "box-cox":
        return graph.cast(_box_cox(double, x, lambdas))
    zero, one = double.constant(0.0), double.constant(1.0)
    above = double.add("Add", double.add("Max", x, zero), one)
    below = double.add("Sub", one, double.add("Min", x, zero))
    positive, negative = _box_cox(double, above, lambdas), _box_cox(double, below, 2 - lambdas)
    return graph.cast(double.add("Sub", positive, negative))


def _box_cox(graph: Graph, x: str, lambdas: Array) -> str:
    """(x^lambda - 1) / lambda, or log x for lambda = 0."""
    is_log = np.abs(lambdas) < np.spacing(1.0)  # scikit-learn's threshold
    exponents = graph.constant(np.where(is_log, 1.0, lambdas)[None])
    less_one = graph.add("Sub", graph.add("Pow", x, exponents), graph.constant(1.0))
    power = graph.add("Div", less_one, exponents)
    if not is_log.any():
        return power
    return graph.add("Where", graph.constant(is_log[None]), graph.add("Log", x), power)


# -------------------------------------------------------------- columns, missing values


def _beside(graph: Graph, operation: Beside, features: Features) -> Features:
    return [
        block
        for branch in operation.branches
        for block in apply(graph, branch.operations, take_columns(graph, features, branch.columns))
    ]


def _impute(graph: Graph, operation: Impute, features: Features) -> Features:
    filled, first = [], 0
    for block in _numbers_together(graph, features):
        values = operation.fill[first : first + block.width]
        first += block.width
        texts = [MISSING_TEXT if v is None else str(v) for v in values]
        values = np.array(texts, dtype=object) if block.kind == "string" else values.astype(float)
        mask = _is_missing(graph, operation.missing, block)
        tensor = graph.add("Where", mask, graph.constant(values[None]), block.tensor)
        filled.append(replace(block, tensor=tensor, complete=True))
    return filled


def _indicate(graph: Graph, operation: Indicate, features: Features) -> Features:
    return [
        FeatureBlock(graph.cast(_is_missing(graph, operation.missing, block)), "float", block.width)
        for block in _numbers_together(graph, features)
    ]


def _numbers_together(graph: Graph, features: Features) -> Features:
    """Concatenate numeric columns, and keep text columns separate."""
    kinds = {block.kind for block in features}
    if "string" not in kinds:
        return [as_matrix(graph, features)]
    expect(
        kinds == {"string"},
        TypeError(
            "SimpleImputer was given both text and numeric columns. Use one imputer for each."
        ),
    )
    return features


def _is_missing(graph: Graph, missing: Any, block: FeatureBlock) -> str:
    if block.kind == "string":
        return _equals_text(graph, block, [MISSING_TEXT if is_missing(missing) else str(missing)])
    if is_missing(missing):
        return graph.add("IsNaN", block.tensor)
    return graph.add("Equal", block.tensor, graph.constant(float(missing)))


# ------------------------------------------------------------------------- categories


def _one_hot(graph: Graph, operation: OneHot, features: Features) -> Features:
    return [
        block
        for column, known in zip(as_columns(graph, features), operation.columns, strict=True)
        for block in _one_hot_column(graph, column, known)
    ]


def _one_hot_column(graph: Graph, column: FeatureBlock, known: Categories) -> Features:
    """Encode one column; unknown values become zeros, because a graph cannot raise an error."""
    n, unknown = len(known.values), -1 if known.unknown is None else int(known.unknown)
    equal = FeatureBlock(graph.cast(_is_category(graph, column, known)), "float", n)
    kept = np.flatnonzero(known.codes >= 0)
    codes = known.codes[kept]
    if unknown < 0 and len(np.unique(codes)) == len(codes):  # each output has its own category
        return take_columns(graph, [equal], kept[np.argsort(codes)].tolist())
    M, u = np.zeros((n, known.width)), np.zeros(known.width)
    M[kept, codes] = 1.0
    if unknown >= 0:  # u is the output for an unknown value; for known values, M cancels it
        u[unknown] = 1.0
        M[:, unknown] -= 1.0
    grouped = graph.add("Gemm", equal.tensor, graph.constant(M), graph.constant(u))
    return [FeatureBlock(grouped, "float", known.width)]


def _ordinal(graph: Graph, operation: Ordinal, features: Features) -> Features:
    """Replace categories with codes; unknown values that scikit-learn would reject become NaN."""
    blocks = []
    for column, known in zip(as_columns(graph, features), operation.columns, strict=True):
        equal = graph.cast(_is_category(graph, column, known))
        code = graph.add(
            "Gather",
            graph.constant(known.codes.astype(float)),
            graph.add("ArgMax", equal, axis=1, keepdims=1),
        )
        matched = graph.add("ReduceSum", equal, graph.constant([1]), keepdims=1)
        unknown = graph.constant(np.nan if known.unknown is None else float(known.unknown))
        code = graph.add("Where", graph.cast(matched, np.bool_), code, unknown)
        blocks.append(FeatureBlock(code, "float"))
    return blocks


def _is_category(graph: Graph, column: FeatureBlock, known: Categories) -> str:
    """Return a tensor of shape (batch, n_categories) that marks the category of each value."""
    values = np.asarray(known.values)
    missing = np.array([is_missing(value) for value in values])
    if kind_of_values(values) == "string":
        return _equals_text(graph, column, _texts(column, values, missing))
    expect(
        not missing[:-1].any(),
        ValueError("an encoder has both None and NaN among its categories. Keep one of them."),
    )
    numbers = values[~missing].astype(np.int64 if column.kind == "int64" else np.float64)
    row = graph.as_tensor(numbers[None])
    expect(
        len(np.unique(row)) == row.size,
        ValueError(
            f"an encoder has categories that are the same number in {graph.dtype}. "
            'Export with dtype="float64".'
        ),
    )
    equal = graph.add("Equal", column.tensor, graph.constant(row))
    return graph.concat([equal, graph.add("IsNaN", column.tensor)]) if missing.any() else equal


def _texts(column: FeatureBlock, values: Array, missing: Array) -> list[str]:
    """Return the categories as ONNX represents them."""
    expect(column.kind == "string", TypeError("an encoder compares text with a numeric column."))
    texts = [MISSING_TEXT if gone else str(v) for v, gone in zip(values, missing, strict=True)]
    expect(
        texts.count(MISSING_TEXT) <= (0 if column.complete else 1),
        ValueError(
            "an encoder distinguishes several kinds of missing or empty text, but ONNX represents "
            "all of them as an empty string. Replace them with a single value before fitting."
        ),
    )
    return texts


def _equals_text(graph: Graph, column: FeatureBlock, texts: Sequence[str]) -> str:
    """Return a tensor of shape (batch, n_strings) that marks the string equal to each value."""
    index = graph.add(
        "LabelEncoder",
        column.tensor,
        domain=ML_DOMAIN,
        keys_strings=list(texts),
        values_int64s=list(range(len(texts))),
        default_int64=-1,
    )
    return graph.add("Equal", index, graph.constant(np.arange(len(texts))[None]))


NUMERIC_NODES: dict[type[Any], Callable[[Graph, Any, str], str]] = {
    Affine: _affine,
    Bin: _bin,
    Clip: _clip,
    Power: _power,
}
# operations that also accept text or categories
NODES: dict[type[Any], Callable[[Graph, Any, Features], Features]] = {
    Beside: _beside,
    Impute: _impute,
    Indicate: _indicate,
    OneHot: _one_hot,
    Ordinal: _ordinal,
    Select: lambda graph, select, features: take_columns(graph, features, select.indices.tolist()),
}


# --------------------------------------------------------------------------- networks


def add_logits(graph: Graph, network: Network, z: str) -> str:
    """Add the layers, for the inputs z, and return the tensor of the last layer's z."""
    for l, layer in enumerate(network.astype(graph.dtype).layers):
        a = z if l == 0 else _activation(graph, network.activations[l - 1], z)
        z = LAYER_NODES[layer.kind](graph, layer, a, f"layers.{l}.")
    return z


def add_outputs(graph: Graph, view: ModelView, z: str, labels: Array | None) -> Outputs:
    """Compute a fitted model's outputs from its logits z; `labels` are those of a classifier."""
    if labels is None:
        a, width = _activation(graph, view.network.activations[-1], z), (view.network.n_outputs,)
        if view.estimator is not view.network:
            return {"variable": (a, graph.dtype, width)}
        return {"outputs": (a, graph.dtype, width), "logits": (z, graph.dtype, width)}
    width = (len(labels),)
    label, probabilities = _label(graph, view, labels, z), _probabilities(graph, view, z)
    return {
        "label": (label, labels.dtype, width if view.is_multilabel else ()),
        "probabilities": (probabilities, graph.dtype, width),
    }


def _linear(graph: Graph, layer: Any, X: str, prefix: str, names: str = "Wb") -> str:
    W, b = (graph.constant(getattr(layer, name), prefix + name) for name in names)
    return graph.add("Gemm", X, W, b, transB=1)


def _quadratic(graph: Graph, layer: Any, X: str, prefix: str) -> str:
    """z = (W + V) a + b with V = a'Q; W + V of all neurons is one product of shape (batch, m n)."""
    m, n = layer.W.shape
    Q = graph.constant(layer.Q.reshape(m * n, n), prefix + "Q")
    W = graph.constant(layer.W.reshape(m * n), prefix + "W")
    b = graph.constant(layer.b, prefix + "b")
    W_plus_V = graph.add("Gemm", X, Q, W, transB=1)
    W_plus_V = graph.add("Reshape", W_plus_V, graph.constant([0, m, n]))  # 0 keeps the batch size
    product = graph.add("MatMul", W_plus_V, graph.add("Unsqueeze", X, graph.constant([2])))
    return graph.add("Add", graph.add("Squeeze", product, graph.constant([2])), b)


def _reduced(graph: Graph, layer: Any, X: str, prefix: str) -> str:
    v1, v2 = (_linear(graph, layer, X, prefix, names) for names in ("Wb", "Uc"))
    return graph.add("Mul", v1, v2)


LAYER_NODES: dict[str, Callable[[Graph, Any, str, str], str]] = {
    "linear": _linear,
    "quadratic": _quadratic,
    "reduced": _reduced,
}
ACTIVATION_NODES = {
    "logistic": "Sigmoid",
    "tanh": "Tanh",
    "relu": "Relu",
    "softmax": "Softmax",
    "exponential": "Exp",
}


def _activation(graph: Graph, activation: str, z: str) -> str:
    return z if activation == "identity" else graph.add(ACTIVATION_NODES[activation], z)


def _label(graph: Graph, view: ModelView, labels: Array, z: str) -> str:
    """Compute `predict`: the sign of a single logit, or the first of the largest logits."""
    if view.is_multilabel:
        return _is_above(graph, z, 0.0)
    if view.network.n_outputs > 1:
        index = graph.add("ArgMax", z, axis=1, keepdims=0)
    else:  # a model with one class never predicts a second class
        index = _is_above(graph, z, 0.0 if len(labels) > 1 else np.inf)
        index = graph.add("Squeeze", index, graph.constant([1]))
    return graph.add("Gather", graph.constant(labels, "classes"), index)


def _is_above(graph: Graph, z: str, bound: float) -> str:
    return graph.cast(graph.add("Greater", z, graph.constant(bound)), np.int64)


def _probabilities(graph: Graph, view: ModelView, z: str) -> str:
    """Compute `predict_proba` without taking exponentials of large numbers."""
    if view.is_multilabel:
        return graph.add("Sigmoid", z)
    if len(view.labels) == 1:
        return graph.cast(graph.add("Not", graph.add("Greater", z, graph.constant(np.inf))))
    if view.network.n_outputs == 1:
        # The softmax of -z/2 and z/2 is (1 - p, p), and is accurate even if p or 1 - p is tiny.
        # Clipping keeps an infinite z, which float32 reaches before float64, from producing NaN.
        halves = graph.add("Mul", z, graph.constant([[-0.5, 0.5]]))
        bound = float(np.finfo(graph.dtype).max) / 4
        z = graph.add("Clip", halves, graph.constant(-bound), graph.constant(bound))
    elif view.network.activations[-1] == "logistic":
        # one sigmoid per class; the softmax of their logarithms normalizes them. The logarithm of a
        # sigmoid is min(z, 0) - log(1 + exp(-|z|)).
        exponential = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
        logarithm = graph.add("Log", graph.add("Add", exponential, graph.constant(1.0)))
        z = graph.add("Sub", graph.add("Min", z, graph.constant(0.0)), logarithm)
    return graph.add("Softmax", z)
