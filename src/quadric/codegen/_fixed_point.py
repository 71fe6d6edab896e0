"""C99 with integers only, for targets without a floating-point unit.

A number v is stored as V = v 2^shift in an int32_t, and products and sums are int64_t. Every
shift is chosen so that no integer can overflow for inputs in the box: stored numbers stay below
2^30, and sums, bounded by the absolute values of all terms, below 2^62. Inputs outside the box get
no label. Each statement returns the exact range of its value and a bound on its error, which come
from rounded inputs and constants and from shifts; products and sums of integers are exact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.codegen._c import choice, constant_array, file_around, leaf
from quadric.codegen._description import Description
from quadric.codegen._expressions import (
    Expression,
    LayerOutputs,
    Program,
    Scalar,
    Vector,
    by_pair,
    monomials,
)
from quadric.codegen._proof import Box, Interval, NotProvenError, Proof, prove
from quadric.codegen._spelling import c_string, comment
from quadric.codegen._translation import program_of
from quadric.core import Layer, Quadratic

STORED, SUMMED = 30, 62  # bits of the largest stored numbers and sums
FARTHEST = 60  # the largest shift
SLACK = 1.001  # for the rounding errors of the bounds
MISSING = -(2**31)
CHECKS = """\
#if (-1 >> 1) != -1
#error "this code needs arithmetic shifts"
#endif
"""


def bits(size: float) -> int:
    """The smallest k with size < 2^k."""
    return int(np.frexp(size * SLACK)[1]) if size > 0 else -FARTHEST


def fitting(size: float, most: int = STORED) -> int:
    """The largest shift for which numbers of this size stay below 2^most."""
    if most - bits(size) < -FARTHEST:
        raise NotProvenError("the numbers are too large for integers.")
    return min(FARTHEST, most - bits(size))


def quantized(values: Any, shift: int) -> tuple[Array, Array]:
    """The integers nearest to values 2^shift, and the errors of the values."""
    integers = np.rint(np.ldexp(np.asarray(values, dtype=np.float64), shift))
    return integers, np.abs(np.ldexp(integers, -shift) - values)


@dataclass(frozen=True)
class Fixed:
    """An integer expression: its text, its shift, and the exact values and errors."""

    text: str
    shift: int
    values: Interval


@dataclass
class Integers:
    """Translates the statements of a program, and collects their bounds."""

    name: str
    box: Box
    lines: list[str]
    scalars: dict[str, Fixed]
    arrays: dict[str, tuple[int, list[Interval]]]

    @classmethod
    def of(cls, program: Program, name: str, box: Box) -> "Integers":
        """The lines of all statements."""
        made = cls(name, box, [], {}, {})
        for one in program.statements:
            if type(one) not in STATEMENTS:
                raise NotProvenError("activations of hidden layers need floating point.")
            STATEMENTS[type(one)](made, one)
        return made

    def input_shift(self, i: int) -> int:
        """The shift of an input."""
        column = self.box[i]
        assert column is not None
        size = max(abs(column.low), abs(column.high))
        if 0 < size < 2.0 ** (STORED - FARTHEST):
            raise NotProvenError("inputs are too small for integers; measure them in other units.")
        return fitting(size)

    # ---- expressions

    def at(self, one: Expression) -> Fixed:
        """The integer expression with 64 bits; NotProvenError if there is none."""
        if one.operator not in RULES:
            raise NotProvenError(f"the operation {one.operator!r} in the steps.")
        found = RULES[one.operator](self, one)
        if bits(found.values.reach) + found.shift > SUMMED:
            raise NotProvenError("the steps multiply numbers that are too large.")
        return found

    def column(self, one: Expression) -> Fixed:
        column = self.box[one.value]
        assert column is not None
        if column.missing:
            raise NotProvenError("a column with missing values that are not imputed first.")
        return self._present(one)

    def _present(self, one: Expression) -> Fixed:
        """A column that is not missing."""
        column, shift = self.box[one.value], self.input_shift(one.value)
        assert column is not None
        error = float(np.ldexp(0.5, -shift)) * SLACK
        if column.values is not None:
            error = float(quantized(column.values, shift)[1].max())
            if error > 0:
                raise NotProvenError("a category is not exact in fixed point.")
        return Fixed(f"(int64_t){leaf(one)}", shift, Interval(column.low, column.high, error))

    def constant(self, value: float, shift: int) -> Fixed:
        """A constant with a given shift."""
        integer, error = quantized(value, shift)
        return Fixed(f"{int(integer)}LL", shift, Interval(value, value, float(error)))

    def shifted(self, one: Fixed, shift: int) -> Fixed:
        """The expression with a smaller shift, rounded."""
        less = one.shift - shift
        if less <= 0:
            return one
        error = (one.values.error + float(np.ldexp(0.5, -shift))) * SLACK
        if less > SUMMED:
            raise NotProvenError("the steps use numbers of very different sizes.")
        text = f"{self.name}_shift({one.text}, {less})"
        return Fixed(text, shift, replace(one.values, error=error))

    def sum(self, one: Expression, signs: Sequence[int] | None = None) -> Fixed:
        """A sum, or a difference."""
        made = [None if t.operator == "number" else self.at(t) for t in one.arguments]
        signs = [1] * len(made) if one.operator == "+" else [1, -1]
        shift = min(part.shift for part in made if part is not None)
        low = high = error = 0.0
        texts = []
        for term, part, sign in zip(one.arguments, made, signs, strict=True):
            part = self.constant(term.value, shift) if part is None else self.shifted(part, shift)
            ends = sign * part.values.low, sign * part.values.high
            low, high, error = low + min(ends), high + max(ends), error + part.values.error
            texts.append(part.text)
        operator = " + " if one.operator == "+" else " - "
        values = Interval(low, high, error * SLACK)
        return Fixed(f"({operator.join(texts)})", shift, values)

    def product(self, one: Expression) -> Fixed:
        """A product with a constant."""
        first, second = one.arguments
        if second.operator != "number":
            raise NotProvenError("a product in the steps.")
        a, c = self.at(first), second.value
        a = self.shifted(a, a.shift - max(0, bits(a.values.reach) + a.shift - STORED - 1))
        shift = min(fitting(abs(c)), FARTHEST - a.shift)
        b = self.constant(c, shift)
        ends = a.values.low * c, a.values.high * c
        error = a.values.reach * b.values.error + abs(c) * a.values.error
        values = Interval(min(ends), max(ends), error * SLACK)
        return Fixed(f"{a.text} * {b.text}", a.shift + shift, values)

    def choice(self, one: Expression) -> Fixed:
        """One of several numbers, or a number in place of a missing one."""
        tests, values = one.arguments[:-1:2], [*one.arguments[1::2], one.arguments[-1]]
        present = [v for v in values if v.operator == "number" and v.value == v.value]
        others = [v for v in values if v.operator != "number"]
        if others:
            if not (len(values) == 2 and tests[0] == Expression("missing", (values[1],))):
                raise NotProvenError("a condition in the steps.")
            x = self._present(values[1])
            shift = min(x.shift, fitting(abs(present[0].value)))
            x = self.shifted(x, shift)
            fill = self.constant(present[0].value, shift)
            text = f"({self.test(tests[0])} ? {fill.text} : {x.text})"
            return Fixed(text, shift, fill.values.joined(x.values))
        sizes = [abs(v.value) for v in present]
        shift = fitting(max(sizes, default=1.0))
        made = [self.constant(v.value, shift) for v in present]
        whole = made[0].values
        for part in made[1:]:
            whole = whole.joined(part.values)
        texts = [
            f"{self.name.upper()}_MISSING"
            if v.value != v.value
            else self.constant(v.value, shift).text
            for v in values
        ]
        pairs = [f"{self.test(t)} ? {text} : " for t, text in zip(tests, texts[:-1], strict=True)]
        return Fixed("(" + "".join(pairs) + texts[-1] + ")", shift, whole)

    def test(self, one: Expression) -> str:
        """A condition."""
        x = one.arguments[0]
        if one.operator == "missing" and x.operator == "column":
            return f"{leaf(x)} == {self.name.upper()}_MISSING"
        if one.operator == "missing text":
            return f"{self.text(x)} == NULL"
        if one.operator == "same":
            return f"{self.name}_same({self.text(x)}, {self.text(one.arguments[1])})"
        if one.operator == "==" and x.operator in ("column", "variable"):
            found = self._present(x) if x.operator == "column" else self.scalars[x.value]
            integer, error = quantized(one.arguments[1].value, found.shift)
            if found.values.error == 0 and error == 0 and abs(integer) < 2**31:
                return f"{leaf(x)} == {int(integer)}"
        raise NotProvenError("a comparison of numbers that are not exact in fixed point.")

    def text(self, one: Expression) -> str:
        """A text, or one in place of a missing one."""
        if one.operator == "if":
            test, value, other = one.arguments
            return f"({self.test(test)} ? {self.text(value)} : {self.text(other)})"
        return c_string(one.value) if one.operator == "string" else leaf(one)

    # ---- statements

    def scalar(self, one: Scalar) -> None:
        found = self.stored(self.at(one.expression))
        note = comment(f" {one.note}" if one.note else "")
        about = f"/*{note} times 2^{found.shift} */".replace("^-", "^ -")
        self.lines.append(f"const int32_t {one.name} = (int32_t)({found.text}); {about}")
        if any(
            v.operator == "number" and v.value != v.value
            for v in (*one.expression.arguments[1::2], one.expression.arguments[-1])
        ):
            self.lines.append(f"if ({one.name} == {self.name.upper()}_MISSING) return -1;")
        self.scalars[one.name] = replace(found, text=f"(int64_t){one.name}")

    def stored(self, one: Fixed) -> Fixed:
        """The expression with a shift that makes it fit into 32 bits."""
        return self.shifted(one, min(one.shift, fitting(one.values.reach)))

    def vector(self, one: Vector) -> None:
        made = [self.stored(self.at(value)) for value in one.expressions]
        shift = min(part.shift for part in made)
        made = [self.shifted(part, shift) for part in made]
        entries = [f"  (int32_t)({part.text})," for part in made]
        self.lines += [f"const int32_t {one.name}[{one.width}] = {{", *entries, "};"]
        self.arrays[one.name] = shift, [part.values for part in made]

    def layer(self, one: LayerOutputs) -> None:
        shift, inputs = self.arrays[one.source]
        is_last = one.name == "z"
        sums = one.name if is_last else f"{one.name}_sums"
        compute = quadratic_layer if isinstance(one.layer, Quadratic) else linear_layer
        inside, own, values = compute(self, one.layer, sums, one.source, shift, inputs)
        declared = [] if is_last else [f"int64_t {sums}[{one.width}];"]
        self.lines += [*declared, "{", *(f"  {line}" for line in inside), "}"]
        if not is_last:
            to = min(own, fitting(max(v.reach for v in values)))
            loop = f"for (int k = 0; k < {one.width}; k++)"
            self.lines.append(f"int32_t {one.name}[{one.width}];")
            call = f"{self.name}_shift({sums}[k], {own - to})" if own > to else f"{sums}[k]"
            self.lines.append(f"{loop} {one.name}[k] = (int32_t){call};")
            values = [self.shifted(Fixed("", own, v), to).values for v in values]
            own = to
        self.arrays[one.name] = own, values


RULES: dict[str, Callable[[Integers, Expression], Fixed]] = {
    "column": Integers.column,
    "variable": lambda integers, one: integers.scalars[one.value],
    "element": lambda integers, one: Fixed(
        f"(int64_t){leaf(one)}",
        integers.arrays[one.value[0]][0],
        integers.arrays[one.value[0]][1][one.value[1]],
    ),
    "-": Integers.sum,
    "+": Integers.sum,
    "*": Integers.product,
    "if": Integers.choice,
}
STATEMENTS: dict[type[Any], Callable[[Integers, Any], None]] = {
    Scalar: Integers.scalar,
    Vector: Integers.vector,
    LayerOutputs: Integers.layer,
}


# ----------------------------------------------------------------------------- layers

Lines = tuple[list[str], int, list[Interval]]


def sizes_of(inputs: Sequence[Interval]) -> tuple[Array, Array]:
    """The largest absolute values of the inputs, and their errors."""
    return np.array([one.size for one in inputs]), np.array([one.error for one in inputs])


def integer_array(kind: str, name: str, values: Array) -> str:
    """A constant array of integers."""
    suffix = "LL" if kind == "int64_t" else ""
    return constant_array(kind, name, values, lambda value: f"{int(value)}{suffix}")


def linear_layer(
    integers: Integers, layer: Layer, z: str, u: str, shift: int, inputs: Sequence[Interval]
) -> Lines:
    """z = b + W u, which is exact apart from the rounding of constants and inputs."""
    (a, e), (m, n) = sizes_of(inputs), layer.W.shape
    size = np.abs(layer.W) @ a + np.abs(layer.b)
    reach = np.abs(layer.W) @ (a + e) + np.abs(layer.b)
    own = min(fitting(float(np.abs(layer.W).max())), SUMMED - 1 - bits(reach.max()) - shift)
    W, dW = quantized(layer.W, own)
    b, db = quantized(layer.b, own + shift)
    error = np.abs(layer.W) @ e + dW @ (a + e) + db
    each = f"for (int k = 0; k < {m}; k++)"
    lines = [
        integer_array("int32_t", "W", W.T),
        integer_array("int64_t", "b", b),
        f"{each} {z}[k] = b[k];",
        f"for (int i = 0; i < {n}; i++) {{",
        f"  {each} {z}[k] += (int64_t)W[i][k] * {u}[i];",
        "}",
    ]
    values = [Interval(-s, s, d * SLACK) for s, d in zip(size, error, strict=True)]
    return lines, own + shift, values


def quadratic_layer(
    integers: Integers, layer: Layer, z: str, u: str, shift: int, inputs: Sequence[Interval]
) -> Lines:
    """z = b + sum_i u_i v_i, with the factors v_i = w_i + sum_j>=i p_ij u_j stored in 32 bits."""
    assert isinstance(layer, Quadratic)
    (a, e), (m, n) = sizes_of(inputs), layer.W.shape
    P, W, far = monomials(layer), layer.W, a + e
    factors = np.abs(P) @ a + np.abs(W)  # shape (m, n)
    size = factors @ a + np.abs(layer.b)
    largest = float((np.abs(P) @ far + np.abs(W)).max())
    reach = float(((np.abs(P) @ far + np.abs(W)) @ far + np.abs(layer.b)).max())
    own = min(fitting(float(np.abs(P).max())), SUMMED - 1 - bits(largest) - shift)
    linear = min(fitting(float(np.abs(W).max())), own + shift)
    factor = min(fitting(largest), SUMMED - 1 - bits(reach) - shift, own + shift)
    more, less = own + shift - linear, own + shift - factor
    if more > FARTHEST or less > SUMMED:
        raise NotProvenError("the network's weights have very different sizes.")
    pairs, _ = quantized(by_pair(layer), own)
    dP = np.triu(quantized(P, own)[1])
    linears, dW = quantized(W, linear)
    b, db = quantized(layer.b, factor + shift)
    moved = np.abs(P) @ e + dP @ far + dW + (np.ldexp(0.5, -factor) if less else 0.0)
    error = factors @ e + moved @ far + db
    each = f"for (int k = 0; k < {m}; k++)"
    rounded = f"{integers.name}_shift(factor[k], {less})" if less else "factor[k]"
    lines = [
        integer_array("int32_t", "W", linears.T),
        integer_array("int64_t", "b", b),
        integer_array("int32_t", "P", pairs),
        f"{each} {z}[k] = b[k];",
        f"for (int i = 0, pair = 0; i < {n}; i++) {{",
        f"  int64_t factor[{m}];",
        f"  {each} factor[k] = (int64_t)W[i][k] * {2**more}LL;",
        f"  for (int j = i; j < {n}; j++, pair++) {{",
        f"    {each} factor[k] += (int64_t)P[pair][k] * {u}[j];",
        "  }",
        f"  {each} {z}[k] += {rounded} * {u}[i];",
        "}",
    ]
    values = [Interval(-s, s, d * SLACK) for s, d in zip(size, error, strict=True)]
    return lines, factor + shift, values


# ------------------------------------------------------------------------------- the file


def write_fixed_point(description: Description, name: str, X: Any) -> str:
    """The text of a header with `fixed`, `scores`, `label` and `proven`."""
    view = description.view.after_reading
    try:
        network = view.folded
    except ValueError as error:
        raise NotProvenError(str(error)) from None
    folded = replace(view, network=network)
    description = replace(description, program=program_of(folded))

    def errors(box: Box) -> Array:
        _, values = Integers.of(description.program, name, box).arrays["z"]
        return np.array([one.error for one in values])

    proof = prove(description, X, "integers of 32 bits, sums of 64 bits", errors)
    made = Integers.of(description.program, name, proof.box)
    has_text = any(column.kind == "text" for column in description.program.columns)
    return file_around(
        description,
        name,
        proof,
        CHECKS + f"#define {name.upper()}_MISSING INT32_MIN\n",
        has_text=has_text,
        functions=_functions(description, made, proof, has_text),
    )


def _functions(description: Description, made: Integers, proof: Proof, has_text: bool) -> str:
    n, K = len(proof.box), description.view.network.n_outputs
    name, shift = made.name, made.arrays["z"][0]
    NAME = name.upper()
    parameters = f"const int32_t x[{n}]" + (f", const char *const text[{n}]" if has_text else "")
    row = "x, text" if has_text else "x"

    def function(head: str, body: Sequence[str]) -> str:
        inside = "".join(f"  {line}\n" for line in body)
        return f"\n{NAME}_API {head} {{\n{inside}}}\n"

    text = "\n/* A score is z divided by 2 to the power of this. */\n"
    text += f"enum {{ {NAME}_SHIFT = {shift} }};\n"
    text += "\n/* v divided by 2 to the power of s, rounded. */\n"
    text += f"static inline int64_t {name}_shift(int64_t v, int s) {{\n"
    text += "  return (v + ((int64_t)1 << (s - 1))) >> s;\n}\n"
    text += "\n/* An input as an integer; this needs floating point. NaN is missing. */"
    text += function(f"int32_t {name}_fixed(int i, double value)", _to_fixed(made, n))
    text += "\n/* The scores z; returns -1 for inputs outside the box, else 0. */"
    body = [*_in_box(made, n), *made.lines, "return 0;"]
    text += function(f"int {name}_scores({parameters}, int64_t z[{K}])", body)
    begin = [f"int64_t z[{K}];", f"if ({name}_scores({row}, z) != 0) return -1;"]
    text += "\n/* The index of the predicted class, or -1 outside the box. */"
    text += function(f"int {name}_label({parameters})", [*begin, *choice(description)])
    text += "\n/* 1 if the label is proven to be the model's: in the box, and further apart than\n"
    text += "   epsilon. */"
    body = [*_listed(made), *begin[:1], begin[1].replace("-1", "0")]
    body += _margins(description, proof, shift, K)
    return text + function(f"int {name}_proven({parameters})", body)


def _to_fixed(made: Integers, n: int) -> list[str]:
    shifts = np.array([0 if c is None else made.input_shift(i) for i, c in enumerate(made.box)])
    NAME = made.name.upper()
    return [
        integer_array("signed char", "shift", shifts),
        "const double scaled = ldexp(value, shift[i]);",
        f"if (value != value) return {NAME}_MISSING;",
        "if (!(fabs(scaled) < 2e9)) return INT32_MAX; /* outside the box */",
        "return (int32_t)(scaled + (scaled < 0 ? -0.5 : 0.5));",
    ]


def _in_box(made: Integers, n: int) -> list[str]:
    """Return -1 for inputs outside the box."""
    low, high, missing = np.full(n, -(2**31) + 1), np.full(n, 2**31 - 1), np.zeros(n, dtype=int)
    for i, column in enumerate(made.box):
        if column is None:
            missing[i] = 1
        else:
            ends = np.ldexp([column.low, column.high], made.input_shift(i))
            low[i], high[i] = np.trunc(ends + np.where(ends < 0, -0.5, 0.5))
            missing[i] = column.missing
    NAME = made.name.upper()
    return [
        integer_array("int32_t", "low", low),
        integer_array("int32_t", "high", high),
        integer_array("char", "may_be_missing", missing),
        f"for (int i = 0; i < {n}; i++) {{",
        f"  if (x[i] == {NAME}_MISSING ? !may_be_missing[i] : x[i] < low[i] || x[i] > high[i]) {{",
        "    return -1;",
        "  }",
        "}",
    ]


def _listed(made: Integers) -> list[str]:
    """Return 0 unless the columns that are categories have one of the listed values."""
    lines = []
    for i, column in enumerate(made.box):
        if column is not None and column.values is not None:
            integers, _ = quantized(np.array(column.values), made.input_shift(i))
            known = [f"{int(v)}" for v in integers]
            known += [f"{made.name.upper()}_MISSING"] if column.missing else []
            lines.append("if (" + " && ".join(f"x[{i}] != {v}" for v in known) + ") return 0;")
    return lines


def _margins(description: Description, proof: Proof, shift: int, K: int) -> list[str]:
    """Return whether the label's score exceeds the others by more than epsilon."""
    epsilon = np.floor(np.ldexp(proof.epsilon * (1 + 1e-9), shift)) + 1
    if K == 1:
        bound = f"{int(epsilon[0, 1])}LL"
        return [f"return z[0] > {bound} || z[0] < -{bound};"]
    return [
        integer_array("int64_t", "epsilon", epsilon),
        *choice(description)[:-1],
        f"for (int k = 0; k < {K}; k++) {{",
        "  if (k != label && !(z[label] - z[k] > epsilon[label][k])) return 0;",
        "}",
        "return 1;",
    ]
