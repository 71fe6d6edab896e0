"""Translation of a fitted model: its operations, layers and outputs as statements.

The operations are those of the table of supported steps, as in `onnx`. A column is one expression,
which is a leaf or text; None stands for a column that no step uses.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.codegen._expressions import (
    NAN,
    ONE,
    ZERO,
    Activated,
    Column,
    Expression,
    LayerOutputs,
    Program,
    Vector,
    activated,
    apply,
    cases,
    choose,
    identifier,
    logistic,
    number,
    total,
)
from quadric.core import Linear
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
    UnknownStepError,
    is_missing,
    kind_of_values,
    kinds_before,
    kinds_of,
    translated,
    width_after,
)

Columns = list[Expression | None]
# results of these operations can be finite for an infinite input, which the model refuses
HIDES_INFINITY = {Bin, Clip, Indicate, OneHot, Ordinal}
MOST_EXACT = 2.0**53  # integers above are not exact in float64
MOST_CATEGORIES = 500  # nested conditions exceed the limits of compilers and databases


def program_of(view: ModelView) -> Program:
    """The program that computes the scores of a model, the `z` of its last layer."""
    given = view.input_names
    names = [f"x{i}" for i in range(view.n_inputs)] if given is None else list(map(str, given))
    try:
        steps = view.operations
    except UnknownStepError as error:
        raise TypeError(f"step {error.path!r} cannot be exported: {error.reason}.") from None
    every = [operation for inside in steps.values() for operation in inside]
    kinds = kinds_before(every, ["float"] * width_after(every, len(names)))
    shown = {"string": "text", "float": "number", "int64": "number", None: None}
    program = Program([Column(name, shown[k]) for name, k in zip(names, kinds, strict=True)])
    columns: Columns = []
    for i, column in enumerate(program.columns):
        leaf = Expression("text column" if column.kind == "text" else "column", value=i)
        columns.append(leaf if column.kind else None)
        if column.kind == "number" and kinds_of(every) & HIDES_INFINITY:
            program.required.append(_finite_or_missing(leaf))
    first, rest = dict(list(steps.items())[:1]), dict(list(steps.items())[1:])
    program.after_first_step = translated(first, columns, partial(translate, program))
    columns = translated(rest, program.after_first_step, partial(translate, program))
    u = Vector(program.unique("u"), tuple(_numbers(columns)), _notes(view))
    program.statements.append(u)
    program.required.append(Expression("array", value=u.name))
    _add_network(program, view, u.name)
    return program


def _finite_or_missing(x: Expression) -> Expression:
    return choose(apply("infinite", x), NAN, ZERO)


def _notes(view: ModelView) -> tuple[str, ...]:
    """The names of the network's inputs, if the steps keep the columns apart."""
    names, n = view.input_names, view.network.n_inputs
    known = {Affine, Clip, Power, Impute}
    if all(
        type(one) in known and not (isinstance(one, Affine) and one.A.ndim == 2)
        for inside in view.operations.values()
        for one in inside
    ):
        return tuple(f"x{i}" for i in range(n)) if names is None else tuple(map(str, names))
    return tuple(f"{i}" for i in range(n))


def _add_network(program: Program, view: ModelView, source: str) -> None:
    network = view.network
    last = len(network.layers) - 1
    for l, (layer, activation) in enumerate(zip(network.layers, network.activations, strict=True)):
        name = program.unique("z" if l == last else f"z{l + 1}")
        notes = _score_names(view) if l == last else ()
        program.statements.append(LayerOutputs(name, layer, source, notes))
        source = name
        if l < last and activation != "identity":
            source = program.unique(f"a{l + 1}")
            program.statements.append(Activated(source, activation, name, layer.n_outputs))
    program.scores = source


def _score_names(view: ModelView) -> tuple[str, ...]:
    m = view.network.n_outputs
    if view.classes is not None and m == len(view.classes):
        return tuple(map(str, view.classes.tolist()))
    return tuple(map(str, range(m))) if m > 1 else ("score",)


# ------------------------------------------------------------------- operations


def translate(program: Program, columns: Columns, operation: Operation) -> Columns:
    """Add the statements of one operation, and return the columns after it."""
    return TRANSLATIONS[type(operation)](program, operation, columns)


def _numbers(columns: Columns) -> list[Expression]:
    expect(
        all(one is not None and not one.is_text for one in columns),
        TypeError("expected numbers but got text or categories. Encode them first."),
    )
    return [one for one in columns if one is not None]


