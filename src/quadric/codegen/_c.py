"""C99 in floating point: one header without allocation, recursion or mutable global data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from quadric.codegen._proof import Proof
from quadric.codegen._spelling import (
    Spelling,
    c_like_condition,
    c_string,
    comment,
    shortest,
    shortest_float,
)
from quadric.core import Quadratic, Reduced


@dataclass(frozen=True)
class Real:
    """One of C's floating-point types: its name, the suffix of its functions, and its constants."""

    name: str
    suffix: str
    largest: str
    literal: Callable[[float], str]


DOUBLE = Real("double", "", "DBL_MAX", shortest)
FLOAT = Real("float", "f", "FLT_MAX", lambda value: shortest_float(value) + "f")

CHECKS = """\
#if defined(__FAST_MATH__) || FLT_RADIX != 2 || FLT_MANT_DIG != 24 || DBL_MANT_DIG != 53
#error "this code needs IEEE 754 arithmetic: compile it without -ffast-math"
#endif
#if FLT_EVAL_METHOD != 0
#error "this code needs arithmetic without excess precision, for example -mfpmath=sse"
#endif
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#endif
"""


def leaf(one: Expression) -> str:
    """The text of a leaf; columns are elements of `x`, and those of text elements of `text`."""
    if one.operator == "element":
        return f"{one.value[0]}[{one.value[1]}]"
    forms = {"variable": "{}", "text column": "text[{}]"}
    return forms.get(one.operator, "x[{}]").format(one.value)


def spelling(real: Real, name: str) -> Spelling:
    """How C writes expressions of a floating-point type."""
    functions = {"exp": "exp", "log": "log", "tanh": "tanh", "abs": "fabs"}
    f = real.suffix
    return Spelling(
        calls={
            **{operator: f"{function}{f}({{0}})" for operator, function in functions.items()},
            "same": f"{name}_same({{0}}, {{1}})",
            "missing": "{0} != {0}",
            "infinite": f"fabs{f}({{0}}) > {real.largest}",
            "missing text": "{0} == NULL",
            "power": f"pow{f}({{0}}, {{1}})",
            "largest": f"fmax{f}({{0}}, {{1}})",
        },
        leaf=leaf,
        number=lambda value: f"({real.name})NAN" if value != value else real.literal(value),
        string=c_string,
        condition=c_like_condition,
    )


