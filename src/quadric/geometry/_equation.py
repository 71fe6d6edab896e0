"""Quadratic functions written as text and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    names: Sequence[str] | None,
    precision: int,
    *,
    latex: bool,
    max_terms: int | None,
    sizes: Array,
) -> str:
    """The equation x'Qx + w'x + b = 0; see `Quadric.equation`."""
    n = len(w)
    names = default_names(n) if names is None else [str(name) for name in names]
    if len(names) != n:
        raise ValueError(f"names must hold {n} names, one per coordinate. Got {len(names)}.")
    precision = checks.check_integer("precision", precision, at_least=1)
    style = _latex_style(names) if latex else _text_style(names)
    rows, columns = np.triu_indices(n)
    coefficients = np.concatenate([np.where(rows == columns, 1.0, 2.0) * Q[rows, columns], w])
    shown, omitted = np.flatnonzero(coefficients), 0
    if max_terms is not None:
        max_terms = checks.check_integer("max_terms", max_terms, at_least=1)
        omitted = max(0, len(shown) - max_terms)
        sizes = np.abs(sizes)
        effects = np.abs(coefficients) * np.concatenate([sizes[rows] * sizes[columns], sizes])
        shown = np.sort(shown[np.argsort(-effects[shown], kind="stable")[:max_terms]])
    terms = []
    for k in shown.tolist():
        factors = [k - len(rows)] if k >= len(rows) else [rows[k], columns[k]]
        terms.append(_term(coefficients[k], style.monomial(factors), style, precision))
    if omitted:
        terms.append(f"+ {style.omitted(omitted)}")
    if b != 0 or not terms:
        terms.append(_term(b, "", style, precision))
    text = " ".join(terms).removeprefix("+ ")
    return ("-" + text[2:] if text.startswith("- ") else text) + " = 0"


def _term(coefficient: float, monomial: str, style: _Style, precision: int) -> str:
    """The sign, the number and the monomial; a factor of 1 is not written."""
    number = style.number(f"{abs(coefficient):.{precision}g}")
    if monomial:
        number = monomial if number == "1" else f"{number}{style.times}{monomial}"
    return f"{'-' if coefficient < 0 else '+'} {number}"


@dataclass(frozen=True)
class _Style:
    names: list[str]
    times: str
    joint: str
    square: str
    number: Callable[[str], str]
    omitted: Callable[[int], str]

    def monomial(self, factors: list[int]) -> str:
        if len(factors) == 2 and factors[0] == factors[1]:
            return self.names[factors[0]] + self.square
        return self.joint.join(self.names[i] for i in factors)


def _text_style(names: Sequence[str]) -> _Style:
    """4 x² - 2 x·y; a name that is not one word is put in brackets."""
    letters = all(re.fullmatch(r"[^\W\d_]", name) for name in names)
    return _Style(
        names=[name if re.fullmatch(r"\w+", name) else f"[{name}]" for name in names],
        times=" ",
        joint="" if letters else "·",
        square="²",
        number=str,
        omitted=lambda count: f"({count} smaller term{'s' if count > 1 else ''})",
    )


SPECIAL = {c: rf"\{c}" for c in "{}%&#$_"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}


def _latex_style(names: Sequence[str]) -> _Style:
    r"""4\,x_{1}^{2}; longer names as upright text."""
    return _Style(
        names=[_latex_name(name) for name in names],
        times=r"\,",
        joint=r"\,",
        square="^{2}",
        number=lambda text: re.sub("e(.*)", lambda match: rf" \times 10^{{{int(match[1])}}}", text),
        omitted=lambda count: rf"\cdots\;(\text{{{count} smaller}})",
    )


def _latex_name(name: str) -> str:
    letter = re.fullmatch(r"([^\W\d_])_?(\d*)", name)
    if letter:
        return letter[1] + (f"_{{{letter[2]}}}" if letter[2] else "")
    return r"\text{" + "".join(SPECIAL.get(c, c) for c in name) + "}"