def _affine(program: Program, operation: Affine, columns: Columns) -> Columns:
    moved = [
        x if c == 0 else x - number(c)
        for x, c in zip(_numbers(columns), operation.center, strict=True)
    ]
    if operation.A.ndim == 2:
        source = program.unique("centered")
        program.statements.append(Vector(source, tuple(moved)))
        name = program.unique("mixed")
        layer = Linear(operation.A, operation.shift)
        program.statements.append(LayerOutputs(name, layer, source))
        return list(program.elements(name, len(operation.A)))
    scaled = [x if a == 1 else x * number(a) for x, a in zip(moved, operation.A, strict=True)]
    return [
        program.bind(x if t == 0 else x + number(t), _wish(program, before))
        for x, t, before in zip(scaled, operation.shift, columns, strict=True)
    ]


def _wish(program: Program, before: Expression | None) -> str:
    """A name for what is computed from a column."""
    if before is not None and before.operator == "column":
        return "v_" + (identifier(program.columns[before.value].name) or str(before.value))
    return before.value if before is not None and before.operator == "variable" else "v"


def _clip(program: Program, operation: Clip, columns: Columns) -> Columns:
    low, high = number(operation.low), number(operation.high)
    return [
        program.bind(choose(apply("<", x, low), low, choose(apply("<", high, x), high, x)))
        for x in _numbers(columns)
    ]


def _bin(program: Program, operation: Bin, columns: Columns) -> Columns:
    found: Columns = []
    for x, edges in zip(_numbers(columns), operation.edges, strict=True):
        x = program.bind(x)
        program.required.append(x)
        reached = [
            choose(apply(">=", x, number(edge)), ONE, ZERO)
            for edge in _thresholds(edges, operation.dtype)
        ]
        found.append(program.bind(total([ZERO, *reached])))
    return found


def _thresholds(edges: Array, dtype: Any) -> list[float]:
    """The smallest numbers that are not below an edge after they have been rounded to `dtype`."""
    if dtype != np.float32:
        return [float(edge) for edge in edges]
    found = []
    for edge in edges:
        above = np.float32(edge)
        if float(above) < edge:
            above = np.nextafter(above, np.float32(np.inf))
        below = np.nextafter(above, np.float32(-np.inf))
        middle = (float(above) + float(below)) / 2
        found.append(middle if np.float32(middle) == above else float(np.nextafter(middle, np.inf)))
    return found


def _power(program: Program, operation: Power, columns: Columns) -> Columns:
    found: Columns = []
    for x, exponent in zip(_numbers(columns), operation.lambdas, strict=True):
        x = program.bind(x)
        if operation.method == "box-cox":
            found.append(program.bind(_box_cox(x, exponent)))
            continue
        negative = ZERO - _box_cox(ONE - x, 2 - exponent)
        positive = _box_cox(x + ONE, exponent)
        found.append(program.bind(choose(apply("<", x, ZERO), negative, positive)))
    return found


def _box_cox(x: Expression, exponent: float) -> Expression:
    """(x^lambda - 1) / lambda, or log x for lambda = 0."""
    if abs(exponent) < np.spacing(1.0):  # scikit-learn's threshold
        return apply("log", x)
    return (apply("power", x, number(exponent)) - ONE) / number(exponent)


def _beside(program: Program, operation: Beside, columns: Columns) -> Columns:
    return [
        column
        for branch in operation.branches
        for column in reduce(
            partial(translate, program), branch.operations, [columns[i] for i in branch.columns]
        )
    ]


def _select(program: Program, operation: Select, columns: Columns) -> Columns:
    return [columns[i] for i in operation.indices]


# ------------------------------------------------------- missing values and categories


def _used(x: Expression | None) -> Expression:
    assert x is not None  # because `kinds_before` marks every column that a step uses
    return x


def _impute(program: Program, operation: Impute, columns: Columns) -> Columns:
    filled: Columns = []
    for x, fill in zip(map(_used, columns), operation.fill, strict=True):
        if isinstance(fill, str) != x.is_text:
            raise TypeError("SimpleImputer fills a column with values of another kind.")
        value = Expression("string", value=str(fill)) if x.is_text else number(fill)
        filled.append(program.bind(choose(_is_missing(x, operation.missing), value, x)))
    return filled


