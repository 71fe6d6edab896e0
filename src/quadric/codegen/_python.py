"""Plain Python, without dependencies."""

from collections.abc import Callable, Sequence
from typing import Any

from quadric.checks import Array
from quadric.codegen._description import Description
from quadric.codegen._expressions import (
    Activated,
    Expression,
    LayerOutputs,
    Program,
    Scalar,
    Statement,
    Vector,
    activated,
    monomials,
)
from quadric.codegen._spelling import (
    Spelling,
    comment,
    label_literal,
    python_condition,
    python_string,
    shortest,
)
from quadric.core import Layer, Quadratic, Reduced


def _leaf(one: Expression) -> str:
    if one.operator == "element":
        return f"{one.value[0]}[{one.value[1]}]"
    forms = {"variable": "{}", "array": "*{}"}
    return forms.get(one.operator, "x[{}]").format(one.value)


def _number(value: float) -> str:
    return "nan" if value != value else shortest(value)


SPELLING = Spelling(
    calls={
        "same": "{0} == {1}",
        "missing": "{0} != {0}",
        "infinite": "abs({0}) >= 1e999",
        "missing text": "{0} is None",
        "exp": "exp({0})",
        "log": "log({0})",
        "tanh": "tanh({0})",
        "power": "pow({0}, {1})",
        "abs": "abs({0})",
        "largest": "max({0}, {1})",
    },
    leaf=_leaf,
    number=_number,
    string=python_string,
    condition=python_condition,
)

# z = b + W a, with a list of weights for each neuron
LINEAR = """
def _linear(W, b, a):
    return [b_k + sum(map(mul, w, a)) for w, b_k in zip(W, b)]
"""
# P_k[i] are the coefficients of a_i a_j for j >= i
QUADRATIC = """
def _quadratic(P, W, b, a):
    tails = [a[i:] for i in range(len(a))]
    return [
        b_k + sum(a_i * (w_i + sum(map(mul, p, tail)))
                  for a_i, w_i, p, tail in zip(a, w, P_k, tails))
        for P_k, w, b_k in zip(P, W, b)
    ]
"""


def write_python(description: Description) -> str:
    """The text of a module with `scores`, `label`, `probabilities` or `values`."""
    statements, required, z = description.score_statements()
    used = [one.layer for one in statements if isinstance(one, LayerOutputs)]
    lines = ['"""', *description.heading(), '"""', "", "from math import exp, log, nan, tanh"]
    lines += ["from operator import mul"] if used else []
    lines += ["", f"INPUTS = {_tuple(c.name for c in description.program.columns)}"]
    if description.has_label or description.view.is_multilabel:
        labels = [label_literal(v, python_string, ("True", "False")) for v in description.labels]
        lines.append(f"CLASSES = ({', '.join(labels)},)")
    for statement in statements:
        if isinstance(statement, LayerOutputs):
            lines += _constants(statement.name, statement.layer)
    text = "\n".join(lines) + "\n"
    if any(not isinstance(layer, Quadratic) for layer in used):
        text += f"\n{LINEAR}"
    if any(isinstance(layer, Quadratic) for layer in used):
        text += f"\n{QUADRATIC}"
    return text + _functions(description, statements, required, z)


def _tuple(names: Any) -> str:
    return "(" + "".join(f"{python_string(name)}, " for name in names).strip() + ")"


def _constants(name: str, layer: Layer) -> list[str]:
    lines = [f"{name}_W = {_rows(layer.W)}", f"{name}_b = {_row(layer.b)}"]
    if isinstance(layer, Reduced):
        lines += [f"{name}_U = {_rows(layer.U)}", f"{name}_c = {_row(layer.c)}"]
    if isinstance(layer, Quadratic):
        triangles = (
            ", ".join(_row(P[i, i:]) for i in range(layer.n_inputs)) for P in monomials(layer)
        )
        lines.append(f"{name}_P = [\n" + "".join(f"    [{rows}],\n" for rows in triangles) + "]")
    return lines