@dataclass(frozen=True)
class Writer:
    """Writes statements and functions for one model in one floating-point type."""

    description: Description
    real: Real
    name: str

    @property
    def spelling(self) -> Spelling:
        return spelling(self.real, self.name)

    @property
    def has_text(self) -> bool:
        return any(column.kind == "text" for column in self.description.program.columns)

    @property
    def parameters(self) -> str:
        """The parameters that hold a row."""
        n = len(self.description.program.columns)
        text = f", const char *const text[{n}]" if self.has_text else ""
        return f"const {self.real.name} x[{n}]{text}"

    @property
    def row(self) -> str:
        """The arguments that hold a row."""
        return "x, text" if self.has_text else "x"

    def statement(self, one: Statement) -> list[str]:
        """The lines of a statement."""
        lines: list[str] = STATEMENTS[type(one)](self, one)
        return lines

    def function(self, returns: str, name: str, arguments: str, body: Sequence[str]) -> str:
        inside = "".join(f"  {line}\n" for line in body)
        head = f"{self.name.upper()}_API {returns}{self.name}_{name}({arguments})"
        return f"\n{head} {{\n{inside}}}\n"

    def array(self, name: str, values: Array) -> str:
        """A constant array with one or two dimensions."""
        return constant_array(self.real.name, name, values, self.real.literal)

    def _scalar(self, one: Scalar) -> list[str]:
        note = f" /* {comment(one.note)} */" if one.note else ""
        lines = self.spelling.lines(one.expression)
        lines[0] = f"const {self.real.name} {one.name} = {lines[0]}"
        return [*lines[:-1], f"{lines[-1]};{note}"]

    def _vector(self, one: Vector) -> list[str]:
        notes = one.notes or [""] * one.width
        entries = [
            f"  {self.spelling.write(value)},{f' /* {comment(note)} */' if note else ''}"
            for value, note in zip(one.expressions, notes, strict=True)
        ]
        return [f"const {self.real.name} {one.name}[{one.width}] = {{", *entries, "};"]

    def _layer(self, one: LayerOutputs) -> list[str]:
        n, m, layer = one.layer.n_inputs, one.width, one.layer
        declared = one.name != self.description.program.scores
        lines = [f"{self.real.name} {one.name}[{m}];"] if declared else []
        if isinstance(layer, Quadratic):
            inside = _quadratic(self, layer, one.name, one.source, n, m)
        else:
            inside = _linear(self, layer, one.name, one.source, n, m)
        if isinstance(layer, Reduced):
            second = _linear(self, Linearly(layer.U, layer.c), "second", one.source, n, m)
            inside += [f"{self.real.name} second[{m}];", "{", *map("  {}".format, second), "}"]
            inside.append(f"for (int k = 0; k < {m}; k++) {one.name}[k] *= second[k];")
        return [*lines, "{", *map("  {}".format, inside), "}"]

    def _activated(self, one: Activated) -> list[str]:
        value = activated(one.activation, Expression("element", value=(one.source, "k")))
        loop = f"for (int k = 0; k < {one.width}; k++)"
        return [
            f"{self.real.name} {one.name}[{one.width}];",
            f"{loop} {one.name}[k] = {self.spelling.write(value)};",
        ]


@dataclass(frozen=True)
class Linearly:
    """The second factor of a reduced layer as a linear layer."""

    W: Array
    b: Array


def constant_array(kind: str, name: str, values: Array, literal: Callable[[Any], str]) -> str:
    """`static const kind name[...] = {...};`, a line for each row."""
    shape = "".join(f"[{size}]" for size in values.shape)
    if values.ndim == 1:
        return (
            f"static const {kind} {name}{shape} = {{{', '.join(map(literal, values.tolist()))}}};"
        )
    rows = ",\n    ".join(f"{{{', '.join(map(literal, row))}}}" for row in values.tolist())
    return f"static const {kind} {name}{shape} = {{\n    {rows}}};"


def _linear(writer: Writer, layer: Any, z: str, a: str, n: int, m: int) -> list[str]:
    """z = b + W a, one input after another."""
    each = f"for (int k = 0; k < {m}; k++)"
    return [
        writer.array("W", layer.W.T),
        writer.array("b", layer.b),
        f"{each} {z}[k] = b[k];",
        f"for (int i = 0; i < {n}; i++) {{",
        f"  {each} {z}[k] += W[i][k] * {a}[i];",
        "}",
    ]


def _quadratic(writer: Writer, layer: Quadratic, z: str, a: str, n: int, m: int) -> list[str]:
    """z = b + sum_i a_i (w_i + sum_j>=i p_ij a_j); the rows of P are the pairs i <= j."""
    each = f"for (int k = 0; k < {m}; k++)"
    return [
        writer.array("W", layer.W.T),
        writer.array("b", layer.b),
        writer.array("P", by_pair(layer)),
        f"{each} {z}[k] = b[k];",
        f"for (int i = 0, pair = 0; i < {n}; i++) {{",
        f"  {writer.real.name} factor[{m}];",
        f"  {each} factor[k] = W[i][k];",
        f"  for (int j = i; j < {n}; j++, pair++) {{",
        f"    {each} factor[k] += P[pair][k] * {a}[j];",
        "  }",
        f"  {each} {z}[k] += factor[k] * {a}[i];",
        "}",
    ]


