"""Names of columns, classes and files, made safe to print."""

import unicodedata

# control characters, invisible characters (some reverse the direction of text), line ends
ESCAPED = ("Cc", "Cf", "Cs", "Zl", "Zp")
PART_OF_WORDS = "\u200c\u200d"  # invisible, but used in Persian, Indian scripts and emoji


def visible(text: str) -> str:
    r"""Escape the characters that a terminal would interpret instead of showing.

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
