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


def rounded(value: float) -> str:
    """Return a number with four significant digits; a whole part below ten million is written out.

    >>> rounded(3.14159), rounded(24680.5), rounded(1.5e9)
    ('3.142', '24680', '1.5e+09')
    """
    text = f"{value:.4g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e7 else text


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
