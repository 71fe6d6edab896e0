"""Proven labels: how far the scores of generated C code can be from those of the model.

Let f be the polynomial that the model would compute with exact arithmetic. In a box of inputs, the
scores of the generated code differ from f by at most e_C, and those of the model by at most e_M.
If the scores of two classes differ by more than epsilon, the sum of e_C + e_M of both, then both
programs put the same class first.

e_M is the bound of `certify`: share M(a + s) + M(a + s) - M(a), where M is the polynomial with the
absolute values of all parameters, a bounds the inputs of the network in the box, s bounds the
rounding errors of the steps, and `share` is N u / (1 - N u) for N roundings with unit roundoff u.

e_C follows the statements of the program: every expression has an `Interval` with its exact values
and a bound on its error. Floating-point arithmetic must round to nearest and have no excess
precision. Fusing a product and a sum saves a rounding, so the bounds hold for it, too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quadric.certify import (
    absolute_layers,
    certified_model,
    relative_error,
    shares,
    view_of_classifier,
)
from quadric.checks import Array
from quadric.codegen._description import Description
from quadric.codegen._expressions import (
    Activated,
    Expression,
    LayerOutputs,
    Program,
    Scalar,
    Vector,
    monomials,
)
from quadric.codegen._spelling import comment
from quadric.core import Layer, Quadratic, Reduced
from quadric.models import ModelView

SLACK = 1.001  # for the rounding errors of the bounds, which are sums of positive numbers
EPS = float(np.finfo(np.float64).eps)
MOST_COLUMNS, MOST_PAIRS = 100, 10  # that the comment in the code lists


class NotProvenError(ValueError):
    """The model has parts whose rounding errors are not bounded."""


@dataclass(frozen=True)
class Interval:
    """The exact values of an expression, and a bound on the error of the computed ones."""

    low: float
    high: float
    error: float = 0.0

    @property
    def size(self) -> float:
        """The largest absolute value of an exact value."""
        return max(abs(self.low), abs(self.high))

    @property
    def reach(self) -> float:
        """The largest absolute value of an exact or computed value."""
        return self.size + self.error

    def joined(self, other: "Interval") -> "Interval":
        """An interval that contains both."""
        return Interval(
            min(self.low, other.low), max(self.high, other.high), max(self.error, other.error)
        )


@dataclass(frozen=True)
class ColumnRange:
    """The numbers that an input can be: all between the ends, or only the listed `values`."""

    low: float
    high: float
    missing: bool
    values: tuple[float, ...] | None = None

    def inside(self, kind: str) -> tuple[float, float]:
        """The ends, which are exact in float and double."""
        return self.low, self.high


Box = list[ColumnRange | None]


@dataclass(frozen=True)
class Proof:
    """What is proven about the labels of generated code.

    Attributes
    ----------
    box : list of ColumnRange or None
        The range of each input; None for text and for inputs that are not used.
    epsilon : array of shape (classes, classes)
        If the scores of two classes differ by more than this, both programs agree on their order.
    covered, rows : int
        How many of the rows of the given table are in the box and decided by the proof.
    arithmetic : str
        That of the generated code.
    """

    box: Box
    epsilon: Array
    covered: int
    rows: int
    arithmetic: str

    def heading(self, description: Description) -> list[str]:
        """What the comment in the code says."""
        lines = [
            "",
            "Proven labels: for every row in the box, the label is the one that predict returns if",
            "its score exceeds that of every other class by more than epsilon.",
            f"Covered: {self.covered} of {self.rows} rows of the given table.",
            f"Arithmetic: {self.arithmetic}",
            "Box:",
        ]
        names = [comment(column.name) for column in description.program.columns]
        for name, column in list(zip(names, self.box, strict=True))[:MOST_COLUMNS]:
            if column is not None:
                lines.append(f"  {name}: {_range(column)}")
        if len(names) > MOST_COLUMNS:
            lines.append(f"  and {len(names) - MOST_COLUMNS} others, see the function proven")
        if len(self.epsilon) > MOST_PAIRS:
            return [*lines, f"Largest epsilon: {self.epsilon.max():.3g}"]
        lines.append("Epsilon for each pair of classes:")
        for name, row in zip(map(comment, description.labels), self.epsilon, strict=True):
            lines.append(f"  {name}: " + ", ".join(f"{value:.3g}" for value in row))
        return lines


def _range(column: ColumnRange) -> str:
    text = f"{column.low!r} to {column.high!r}"
    if column.values is not None:
        text = ", ".join(map(repr, column.values))
    return text + (", or missing" if column.missing else "")


# ----------------------------------------------------------------------------- boxes


def box_of(description: Description, X: Any) -> Box:
    """The smallest box that contains the rows of X, with ends that are exact in float."""
    found: Box = []
    listed = _compared(description.program)
    for i, column in enumerate(description.program.columns):
        values = X.iloc[:, i] if hasattr(X, "iloc") else np.asarray(X)[:, i]
        if column.kind != "number":
            found.append(None)
            continue
        numbers = np.asarray(values, dtype=float)
        present = numbers[~np.isnan(numbers)]
        if not np.isfinite(present).all() or not present.size:
            raise NotProvenError(f"the column {column.name!r} of X has no finite range.")
        low, high = outwards(float(present.min()), float(present.max()))
        values = tuple(sorted(listed[i])) if i in listed else None
        found.append(ColumnRange(low, high, bool(np.isnan(numbers).any()), values))
    return found


def outwards(low: float, high: float) -> tuple[float, float]:
    """The ends of the smallest interval around another whose ends are exact in float."""
    a, b = np.float32(low), np.float32(high)
    a = np.nextafter(a, np.float32(-np.inf)) if float(a) > low else a
    b = np.nextafter(b, np.float32(np.inf)) if float(b) < high else b
    if not (np.isfinite(a) and np.isfinite(b)):
        raise NotProvenError("the inputs are too large for float.")
    return float(a), float(b)


def _compared(program: Program) -> dict[int, set[float]]:
    """The numbers that columns are compared with."""
    found: dict[int, set[float]] = {}
    for one in every_expression(program):
        if one.operator == "==" and one.arguments[0].operator == "column":
            found.setdefault(one.arguments[0].value, set()).add(one.arguments[1].value)
    return found


def every_expression(program: Program) -> Iterator[Expression]:
    """All expressions of the statements, and those inside them."""
    waiting: list[Expression] = []
    for one in program.statements:
        if isinstance(one, Scalar):
            waiting.append(one.expression)
        elif isinstance(one, Vector):
            waiting += one.expressions
    while waiting:
        expression = waiting.pop()
        waiting += expression.arguments
        yield expression


# --------------------------------------------------- errors of floating-point arithmetic


@dataclass(frozen=True)
class Arithmetic:
    """A floating-point type: unit roundoff, smallest normal number, and how it rounds constants."""

    dtype: Any

    @property
    def u(self) -> float:
        return float(np.finfo(self.dtype).eps) / 2

    @property
    def tiny(self) -> float:
        return float(np.finfo(self.dtype).tiny)

    def constant(self, value: Any) -> tuple[Any, Any]:
        """The rounded value, and its error."""
        rounded = np.asarray(value, dtype=np.float64).astype(self.dtype).astype(np.float64)
        return rounded, np.abs(rounded - value)


@dataclass
class Bounds:
    """Bounds for the statements of a program in a box, one after another."""

    arithmetic: Arithmetic
    box: Box
    scalars: dict[str, Interval]
    arrays: dict[str, list[Interval]]

    @classmethod
    def of(cls, program: Program, arithmetic: Arithmetic, box: Box) -> "Bounds":
        """Bounds for all statements."""
        bounds = cls(arithmetic, box, {}, {})
        for one in program.statements:
            if isinstance(one, Scalar):
                bounds.scalars[one.name] = bounds.at(one.expression)
            elif isinstance(one, Vector):
                bounds.arrays[one.name] = [bounds.at(value) for value in one.expressions]
            elif isinstance(one, LayerOutputs):
                inputs = bounds.arrays[one.source]
                bounds.arrays[one.name] = layer_bounds(one.layer, inputs, arithmetic)
            elif isinstance(one, Activated):
                raise NotProvenError(f"the activation {one.activation!r} of a hidden layer.")
        return bounds

    def at(self, one: Expression) -> Interval:
        """The bounds for an expression."""
        if one.operator not in RULES:
            raise NotProvenError(f"the operation {one.operator!r} in the steps.")
        return RULES[one.operator](self, one)

    def number(self, one: Expression) -> Interval:
        _, error = self.arithmetic.constant(one.value)
        return Interval(one.value, one.value, float(error))

    def column(self, one: Expression) -> Interval:
        column = self.box[one.value]
        assert column is not None
        largest = max(abs(column.low), abs(column.high))
        error = 0.0
        if self.arithmetic.dtype == np.float32 and column.values is None:  # rounded to float
            error = largest * self.arithmetic.u + self.arithmetic.tiny
        elif column.values is not None and self.arithmetic.constant(column.values)[1].any():
            raise NotProvenError("numbers that are categories and are not exact in float.")
        return Interval(column.low, column.high, error)

    def difference(self, one: Expression) -> Interval:
        a, b = map(self.at, one.arguments)
        low, high = a.low - b.high, a.high - b.low
        error = a.error + b.error
        return rounded(Interval(low, high, error), self.arithmetic)

    def sum(self, one: Expression) -> Interval:
        first, *others = terms = list(map(self.at, one.arguments))
        low, high, error = first.low, first.high, first.error
        for term in others:  # from left to right, with one rounding each
            low, high, error = low + term.low, high + term.high, error + term.error
            error += self.arithmetic.u * Interval(low, high, error).reach
        own = len(terms) * EPS * sum(term.size for term in terms)  # roundings of the ends
        return Interval(low - own, high + own, error * SLACK)

    def product(self, one: Expression) -> Interval:
        a, b = map(self.at, one.arguments)
        return product(a, b, self.arithmetic)

    def choice(self, one: Expression) -> Interval:
        values = [*one.arguments[1::2], one.arguments[-1]]
        found = [self.at(v) for v in values if not (v.operator == "number" and v.value != v.value)]
        whole = found[0]
        for interval in found[1:]:
            whole = whole.joined(interval)
        return whole


RULES: dict[str, Callable[[Bounds, Expression], Interval]] = {
    "number": Bounds.number,
    "column": Bounds.column,
    "variable": lambda bounds, one: bounds.scalars[one.value],
    "element": lambda bounds, one: bounds.arrays[one.value[0]][one.value[1]],
    "-": Bounds.difference,
    "+": Bounds.sum,
    "*": Bounds.product,
    "if": Bounds.choice,
}


def layer_bounds(
    layer: Layer, inputs: Sequence[Interval], arithmetic: Arithmetic
) -> list[Interval]:
    """Bounds for the outputs of a layer."""
    if isinstance(layer, Quadratic):
        found = _quadratic(layer, inputs, arithmetic)
    else:
        found = _linear(layer.W, layer.b, inputs, arithmetic)
    if isinstance(layer, Reduced):
        first, second = found, _linear(layer.U, layer.c, inputs, arithmetic)
        found = [product(a, b, arithmetic) for a, b in zip(first, second, strict=True)]
    return found


def product(a: Interval, b: Interval, arithmetic: Arithmetic) -> Interval:
    """The bounds for a product, after its rounding."""
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    error = a.size * b.error + b.size * a.error + a.error * b.error
    return rounded(Interval(min(ends), max(ends), error), arithmetic)


def rounded(exact: Interval, arithmetic: Arithmetic) -> Interval:
    """The bounds after one rounding."""
    error = exact.error + arithmetic.u * exact.reach + arithmetic.tiny
    return replace(exact, error=error * SLACK)


def _linear(
    W: Array, b: Array, inputs: Sequence[Interval], arithmetic: Arithmetic
) -> list[Interval]:
    """Bounds for Wx + b, whose products are added to b one after another.

    Each product and each partial sum is rounded once. `partial` has the ranges of the exact partial
    sums, and the errors before a rounding grow by a factor 1 + u with it.
    """
    W, b, u = W.astype(float), b.astype(float), arithmetic.u
    low, high = np.array([(one.low, one.high) for one in inputs]).T
    e = np.array([one.error for one in inputs])
    (_, dW), (_, db) = arithmetic.constant(W), arithmetic.constant(b)
    far = np.maximum(np.abs(low), np.abs(high)) + e
    ends = np.stack([W * low, W * high])
    partial = b[:, None] + np.cumsum([ends.min(axis=0), ends.max(axis=0)], axis=2)
    terms = np.abs(W) @ e + dW @ far + u * (np.abs(W) + dW) @ far + arithmetic.tiny * len(e)
    error = db + terms + u * np.abs(partial).max(axis=0).sum(axis=1)
    error *= (1 + relative_error(len(e) * u)) * SLACK
    own = (len(e) + 2) * EPS * (np.abs(b) + np.abs(ends).max(axis=0).sum(axis=1))
    low, high = partial[:, :, -1]
    return [Interval(*whole) for whole in zip(low - own, high + own, error, strict=True)]


def _quadratic(
    layer: Quadratic, inputs: Sequence[Interval], arithmetic: Arithmetic
) -> list[Interval]:
    """Bounds for a quadratic layer, from the absolute values of inputs and parameters."""
    a = np.array([one.size for one in inputs])
    e = np.array([one.error for one in inputs])
    n, far = len(a), a + e
    W, b, P = layer.W.astype(float), layer.b.astype(float), monomials(layer)
    (_, dW), (_, db), (_, dP) = map(arithmetic.constant, (W, b, P))
    W, P = np.abs(W), np.abs(P)
    Pa, Pe = P @ a, P @ e  # shape (m, n)
    size = W @ a + np.abs(b) + Pa @ a
    shifted = W @ e + Pa @ e + Pe @ a + Pe @ e
    reach = W @ far + np.abs(b) + (P @ far) @ far
    changed = dW @ far + db + (dP @ far) @ far
    rounding = relative_error((2 * n + 6) * arithmetic.u) * (reach + changed)
    underflow = arithmetic.tiny * (n + 2) ** 2 * (1 + far.max(initial=0.0))
    error = (shifted + changed + rounding + underflow) * SLACK
    return [Interval(-s, s, d * SLACK) for s, d in zip(size * SLACK, error, strict=True)]


# ------------------------------------------------------------------- errors of the model


def model_errors(view: ModelView, X: Any, program: Program, box: Box) -> Array:
    """e_M, for each score: how far those of the model are from exact arithmetic in the box."""
    certified = certified_model(view, X)
    (layer,) = absolute_layers(view.network, certified.dtype)
    (share,) = shares(view.network, certified.dtype)
    largest = _largest_choice(program)
    sizes = np.array(
        [
            largest
            if column is None
            else max(abs(column.low), abs(column.high), largest if column.missing else 0.0)
            for column in box
        ]
    )
    if (encoded := view.coordinates.encoded) is not None:  # the first step, as all are affine
        bounds = Bounds.of(program, Arithmetic(np.dtype(np.float64)), box)
        outputs = program.after_first_step
        sizes = np.array(
            [
                sizes[k] if source == "input" else _size_of(bounds, outputs[k])
                for source, k in encoded.origins
            ]
        )
    reach = certified.absolute.apply(sizes) * SLACK
    moved = certified.share * reach
    polynomial = _absolute_polynomial(layer)
    near, far = polynomial(reach), polynomial(reach + moved)
    n = view.network.n_inputs
    errors: Array = share * far + (far - near) + 64 * (n + 4) * EPS * far
    return errors * SLACK


def _size_of(bounds: Bounds, column: Expression | None) -> float:
    if column is None or column.is_text:
        raise NotProvenError("text among the inputs of the network.")
    return bounds.at(column).reach


def _absolute_polynomial(layer: Layer) -> Callable[[Array], Array]:
    Q = layer.Q if isinstance(layer, Quadratic) else None

    def value(a: Array) -> Array:
        z: Array = layer.W @ a + layer.b
        return z if Q is None else z + (Q @ a) @ a

    return value


def _largest_choice(program: Program) -> float:
    """The largest number that replaces a category or a missing value; at least 1."""
    values: Iterable[Expression] = (
        value
        for one in every_expression(program)
        if one.operator == "if"
        for value in (*one.arguments[1::2], one.arguments[-1])
    )
    numbers = [abs(v.value) for v in values if v.operator == "number" and v.value == v.value]
    return max([1.0, *numbers])


# ------------------------------------------------------------------------------ the proof


def prove(
    description: Description,
    X: Any,
    arithmetic: str,
    code_errors: Callable[[Box], Array],
) -> Proof:
    """The proof for code whose scores have the given errors in a box."""
    try:
        given = view_of_classifier(description.view.model)
        given.one_layer  # noqa: B018 - raises ValueError if there are hidden layers
    except ValueError as error:
        raise NotProvenError(str(error)) from None
    view, X = given.after_reading, given.read(X)
    box = box_of(description, X)
    try:
        errors = model_errors(view, X, description.program, box)
    except ValueError as error:
        raise NotProvenError(str(error)) from None
    errors = (errors + code_errors(box)) * SLACK
    if len(errors) == 1:  # the scores are 0 and z
        errors = np.array([0.0, errors[0]])
    epsilon = errors[:, None] + errors[None, :]
    np.fill_diagonal(epsilon, 0.0)
    if not np.isfinite(epsilon).all():
        raise NotProvenError("the scores can be so large that they have no proven precision.")
    covered = _covered(description, view, X, box, epsilon)
    return Proof(box, epsilon, int(covered.sum()), len(covered), arithmetic)


def _covered(description: Description, view: ModelView, X: Any, box: Box, epsilon: Array) -> Array:
    """Which rows are in the box and have scores that differ by more than epsilon."""
    u = X
    for step in view.transformers:
        u = step.transform(u)
    u = u.toarray() if hasattr(u, "toarray") else np.asarray(u, dtype=float)
    z = view.network.astype(np.dtype(np.float64)).logits(u)
    if z.shape[1] == 1:
        z = np.hstack([np.zeros_like(z), z])
    label = z.argmax(axis=1)
    margins = z[np.arange(len(z)), label][:, None] - z
    decided = margins > epsilon[label]
    decided[np.arange(len(z)), label] = True
    return decided.all(axis=1) & in_box(X, box)


def in_box(X: Any, box: Box) -> Array:
    """Which rows of X are in the box."""
    inside = np.ones(len(X), dtype=bool)
    for i, column in enumerate(box):
        if column is None:
            continue
        values = np.asarray(X.iloc[:, i] if hasattr(X, "iloc") else np.asarray(X)[:, i], float)
        good = (values >= column.low) & (values <= column.high)
        if column.values is not None:
            good = np.isin(values, column.values)
        inside &= good | (np.isnan(values) & column.missing)
    return inside
