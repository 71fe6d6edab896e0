"""Checks of options, with uniform error messages."""

import operator
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np


def check_number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """Return a finite real number within the bounds."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    good = real and abs(value) <= sys.float_info.max  # integers may be too large for a float
    wanted = "a finite number"
    for bound, words, holds in (
        (at_least, "of at least", operator.ge),
        (above, "above", operator.gt),
        (below, "and below", operator.lt),
    ):
        if bound is not None:
            wanted += f" {words} {bound:g}"
            good = good and holds(value, bound)
    if not good:
        raise _error(name, wanted, value, real)
    return float(value)


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return a whole number of at least `at_least`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < at_least:
        raise _error(name, f"a whole number of at least {at_least}", value, whole)
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return True or False; numbers are not accepted."""
    if not isinstance(value, (bool, np.bool_)):
        raise _error(name, "True or False", value, False)
    return bool(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return a value that is one of `choices`."""
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        raise _error(name, "one of " + ", ".join(map(repr, choices)), value, True)
    return value


def as_generator(rng: Any) -> np.random.Generator:
    """Return a NumPy generator for a seed, a generator, or None (fresh entropy)."""
    if isinstance(rng, np.random.Generator):
        return rng
    seed = isinstance(rng, (int, np.integer)) and not isinstance(rng, bool)
    if rng is None or (seed and rng >= 0):
        return np.random.default_rng(rng if rng is None else int(rng))
    raise _error("rng", "a non-negative whole number, a numpy.random.Generator or None", rng, True)


def _error(name: str, wanted: str, value: Any, right_type: bool) -> Exception:
    kind = ValueError if right_type else TypeError
    return kind(f"{name} must be {wanted}. Got {value!r} instead.")
