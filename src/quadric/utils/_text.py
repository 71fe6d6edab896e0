"""Helpers for messages: names made safe to print, lists and counts."""

import unicodedata
from collections.abc import Iterable, Mapping
from decimal import ROUND_FLOOR, Context

# control characters, invisible characters (some reverse the text direction), line separators
ESCAPED = ("Cc", "Cf", "Cs", "Zl", "Zp")
PART_OF_WORDS = "\u200c\u200d"  # invisible, but used in Persian, Indic scripts and emoji


def visible(text: str) -> str:
    r"""Escape the characters that a terminal would interpret instead of displaying.

    >>> print(visible("\x1b[31mred\n"))
    \x1b[31mred\n
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in ESCAPED and c not in PART_OF_WORDS
        else c
        for c in text
    )


def listed(items: Iterable[str], most: int = 12) -> str:
    """Join the first items with commas, and count the remaining ones.

    >>> listed("abcd", most=2)
    'a, b and 2 more'
    """
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def counted(count: int, noun: str) -> str:
    """Return the count followed by the noun in the singular or plural.

    >>> counted(1, "row"), counted(2400, "row"), counted(2, "category")
    ('1 row', '2,400 rows', '2 categories')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def spaced(number: str) -> str:
    """Put spaces between the thousands of a decimal number with five or more digits.

    >>> spaced("57540"), spaced("-1234567.5"), spaced("2024")
    ('57 540', '-1 234 567.5', '2024')
    """
    whole, dot, rest = number.partition(".")
    if len(whole.lstrip("+-")) > 4:
        whole = f"{int(whole):,}".replace(",", " ")
    return whole + dot + rest


def rounded(value: float, digits: int = 4) -> str:
    """Return a number as a person would write it: rounded, but with its whole part in full.

    A whole part of more than 15 digits, which a float does not hold exactly, becomes a power of 10.

    >>> rounded(3.14159), rounded(57540.3), rounded(2024.5, 2), rounded(0.00052), rounded(1.5e17)
    ('3.142', '57 540', '2024', '0.00052', '1.5e+17')
    """
    text = f"{value:.{digits}g}"
    return spaced(f"{value:.0f}") if "e+" in text and abs(value) < 1e15 else text


def shown(score: float | None) -> str:
    """Return a score as text with at least three digits; a hyphen if it is not defined.

    >>> shown(0.9), shown(57540.3), shown(-0.0000321), shown(None)
    ('0.900', '57 540', '-0.00003', '-')
    """
    if score is None:
        return "-"
    if 1e-6 < abs(score) < 0.0005:
        return f"{float(f'{score:.1g}'):.6f}".rstrip("0")
    return f"{score:.3f}" if score == 0 or 0.0005 <= abs(score) < 10 else rounded(score)


def rounded_down(value: float) -> str:
    """Return a lower bound, rounded like `rounded` but never to a larger number.

    >>> rounded_down(0.12345678), rounded_down(2.3)
    ('0.1234', '2.3')
    """
    digits = Context(prec=4, rounding=ROUND_FLOOR)
    # the shortest decimal: the exact value of 2.3 is slightly less, and would become 2.299
    return rounded(float(digits.create_decimal(repr(float(value)))))


def first_applying(texts: Mapping[str, object]) -> str:
    """Return the first string whose condition is true, or an empty string if there is none.

    >>> first_applying({"too small": 3 < 0, "too large": 3 > 2})
    'too large'
    """
    return next((text for text, applies in texts.items() if applies), "")
