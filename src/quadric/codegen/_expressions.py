"""Expressions and statements: what every generated program computes, in no particular language.

An expression computes one number, text or truth value. A program is a list of statements, each of
which computes a number (`Scalar`) or an array (`Vector`, `LayerOutputs`, `Activated`). Languages
without arrays, and small models, use the `expanded` program, which has scalars only.

Missing values are NaN for numbers, and null for text. A comparison with them is false.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.core import Layer, Quadratic, Reduced


@dataclass(frozen=True)
class Expression:
    """An operator, its arguments, and the value of a leaf.

    The leaves are 'number' (the value is a float), 'string', 'column' and 'text column' (the index
    of an input), 'variable' (the name of a scalar) and 'element' (the name of an array and an
    index). The other operators are those of `OPERATORS`.
    """

    operator: str
    arguments: tuple["Expression", ...] = ()
    value: Any = None

    def __add__(self, other: "Expression") -> "Expression":
        return total([self, other])

    def __sub__(self, other: "Expression") -> "Expression":
        return Expression("-", (self, other))

    def __mul__(self, other: "Expression") -> "Expression":
        return Expression("*", (self, other))

    def __truediv__(self, other: "Expression") -> "Expression":
        return Expression("/", (self, other))

    @property
    def is_leaf(self) -> bool:
        return not self.arguments

    @property
    def is_text(self) -> bool:
        """Whether the value is text; a variable is never text."""
        if self.operator == "if":
            return self.arguments[1].is_text
        return self.operator in ("string", "text column")


# the operators with the number of arguments; None stands for any number
OPERATORS = {
    "+": None,
    "*": 2,
    "-": 2,
    "/": 2,
    "<": 2,
    ">=": 2,
    "==": 2,  # numbers
    "same": 2,  # texts
    "missing": 1,
    "infinite": 1,
    "missing text": 1,
    "if": None,  # condition, value, condition, value, ..., and the value if none is true
    "exp": 1,
    "log": 1,
    "tanh": 1,
    "power": 2,
    "abs": 1,
    "largest": None,
}


def number(value: Any) -> Expression:
    """A constant; NaN stands for a missing number."""
    return Expression("number", value=float(value))


def apply(operator: str, *arguments: Expression) -> Expression:
    """One of the `OPERATORS`."""
    return Expression(operator, arguments)


def total(terms: Sequence[Expression]) -> Expression:
    """The sum of the terms, from the first to the last."""
    return terms[0] if len(terms) == 1 else Expression("+", tuple(terms))


def choose(condition: Expression, one: Expression, other: Expression) -> Expression:
    """`one` if the condition is true, and otherwise `other`."""
    return cases([(condition, one)], other)


def cases(pairs: Iterable[tuple[Expression, Expression]], other: Expression) -> Expression:
    """The value after the first condition that is true, and otherwise `other`."""
    return Expression("if", (*chain.from_iterable(pairs), other))


ZERO, ONE, NAN = number(0.0), number(1.0), number(np.nan)


# ------------------------------------------------------------------------- statements


@dataclass(frozen=True)
class Scalar:
    """name = expression. `note` is for readers."""

    name: str
    expression: Expression
    note: str = ""


@dataclass(frozen=True)
class Vector:
    """name = array of the expressions; `notes` say what the entries are."""

    name: str
    expressions: tuple[Expression, ...]
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        return len(self.expressions)


@dataclass(frozen=True)
class LayerOutputs:
    """name = the outputs z of the layer for the array `source`."""

    name: str
    layer: Layer
    source: str
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        return self.layer.n_outputs


@dataclass(frozen=True)
class Activated:
    """name = the activation of every element of the array `source`."""

    name: str
    activation: str
    source: str
    width: int


Statement = Scalar | Vector | LayerOutputs | Activated


@dataclass(frozen=True)
class Column:
    """An input of a program: its name and kind, 'number', 'text', or None if it is not used."""

    name: str
    kind: str | None


@dataclass
class Program:
    """Statements that compute the scores of a model from its columns.

    The array `scores` is the last. `required` are numbers that must not be missing; 'array' stands
    for all elements of an array. If one of them is NaN, the model raises an error instead of
    computing scores. `after_first_step` has the columns after the first step.
    """

    columns: list[Column]
    statements: list[Statement] = field(default_factory=list)
    required: list[Expression] = field(default_factory=list)
    scores: str = ""
    names: set[str] = field(default_factory=set)
    after_first_step: list[Expression | None] = field(default_factory=list)

    def unique(self, wish: str) -> str:
        """An unused name that resembles `wish`, which consists of letters, digits and _.

        Names differ in more than case, which SQL ignores.
        """
        tries = (wish if i == 1 else f"{wish}_{i}" for i in count(1))
        name = next(name for name in tries if name.lower() not in self.names)
        self.names.add(name.lower())
        return name

    def bind(self, expression: Expression, wish: str = "v") -> Expression:
        """A leaf with the value of a numeric expression, so that it is computed only once."""
        if expression.is_leaf or expression.is_text:
            return expression
        name = self.unique(wish)
        self.statements.append(Scalar(name, expression))
        return Expression("variable", value=name)

    def elements(self, name: str, width: int) -> list[Expression]:
        """The elements of an array."""
        return [Expression("element", value=(name, i)) for i in range(width)]

    @property
    def layers(self) -> list[Layer]:
        """The layers in order, those of steps included."""
        return [one.layer for one in self.statements if isinstance(one, LayerOutputs)]

    @property
    def width(self) -> int:
        """The number of scores."""
        return next(
            one.width
            for one in reversed(self.statements)
            if not isinstance(one, Scalar) and one.name == self.scores
        )


# -------------------------------------------------------------------- without arrays


def identifier(text: str) -> str:
    """Letters, digits and underscores that resemble a text."""
    letters = "".join(c if c.isascii() and c.isalnum() else "_" for c in text)
    return "_".join(part for part in letters.split("_") if part)[:40]


def expanded(program: Program) -> tuple[Program, list[Expression]]:
    """The same program with scalars only, and its scores."""
    flat = replace(program, statements=[], required=[], names=set())
    arrays: dict[str, list[Expression]] = {}
    for one in program.statements:
        if isinstance(one, Scalar):
            flat.names.add(one.name.lower())
            flat.statements.append(replace(one, expression=resolved(one.expression, arrays)))
        else:
            arrays[one.name] = list(_scalars(flat, one, arrays))
    for needed in program.required:
        whole = needed.operator == "array"
        every = arrays[needed.value] if whole else [resolved(needed, arrays)]
        flat.required += [value for value in every if value.operator != "number"]
    return flat, arrays[program.scores]


def _scalars(
    flat: Program, array: Vector | LayerOutputs | Activated, arrays: dict[str, list[Expression]]
) -> Iterator[Expression]:
    """Add a scalar for every element of an array that is not a leaf."""
    notes = getattr(array, "notes", ()) or [""] * array.width
    for i, (note, value) in enumerate(zip(notes, _values(array, arrays), strict=True)):
        value = resolved(value, arrays)
        if not value.is_leaf:
            name = flat.unique(f"{array.name}_{identifier(note) or i}")
            flat.statements.append(Scalar(name, value, note))
            value = Expression("variable", value=name)
        yield value


def _values(
    array: Vector | LayerOutputs | Activated, arrays: dict[str, list[Expression]]
) -> Iterable[Expression]:
    if isinstance(array, Vector):
        return array.expressions
    inputs = arrays[array.source]
    if isinstance(array, Activated):
        return (activated(array.activation, z) for z in inputs)
    return (neuron(array.layer, k, inputs) for k in range(array.width))


def resolved(expression: Expression, arrays: dict[str, list[Expression]]) -> Expression:
    """The expression with scalars in place of the elements of arrays."""
    if expression.operator == "element":
        name, i = expression.value
        return arrays[name][i]
    if expression.is_leaf:
        return expression
    arguments = tuple(resolved(one, arrays) for one in expression.arguments)
    return replace(expression, arguments=arguments)


def neuron(layer: Layer, k: int, a: Sequence[Expression]) -> Expression:
    """z_k = b + sum_i a_i (w_i + sum_j>=i p_ij a_j), p_ij the coefficients of the monomials."""
    if isinstance(layer, Reduced):
        return _linear(layer.W[k], layer.b[k], a) * _linear(layer.U[k], layer.c[k], a)
    if not isinstance(layer, Quadratic):
        return _linear(layer.W[k], layer.b[k], a)
    P, terms = monomials(layer)[k], []
    for i, (w, a_i) in enumerate(zip(layer.W[k], a, strict=True)):
        inner = [number(p) * a_j for p, a_j in zip(P[i, i:], a[i:], strict=True) if p != 0]
        if w != 0 or inner:
            factor = total(([number(w)] if w != 0 else []) + inner)
            terms.append(factor * a_i)
    return total([number(layer.b[k]), *terms])


def _linear(w: Array, b: float, a: Sequence[Expression]) -> Expression:
    terms = [number(w_i) * a_i for w_i, a_i in zip(w, a, strict=True) if w_i != 0]
    return total([number(b), *terms])


def monomials(layer: Quadratic) -> Array:
    """p_ijk = q_ii or 2 q_ij for i < j, and zero below the diagonal; shape (m, n, n)."""
    Q = layer.Q
    with np.errstate(over="ignore"):
        return np.triu(Q) + np.triu(Q, 1)


def by_pair(layer: Quadratic) -> Array:
    """The coefficients of the monomials a_i a_j, i <= j, shape (n(n+1)/2, m)."""
    pairs: Array = monomials(layer)[:, *np.triu_indices(layer.n_inputs)].T
    return pairs


def logistic(z: Expression) -> Expression:
    """1 / (1 + exp(-z)) for a leaf z, without overflow."""
    e = apply("exp", ZERO - apply("abs", z))
    return choose(apply("<", z, ZERO), e / (ONE + e), ONE / (ONE + e))


ACTIVATED: dict[str, Callable[[Expression], Expression]] = {
    "identity": lambda z: z,
    "logistic": logistic,
    "tanh": lambda z: apply("tanh", z),
    "relu": lambda z: choose(apply("<", z, ZERO), ZERO, z),
    "exponential": lambda z: apply("exp", z),
}


def activated(activation: str, z: Expression) -> Expression:
    """The activation of a leaf z."""
    return ACTIVATED[activation](z)