STATEMENTS: dict[type[Any], Callable[[Any, Any], list[str]]] = {
    Scalar: Writer._scalar,
    Vector: Writer._vector,
    LayerOutputs: Writer._layer,
    Activated: Writer._activated,
}


def write_c(description: Description, name: str, real: Real, proof: Proof | None) -> str:
    """The text of a header with `scores`, `label`, `probabilities` or `values`, and `proven`."""
    writer = Writer(description, real, name)
    return file_around(
        description,
        name,
        proof,
        CHECKS,
        has_text=writer.has_text,
        functions=_functions(writer) + (_proven(writer, proof) if proof is not None else ""),
    )


def file_around(
    description: Description,
    name: str,
    proof: Proof | None,
    checks: str,
    *,
    has_text: bool,
    functions: str,
) -> str:
    """The comment, the guards, and what is common to all C files, around the functions."""
    guard = f"{name.upper()}_H"
    heading = [*description.heading(), *(proof.heading(description) if proof is not None else [])]
    text = "/*\n" + "\n".join(heading) + "\n*/\n"
    text += f"#ifndef {guard}\n#define {guard}\n\n#include <float.h>\n#include <math.h>\n"
    text += "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n"
    text += f"{checks}\n/* Functions are local to the file that includes this one. For others, "
    text += f"define {name.upper()}_API as nothing. */\n"
    text += f"#ifndef {name.upper()}_API\n#define {name.upper()}_API static inline\n#endif\n\n"
    n, labels = len(description.program.columns), description.labels
    text += f"enum {{ {name.upper()}_INPUTS = {n}, {name.upper()}_SCORES = "
    text += f"{description.view.network.n_outputs}"
    if description.has_label or description.view.is_multilabel:
        text += f", {name.upper()}_CLASSES = {len(labels)}"
    text += " };\n"
    if has_text:
        text += (
            f"\nstatic inline int {name}_same(const char *a, const char *b) {{\n"
            "  return a != NULL && strcmp(a, b) == 0;\n}\n"
        )
    if description.has_label or description.view.is_multilabel:
        strings = ",\n    ".join(c_string(str(label)) for label in labels)
        text += (
            f"\n/* The name of a class, for a label from 0 on. */\n"
            f"{name.upper()}_API const char *{name}_class(int label) {{\n"
            f"  static const char *const names[{len(labels)}] = {{\n    {strings}}};\n"
            f"  return label < 0 || label >= {len(labels)} ? NULL : names[label];\n}}\n"
        )
    return f"{text}{functions}\n#endif\n"


def _functions(writer: Writer) -> str:
    description, real, row = writer.description, writer.real, writer.row
    statements, required, z = description.score_statements()
    K = len(z)
    body = [line for one in statements for line in writer.statement(one)]
    if description.is_small:
        body += [f"z[{k}] = {writer.spelling.write(one)};" for k, one in enumerate(z)]
    body += _check_numbers(writer, required, K)
    text = "\n/* The scores z; returns -1 if an input is missing, infinite or unknown, else 0. */"
    text += writer.function("int ", "scores", f"{writer.parameters}, {real.name} z[{K}]", body)
    begin = [f"{real.name} z[{K}];", f"if ({writer.name}_scores({row}, z) != 0) return -1;"]
    if description.has_label:
        text += "\n/* The index of the predicted class, or -1 as above. */"
        text += writer.function("int ", "label", writer.parameters, [*begin, *choice(description)])
    elif description.view.is_multilabel:
        text += "\n/* 0 or 1 for every class; returns -1 as above, else 0. */"
        loop = f"for (int k = 0; k < {K}; k++) labels[k] = z[k] > 0;"
        parameters = f"{writer.parameters}, int labels[{K}]"
        text += writer.function("int ", "labels", parameters, [*begin, loop, "return 0;"])
    program = Program([])
    elements = [Expression("element", value=("z", k)) for k in range(K)]
    found = description.answers(elements, program)
    return text + _answers(writer, program, found, begin)


