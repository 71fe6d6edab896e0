"""A JavaScript module with JSDoc types, without dependencies."""

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
    by_pair,
)
from quadric.codegen._spelling import (
    Spelling,
    c_like_condition,
    comment,
    javascript_string,
    label_literal,
    shortest,
)
from quadric.core import Layer, Quadratic, Reduced


def _leaf(one: Expression) -> str:
    if one.operator == "element":
        return f"{one.value[0]}[{one.value[1]}]"
    forms = {"variable": "{}", "array": "...{}"}
    return forms.get(one.operator, "x[{}]").format(one.value)


def _number(value: float) -> str:
    return "NaN" if value != value else shortest(value)


SPELLING = Spelling(
    calls={
        "same": "{0} === {1}",
        "missing": "Number.isNaN({0})",
        "infinite": "Math.abs({0}) === Infinity",
        "missing text": "{0} === null",
        "exp": "Math.exp({0})",
        "log": "Math.log({0})",
        "tanh": "Math.tanh({0})",
        "power": "Math.pow({0}, {1})",
        "abs": "Math.abs({0})",
        "largest": "Math.max({0}, {1})",
    },
    leaf=_leaf,
    number=_number,
    string=javascript_string,
    condition=c_like_condition,
    equal="===",
)

# missing values become NaN, and truth values numbers
READ = """
function read(v) {
  return v === null || v === undefined ? NaN : typeof v === "boolean" ? Number(v) : v;
}
"""
# z = b + W a, with the weights of input i for all neurons one after another
LINEAR = """
function linear(W, b, a) {
  const z = b.slice();
  for (let i = 0, p = 0; i < a.length; i++) {
    for (let k = 0; k < z.length; k++) z[k] += W[p++] * a[i];
  }
  return z;
}
"""
PRODUCT = """
function product(v1, v2) {
  return v1.map((v, k) => v * v2[k]);
}
"""
# P has the coefficients of a_i a_j for all neurons, for the pairs i <= j
QUADRATIC = """
function quadratic(P, W, b, a) {
  const z = b.slice();
  const factors = new Float64Array(z.length);
  for (let i = 0, p = 0; i < a.length; i++) {
    for (let k = 0; k < z.length; k++) factors[k] = W[i * z.length + k];
    for (let j = i; j < a.length; j++) {
      for (let k = 0; k < z.length; k++) factors[k] += P[p++] * a[j];
    }
    for (let k = 0; k < z.length; k++) z[k] += factors[k] * a[i];
  }
  return z;
}
"""


def write_javascript(description: Description) -> str:
    """The text of a module with `scores`, `label`, `probabilities` or `values`."""
    statements, required, z = description.score_statements()
    used = [one.layer for one in statements if isinstance(one, LayerOutputs)]
    columns = description.program.columns
    inputs = ", ".join(javascript_string(column.name) for column in columns)
    text = "/*\n" + "\n".join(description.heading()) + "\n*/\n\n"
    text += f"/** The names of the inputs, in order. */\nexport const INPUTS = [{inputs}];\n"
    if description.has_label or description.view.is_multilabel:
        words = ("true", "false")
        labels = [label_literal(one, javascript_string, words) for one in description.labels]
        text += "/** The classes, in the order of scores and probabilities. */\n"
        text += f"export const CLASSES = [{', '.join(labels)}];\n"
    for statement in statements:
        if isinstance(statement, LayerOutputs):
            text += _constants(statement.name, statement.layer)
    text += READ
    if any(not isinstance(layer, Quadratic) for layer in used):
        text += LINEAR
    if any(isinstance(layer, Quadratic) for layer in used):
        text += QUADRATIC
    if any(isinstance(layer, Reduced) for layer in used):
        text += PRODUCT
    return text + _functions(description, statements, required, z)