def _indicate(program: Program, operation: Indicate, columns: Columns) -> Columns:
    return [
        program.bind(choose(_is_missing(_used(x), operation.missing), ONE, ZERO)) for x in columns
    ]


def _is_missing(x: Expression, missing: Any) -> Expression:
    if is_missing(missing):
        return apply("missing text" if x.is_text else "missing", x)
    if x.is_text:
        return apply("same", x, Expression("string", value=str(missing)))
    return apply("==", x, number(missing))


def _codes(
    program: Program, x: Expression, known: Categories, codes: Sequence[float], unknown: float
) -> Expression:
    """The code of the category of x, or `unknown`; NaN for both is an error of the model."""
    values = np.asarray(known.values)
    expect(
        sum(map(is_missing, values)) < 2,
        ValueError("an encoder has both None and NaN among its categories. Keep one of them."),
    )
    present = [value for value in values if not is_missing(value)]
    of_text = kind_of_values(values) == "string"
    expect(
        x.is_text == of_text and len({isinstance(value, str) for value in present}) < 2,
        TypeError("an encoder compares text with numbers. Give it columns of one kind."),
    )
    if not of_text:
        expect(
            all(float(value) == value and abs(value) <= MOST_EXACT for value in present),
            ValueError("an encoder has categories that are not exact in double precision."),
        )
    expect(
        len(values) <= MOST_CATEGORIES,
        ValueError(
            f"an encoder has {len(values):,} categories, but code can have {MOST_CATEGORIES:,}. "
            "Group rare ones with `max_categories`, or export to ONNX."
        ),
    )
    pairs = [(_is_missing(x, v), number(own)) for v, own in zip(values, codes, strict=True)]
    return program.bind(cases(pairs, number(unknown)), "code")


def _one_hot(program: Program, operation: OneHot, columns: Columns) -> Columns:
    found: Columns = []
    for x, known in zip(map(_used, columns), operation.columns, strict=True):
        # -1 is a category without an output column
        unknown = known.unknown if known.unknown is not None else np.nan
        code = _codes(program, x, known, [float(c) for c in known.codes], float(unknown))
        if known.unknown is None:
            program.required.append(code)
        found += [
            program.bind(choose(apply("==", code, number(j)), ONE, ZERO))
            for j in range(known.width)
        ]
    return found


def _ordinal(program: Program, operation: Ordinal, columns: Columns) -> Columns:
    return [
        _codes(
            program,
            x,
            known,
            [float(code) for code in known.codes],
            np.nan if known.unknown is None else float(known.unknown),
        )
        for x, known in zip(map(_used, columns), operation.columns, strict=True)
    ]


TRANSLATIONS: dict[type[Any], Callable[[Program, Any, Columns], Columns]] = {
    Affine: _affine,
    Beside: _beside,
    Bin: _bin,
    Clip: _clip,
    Impute: _impute,
    Indicate: _indicate,
    OneHot: _one_hot,
    Ordinal: _ordinal,
    Power: _power,
    Select: _select,
}


# ----------------------------------------------------------------- outputs


def probabilities(program: Program, view: ModelView, z: Sequence[Expression]) -> list[Expression]:
    """`predict_proba` from the scores, which are leaves; adds scalars to the program."""
    if view.is_multilabel:
        return [logistic(one) for one in z]
    if len(view.labels) == 1:
        return [ONE]
    if len(z) == 1:
        return [logistic(program.bind(ZERO - z[0], "minus")), logistic(z[0])]
    if view.network.activations[-1] == "logistic":  # one sigmoid per class, normalized
        z = [program.bind(_log_logistic(one), "log_p") for one in z]
    return softmax(program, z)


def _log_logistic(z: Expression) -> Expression:
    log = apply("log", ONE + apply("exp", ZERO - apply("abs", z)))
    return choose(apply("<", z, ZERO), z, ZERO) - log


def softmax(program: Program, z: Sequence[Expression]) -> list[Expression]:
    """exp(z_k) / sum_k exp(z_k), without overflow."""
    top = program.bind(apply("largest", *z), "top")
    e = [program.bind(apply("exp", one - top), "e") for one in z]
    scale = program.bind(total(e), "scale")
    return [one / scale for one in e]


def outputs(program: Program, view: ModelView, z: Sequence[Expression]) -> list[Expression]:
    """The values of a regressor or a Network from the scores."""
    last = view.network.activations[-1]
    return softmax(program, z) if last == "softmax" else [activated(last, one) for one in z]
