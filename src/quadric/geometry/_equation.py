"""Quadratic functions written out, as text and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import Array


def default_names(n: int) -> list[str]:
    """x, y, z; in more dimensions x1, x2, ..."""
    return list("xyz"[:n]) if n <= 3 else [f"x{i + 1}" for i in range(n)]


def equation(
    Q: Array,
    w: Array,
    b: float,
    names: Sequence[str] | None = None,
    precision: int = 3,
    *,
    latex: bool = False,
    max_terms: int | None = None,
    sizes: Array | None = None,
) -> str:
    """x'Qx + w'x + b = 0 with `precision` significant digits: squares and products first.

    Terms that are zero are left out; of more than `max_terms` the largest are shown for
    coordinates of the given sizes.
    """
    n = len(w)
    names = default_names(n) if names is None else [str(name) for name in names]
    if len(names) != n:
        raise ValueError(f"names must hold {n} names, one a coordinate. Got {len(names)}.")
    precision = checks.check_integer("precision", precision, at_least=1)
    rows, columns = np.triu_indices(n)
    factors = np.where(rows == columns, 1.0, 2.0)
    coefficients = np.concatenate([factors * Q[rows, columns], w])
    used = np.flatnonzero(coefficients)
    left_out = 0
    if max_terms is not None:
        max_terms = checks.check_integer("max_terms", max_terms, at_least=1)
        if len(used) > max_terms:
            left_out = len(used) - max_terms
            size = np.ones(n) if sizes is None else np.abs(sizes)
            effects = np.abs(coefficients) * np.concatenate([size[rows] * size[columns], size])
            largest = np.argsort(-effects[used], kind="stable")[:max_terms]
            used = np.sort(used[largest])
    style = _Latex(names) if latex else _Text(names)
    text = ""
    for k in used.tolist():
        if k >= len(rows):
            monomial = style.power(k - len(rows), 1)
        elif rows[k] == columns[k]:
            monomial = style.power(int(rows[k]), 2)
        else:
            monomial = style.product(int(rows[k]), int(columns[k]))
        text = _append(text, style, coefficients[k], precision, monomial)
    if left_out:
        text += style.left_out(left_out)
    if b != 0 or not text:
        text = _append(text, style, b, precision, "")
    return f"{text} = 0"


def _append(
    text: str, style: _Text | _Latex, coefficient: float, precision: int, monomial: str
) -> str:
    number = style.number(abs(coefficient), precision)
    if monomial:
        number = monomial if number == "1" else f"{number}{style.times}{monomial}"
    if not text:
        return f"-{number}" if coefficient < 0 else number
    return f"{text} {'-' if coefficient < 0 else '+'} {number}"


class _Text:
    """4 x² - 2 x·y; a name that is not one word stands in brackets."""

    times = " "

    def __init__(self, names: Sequence[str]) -> None:
        self.names = [name if re.fullmatch(r"\w+", name) else f"[{name}]" for name in names]
        self.joint = "" if all(re.fullmatch(r"[^\W\d_]", name) for name in names) else "·"

    def power(self, i: int, exponent: int) -> str:
        return self.names[i] + ("²" if exponent == 2 else "")

    def product(self, i: int, j: int) -> str:
        return self.names[i] + self.joint + self.names[j]

    def number(self, value: float, precision: int) -> str:
        return f"{value:.{precision}g}"

    def left_out(self, count: int) -> str:
        return f" + ({count} smaller term{'s' if count > 1 else ''})"


class _Latex:
    r"""4\,x_{1}^{2}; longer names as upright text."""

    times = r"\,"
    special: dict[str, str] = {  # noqa: RUF012
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "&": r"\&", "#": r"\#",
        "$": r"\$", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    }  # fmt: skip

    def __init__(self, names: Sequence[str]) -> None:
        self.names = [self._name(name) for name in names]

    def _name(self, name: str) -> str:
        letter = re.fullmatch(r"([^\W\d_])_?(\d*)", name)
        if letter:
            return letter[1] + (f"_{{{letter[2]}}}" if letter[2] else "")
        return r"\text{" + "".join(self.special.get(c, c) for c in name) + "}"

    def power(self, i: int, exponent: int) -> str:
        return self.names[i] + ("^{2}" if exponent == 2 else "")

    def product(self, i: int, j: int) -> str:
        return rf"{self.names[i]}\,{self.names[j]}"

    def number(self, value: float, precision: int) -> str:
        mantissa, e, exponent = f"{value:.{precision}g}".partition("e")
        return rf"{mantissa} \times 10^{{{int(exponent)}}}" if e else mantissa

    def left_out(self, count: int) -> str:
        return rf" + \cdots\;(\text{{{count} smaller}})"