def choice(description: Description) -> list[str]:
    """The lines that return the index of the class for the scores z."""
    K = description.view.network.n_outputs
    if len(description.labels) == 1:
        return ["return 0;"]
    if K == 1:
        return ["return z[0] > 0;"]
    return [
        "int label = 0;",
        f"for (int k = 1; k < {K}; k++) {{",
        "  if (z[k] > z[label]) label = k;",
        "}",
        "return label;",
    ]


def _answers(
    writer: Writer, program: Program, found: Sequence[Expression], begin: Sequence[str]
) -> str:
    kind, what = ("probabilities", "The probability of each class")
    if not writer.description.has_probabilities:
        kind, what = "values", "The outputs"
    lines = [*begin, *(line for one in program.statements for line in writer.statement(one))]
    lines += [f"p[{k}] = {writer.spelling.write(one)};" for k, one in enumerate(found)]
    parameters = f"{writer.parameters}, {writer.real.name} p[{len(found)}]"
    text = f"\n/* {what}; returns -1 as above, else 0. */"
    return text + writer.function("int ", kind, parameters, [*lines, "return 0;"])


def _check_numbers(writer: Writer, required: Sequence[Expression], K: int) -> list[str]:
    """Return -1 unless all required numbers and all scores are finite."""
    lines, fabs = [], f"fabs{writer.real.suffix}"
    sizes = {
        one.name: one.width
        for one in writer.description.program.statements
        if isinstance(one, Vector)
    }
    checked = [Expression("array", value="z"), *required]
    for one in checked:
        value, loop = writer.spelling.write(one), ""
        if one.operator == "array":
            size = sizes.get(one.value, K)
            value, loop = f"{one.value}[i]", f"for (int i = 0; i < {size}; i++) "
        lines.append(f"{loop}if (!({fabs}({value}) <= {writer.real.largest})) return -1;")
    return [*lines, "return 0;"]


def _proven(writer: Writer, proof: Proof) -> str:
    """A function that says whether a label is proven to be that of the model."""
    up = replace(writer.real, literal=partial(_rounded_up, writer.real))
    lines = [f"{writer.real.name} z[{writer.description.view.network.n_outputs}];"]
    for i, column in enumerate(proof.box):
        if column is not None:
            low, high = (writer.real.literal(bound) for bound in column.inside(writer.real.name))
            outside = f"x[{i}] < {low} || x[{i}] > {high}"
            lines.append(
                f"if ({outside}) return 0;"
                if column.missing
                else f"if (!(x[{i}] >= {low} && x[{i}] <= {high})) return 0;"
            )
            if column.values is not None:
                lines += _listed(writer, i, column.values)
    lines.append(f"if ({writer.name}_scores({writer.row}, z) != 0) return 0;")
    K = writer.description.view.network.n_outputs
    if K == 1:
        bound = up.literal(float(proof.epsilon[0, 1]))
        lines.append(f"return fabs{writer.real.suffix}(z[0]) > {bound};")
    else:
        lines += [
            Writer(writer.description, up, writer.name).array("epsilon", proof.epsilon),
            *choice(writer.description)[:-1],
            f"for (int k = 0; k < {K}; k++) {{",
            "  if (k != label && !(z[label] - z[k] > epsilon[label][k])) return 0;",
            "}",
            "return 1;",
        ]
    text = "\n/* 1 if the label is proven to be the model's: in the box, and further apart than\n"
    text += "   epsilon. */"
    return text + writer.function("int ", "proven", writer.parameters, lines)


def _listed(writer: Writer, i: int, values: Sequence[float]) -> list[str]:
    tests = " && ".join(f"x[{i}] != {writer.real.literal(value)}" for value in values)
    return [f"if (x[{i}] == x[{i}] && {tests}) return 0;"]


def _rounded_up(real: Real, value: float) -> str:
    """A constant that is a little larger than the value."""
    return real.literal(value * (1 + 1e-6))