def _constants(name: str, layer: Layer) -> str:
    arrays = {"W": layer.W.T, "b": layer.b}
    if isinstance(layer, Reduced):
        arrays |= {"U": layer.U.T, "c": layer.c}
    if isinstance(layer, Quadratic):
        arrays["P"] = by_pair(layer)
    return "".join(
        f"const {name}_{field} = new Float64Array([{_numbers(array)}]);\n"
        for field, array in arrays.items()
    )


def _numbers(array: Array) -> str:
    return ", ".join(map(shortest, array.ravel().tolist()))


def _scalar(one: Scalar) -> str:
    note = f" // {comment(one.note)}" if one.note else ""
    return f"const {one.name} = " + "\n    ".join(SPELLING.lines(one.expression)) + f";{note}"


def _vector(one: Vector) -> str:
    return f"const {one.name} = [{', '.join(map(SPELLING.write, one.expressions))}];"


def _layer(one: LayerOutputs) -> str:
    name, source = one.name, one.source
    if isinstance(one.layer, Quadratic):
        return f"const {name} = quadratic({name}_P, {name}_W, {name}_b, {source});"
    first = f"linear({name}_W, {name}_b, {source})"
    if isinstance(one.layer, Reduced):
        second = f"linear({name}_U, {name}_c, {source})"
        return f"const {name} = product({first}, {second});"
    return f"const {name} = {first};"


def _activated(one: Activated) -> str:
    inside = SPELLING.write(activated(one.activation, Expression("variable", value="v")))
    return f"const {one.name} = {one.source}.map((v) => {inside});"


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
    n = len(description.program.columns)
    texts = [i for i, c in enumerate(description.program.columns) if c.kind == "text"]
    body = [
        f"if (x.length !== {n}) throw new RangeError(`expected {n} inputs, got ${{x.length}}`);",
        "x = Array.from(x, read);",
    ]
    body += [f"if (Number.isNaN(x[{i}])) x[{i}] = null;" for i in texts]
    body += [STATEMENTS[type(one)](one) for one in statements]
    if description.is_small:
        body.append(f"const z = [{', '.join(map(SPELLING.write, z))}];")
    body += [
        f"if (![{', '.join(map(SPELLING.write, required))}, ...z].every(Number.isFinite)) {{",
        '  throw new RangeError("an input is missing, infinite or unknown");',
        "}",
        "return Array.from(z);",
    ]
    what = "the classes" if description.has_label else "the outputs, before their activation,"
    text = _function("scores", f"The scores of {what} for the inputs x.", "number[]", body)
    if description.has_label:
        choice = "z.indexOf(Math.max(...z))" if len(z) > 1 else "Number(z[0] > 0)"
        choice = choice if len(description.labels) > 1 else "0"
        body = ["const z = scores(x);", f"return CLASSES[{choice}];"]
        kinds = {bool: "boolean", str: "string"}
        kind = kinds.get(type(description.labels[0]), "number")
        text += _function("label", "The class for the inputs x.", kind, body)
    elif description.view.is_multilabel:
        body = ["return scores(x).map((v) => Number(v > 0));"]
        text += _function("label", "0 or 1 for each of the CLASSES.", "number[]", body)
    elements = [Expression("element", value=("z", k)) for k in range(len(z))]
    program = Program([])
    found = description.answers(elements, program)
    body = ["const z = scores(x);", *[STATEMENTS[type(one)](one) for one in program.statements]]
    body.append(f"return [{', '.join(map(SPELLING.write, found))}];")
    if description.has_probabilities:
        return text + _function("probabilities", "The probability of each class.", "number[]", body)
    return text + _function("values", "The outputs for the inputs x.", "number[]", body)


def _function(name: str, summary: str, returns: str, body: Sequence[str]) -> str:
    inside = "".join(f"  {line}\n" for line in body)
    documented = (
        f"/**\n * {summary}\n * @param {{ArrayLike<number|boolean|string|null>}} x\n"
        f" * @returns {{{returns}}}\n */\n"
    )
    return f"\n{documented}export function {name}(x) {{\n{inside}}}\n"
