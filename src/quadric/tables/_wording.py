"""Lists and counts in errors and notes."""

from collections.abc import Iterable


def listed(items: Iterable[str], most: int = 12) -> str:
    """Join the first items with commas and count the others.

    >>> listed("abcd", most=2)
    'a, b and 2 more'
    """
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def counted(count: int, noun: str) -> str:
    """Return the count with the noun in the singular or the plural.

    >>> counted(1, "row"), counted(2400, "row"), counted(2, "category")
    ('1 row', '2,400 rows', '2 categories')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