def _row(values: Array) -> str:
    return "[" + ", ".join(map(shortest, values.tolist())) + "]"


def _rows(matrix: Array) -> str:
    return "[\n" + "".join(f"    {_row(row)},\n" for row in matrix) + "]"


def _scalar(one: Scalar) -> str:
    note = f"  # {comment(one.note)}" if one.note else ""
    lines = SPELLING.lines(one.expression)
    if len(lines) == 1:
        return f"{one.name} = {lines[0]}{note}"
    return "\n        ".join([f"{one.name} = ({note}", *lines]) + "\n    )"


def _vector(one: Vector) -> str:
    return f"{one.name} = [{', '.join(map(SPELLING.write, one.expressions))}]"


def _layer(one: LayerOutputs) -> str:
    name, source = one.name, one.source
    if isinstance(one.layer, Quadratic):
        return f"{name} = _quadratic({name}_P, {name}_W, {name}_b, {source})"
    first = f"_linear({name}_W, {name}_b, {source})"
    if isinstance(one.layer, Reduced):
        return f"{name} = list(map(mul, {first}, _linear({name}_U, {name}_c, {source})))"
    return f"{name} = {first}"


def _activated(one: Activated) -> str:
    inside = SPELLING.write(activated(one.activation, Expression("variable", value="z")))
    return f"{one.name} = [{inside} for z in {one.source}]"


STATEMENTS: dict[type[Any], Callable[[Any], str]] = {
    Scalar: _scalar,
    Vector: _vector,
    LayerOutputs: _layer,
    Activated: _activated,
}


def _functions(
    description: Description,
    statements: Sequence[Statement],
    required: Sequence[Expression],
    z: Sequence[Expression],
) -> str:
    n, columns = len(description.program.columns), description.program.columns
    texts = [i for i, column in enumerate(columns) if column.kind == "text"]
    body = [
        f"if len(x) != {n}:",
        f'    raise ValueError(f"expected {n} inputs, got {{len(x)}}")',
        "x = [nan if v is None else v for v in x]",
    ]
    body += [f"x[{i}] = None if x[{i}] != x[{i}] else x[{i}]" for i in texts]
    body += [STATEMENTS[type(one)](one) for one in statements]
    body += [f"needed = [{', '.join(map(SPELLING.write, required))}]"] if required else []
    body += [f"z = [{', '.join(map(SPELLING.write, z))}]"] if description.is_small else []
    body += [
        f"if not all(abs(v) < 1e999 for v in {'needed + z' if required else 'z'}):",
        '    raise ValueError("an input is missing, infinite or unknown")',
        "return z",
    ]
    what = "the classes" if description.has_label else "the outputs, before their activation,"
    text = _function("scores", f"Return the scores of {what} for the inputs x.", body)
    if description.has_label:
        choice = "z.index(max(z))" if len(z) > 1 else "int(z[0] > 0)"
        choice = choice if len(description.labels) > 1 else "0"
        body = ["z = scores(x)", f"return CLASSES[{choice}]"]
        text += _function("label", "Return the class for the inputs x.", body)
    elif description.view.is_multilabel:
        body = ["return [int(v > 0) for v in scores(x)]"]
        text += _function("label", "Return 0 or 1 for each of the CLASSES.", body)
    elements = [Expression("element", value=("z", k)) for k in range(len(z))]
    program = Program([])
    found = description.answers(elements, program)
    body = ["z = scores(x)", *[STATEMENTS[type(one)](one) for one in program.statements]]
    body.append(f"return [{', '.join(map(SPELLING.write, found))}]")
    if description.has_probabilities:
        return text + _function("probabilities", "Return the probability of each class.", body)
    return text + _function("values", "Return the outputs for the inputs x.", body)


def _function(name: str, summary: str, body: Sequence[str]) -> str:
    inside = "".join(f"    {line}\n" for line in body)
    return f'\n\ndef {name}(x):\n    """{summary}"""\n{inside}'
