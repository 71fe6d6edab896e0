"""Changes of inputs in words, with numbers that are rounded as far as the class allows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quadric.certify._rows import Row
from quadric.checks import Array
from quadric.utils import visible

MOST_DIGITS = 16
SMALL = (0.05, 0.01, 0.0)  # shares of the largest change below which a change is left out


@dataclass(frozen=True)
class Change:
    """An input that changes.

    Parameters
    ----------
    name : str
        The name of the input.
    before, after : float
        Its value in the row, and its new value.
    """

    name: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"{visible(self.name)} {written(self.after)} instead of {written(self.before)}"


def changes_of(
    row: Row,
    point: Array,
    becomes: int,
    sizes: Array,
    whole: Sequence[int],
) -> list[Change]:
    """The changes from the row to the point, rounded away from the row, but within the bounds.

    The result has as few digits and inputs as possible such that the model still predicts the class
    of the point.
    """
    start, low, high = row.point, row.low, row.high
    lengths = np.abs(point - start) / sizes
    for digits in range(2, MOST_DIGITS):
        points = []
        for share in SMALL:
            kept = (lengths > 0) & (lengths >= share * lengths.max())
            found = start.copy()
            for i in np.flatnonzero(kept):
                if i in whole:
                    found[i] = point[i]
                    continue
                more = (_outwards(start[i], point[i], d) for d in range(digits, MOST_DIGITS))
                found[i] = next((v for v in more if low[i] <= v <= high[i]), point[i])
            points.append(found)
        good = row.classes(row.in_precision(np.array(points))) == becomes
        # a tie may be rounded in another way if a row is predicted alone
        alone = (one for one, is_good in zip(points, good, strict=True) if is_good)
        if (one := next((one for one in alone if _has_class(row, one, becomes)), None)) is not None:
            point = one
            break
    changed = np.flatnonzero(point != start)
    changed = changed[np.argsort(-lengths[changed])]
    names = row.inputs.names
    return [Change(names[i], float(start[i]), float(point[i])) for i in changed]


def _has_class(row: Row, point: Array, becomes: int) -> bool:
    return bool(row.classes(row.in_precision(point[None]))[0] == becomes)


def _outwards(before: float, after: float, digits: int) -> float:
    """`after`, rounded away from `before` to this number of digits of their difference."""
    places = digits - 1 - math.floor(math.log10(abs(after - before)))
    if not -300 < places < 300:
        return after
    unit = 10.0**-places
    ends = math.ceil(after / unit) if after > before else math.floor(after / unit)
    return round(ends * unit, places) if places > 0 else float(ends * round(unit))


def written(value: float) -> str:
    """A number without superfluous digits, with spaces between thousands.

    >>> written(31200.0), written(0.25), written(1234567.5)
    ('31 200', '0.25', '1 234 567.5')
    """
    text = repr(float(value)).removesuffix(".0")
    if "e" in text or "n" in text:
        return text
    number, dot, rest = text.partition(".")
    if len(number.lstrip("-")) > 4:
        number = f"{int(number):,}".replace(",", " ")
    return number + dot + rest


def in_words(changes: Sequence[Change], most: int = 8) -> str:
    """The changes as a list, the largest first."""
    texts = [str(change) for change in changes[:most]]
    if len(changes) > most:
        texts.append(f"{len(changes) - most} smaller changes")
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
