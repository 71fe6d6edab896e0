"""Expressions as text: operators of a language, constants, and names that cannot be code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.codegen._expressions import Expression

# how tightly an expression binds: one inside another needs parentheses if it binds less tightly
CONDITION, COMPARISON, SUM, PRODUCT, ATOM = range(5)
COMPARISONS = ("<", ">=", "==")


@dataclass(frozen=True)
class Spelling:
    """How a language writes expressions.

    Parameters
    ----------
    calls : dict
        For each operator that is written as a call or a test, a template with {0}, {1}, ...
    leaf : callable
        The text of a leaf that is not a constant.
    number, string : callable
        The text of a constant.
    condition : callable
        Writes the arguments of 'if', which are texts, and returns how tightly the result binds.
    balanced : bool
        Whether sums are trees of small depth. Databases limit the depth of expressions.
    """

    calls: dict[str, str]
    leaf: Callable[[Expression], str]
    number: Callable[[float], str]
    string: Callable[[str], str]
    condition: Callable[[Sequence[str]], tuple[str, int]]
    equal: str = "=="
    balanced: bool = False

    def write(self, expression: Expression, least: int = CONDITION) -> str:
        """The text of an expression, in parentheses if it binds less tightly than `least`."""
        text, binds = self._write(expression)
        return text if binds >= least else f"({text})"

    def _write(self, one: Expression) -> tuple[str, int]:
        operator, arguments = one.operator, one.arguments
        if operator == "number":
            return self.number(one.value), ATOM
        if operator == "string":
            return self.string(one.value), ATOM
        if operator == "literal":
            return one.value, ATOM
        if one.is_leaf:
            return self.leaf(one), ATOM
        if operator == "+":
            return self._sum(arguments), SUM
        if operator == "-":
            return self._joined(arguments[0], self.write(arguments[1], PRODUCT), "-"), SUM
        if operator in "*/":
            left, right = self.write(arguments[0], PRODUCT), self.write(arguments[1], ATOM)
            return f"{left} {operator} {right}", PRODUCT
        if operator in COMPARISONS:
            left, right = (self.write(argument, SUM) for argument in arguments)
            return f"{left} {self.equal if operator == '==' else operator} {right}", COMPARISON
        texts = [self.write(argument, COMPARISON) for argument in arguments]
        if operator == "if":
            return self.condition(texts)
        if operator == "largest":
            return self._largest(arguments), ATOM
        return self.calls[operator].format(*texts), ATOM

    def lines(self, expression: Expression, width: int = 88) -> list[str]:
        """The text of an expression; a long sum has a line for each term."""
        text = self.write(expression)
        if len(text) <= width or expression.operator != "+" or self.balanced:
            return [text]
        first, *terms = expression.arguments
        return [self.write(first, SUM), *(self._signed(term).strip() for term in terms)]

    def _signed(self, term: Expression) -> str:
        right = self.write(term, PRODUCT)
        return f" - {right[1:]}" if right[0] == "-" else f" + {right}"

    def _largest(self, arguments: Sequence[Expression]) -> str:
        if len(arguments) == 1:
            return self.write(arguments[0])
        half = len(arguments) // 2
        parts = self._largest(arguments[:half]), self._largest(arguments[half:])
        return self.calls["largest"].format(*parts)

    def _sum(self, terms: Sequence[Expression]) -> str:
        if self.balanced and len(terms) > 2:
            half = len(terms) // 2
            return " + ".join(
                f"({self._sum(part)})" if len(part) > 1 else self.write(part[0], PRODUCT)
                for part in (terms[:half], terms[half:])
            )
        return self.write(terms[0], SUM) + "".join(map(self._signed, terms[1:]))

    def _joined(self, left: Expression, right: str, sign: str) -> str:
        """left - right, where two signs in a row, which begin a comment in SQL, become one."""
        text = self.write(left, SUM)
        return f"{text} + {right[1:]}" if right[0] == "-" else f"{text} {sign} {right}"


def shortest(value: float) -> str:
    """The shortest decimal number that is read back as the same double."""
    if not np.isfinite(value):
        raise ValueError(f"a constant of the model is {value}. Check the fitted steps.")
    return repr(float(value))


def shortest_float(value: float) -> str:
    """The shortest decimal number that is read back as the float nearest to the value."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if not np.isfinite(single):
        raise ValueError(f"the constant {value} is too large for float. Use double.")
    return str(single)


def c_like_condition(texts: Sequence[str]) -> tuple[str, int]:
    """condition ? value : condition ? value : other."""
    pairs = zip(texts[:-1:2], texts[1::2], strict=True)
    return "".join(f"{test} ? {value} : " for test, value in pairs) + texts[-1], CONDITION


def python_condition(texts: Sequence[str]) -> tuple[str, int]:
    """value if condition else value if condition else other."""
    pairs = zip(texts[:-1:2], texts[1::2], strict=True)
    return "".join(f"{value} if {test} else " for test, value in pairs) + texts[-1], CONDITION


def sql_condition(texts: Sequence[str]) -> tuple[str, int]:
    """CASE WHEN condition THEN value ELSE other END."""
    pairs = zip(texts[:-1:2], texts[1::2], strict=True)
    inside = " ".join(f"WHEN {test} THEN {value}" for test, value in pairs)
    return f"CASE {inside} ELSE {texts[-1]} END", ATOM


# ---------------------------------------------------------------- names and texts


def comment(text: Any) -> str:
    """Text that cannot end a comment or start another line in any of the languages.

    Letters, digits and some punctuation are kept. All other characters are escaped.
    """
    return "".join(
        c if c.isalnum() or c in " _.,:;()[]=+'" else f"u{{{ord(c):x}}}" for c in str(text)
    )


def encodable(text: str, what: str, *, nul: bool = False) -> str:
    """The text; raise ValueError if it has no UTF-8 form, or has a NUL unless `nul` is true."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            f"{what} {text!r:.60} cannot be written as UTF-8. Rename it before fitting."
        ) from None
    if "\0" in text and not nul:
        raise ValueError(
            f"{what} {text!r:.60} contains a NUL character, which this language cannot represent. "
            "Rename it before fitting."
        )
    return text


def c_string(text: str) -> str:
    """A string literal of C, in ASCII: other characters become the octal codes of their UTF-8."""
    plain = set(range(32, 127)) - set(b'"\\?')
    codes = encodable(text, "the text").encode("utf-8")
    return '"' + "".join(chr(c) if c in plain else f"\\{c:03o}" for c in codes) + '"'


def javascript_string(text: str) -> str:
    """A string literal of JavaScript in ASCII that can stand in a page: it never contains <."""
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2)]
    plain = set(range(32, 127)) - set(b'"\\<')
    return '"' + "".join(chr(c) if c in plain else f"\\u{c:04x}" for c in codes) + '"'


def python_string(text: str) -> str:
    """A string literal of Python in ASCII."""
    return ascii(str(text))


def label_literal(value: Any, string: Callable[[str], str], words: tuple[str, str]) -> str:
    """A class as a constant; `words` are true and false."""
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (bool, np.bool_)):
        return words[0] if value else words[1]
    if isinstance(value, (int, float)) and np.isfinite(value):
        return repr(value)
    raise TypeError(
        f"classes must be text, truth values or finite numbers. Got {value!r:.60}; convert them "
        "before fitting."
    )
