"""Text from others, such as names of columns and classes, made fit to be shown."""

import unicodedata

# Control characters, invisible ones (those that reverse the writing among them), line ends.
OBEYED = ("Cc", "Cf", "Cs", "Zl", "Zp")
PART_OF_WORDS = "\u200c\u200d"  # Persian, Indian scripts and emoji are written with these


def visible(text: str) -> str:
    r"""The text with every character that a terminal would obey spelled out.

    >>> print(visible("\x1b[31mred\n"))
    \x1b[31mred\n
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in OBEYED and c not in PART_OF_WORDS
        else c
        for c in text
    )
