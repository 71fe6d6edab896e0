"""Options from users: one form of error for all of them."""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np


def check_number(
    name: str, value: Any, *, at_least: float | None = None, above: float | None = None,
    below: float | None = None,
) -> float:  # fmt: skip
    """A finite real number within the bounds."""
    wanted = "a finite number"
    if at_least is not None:
        wanted += f" of at least {at_least:g}"
    if above is not None:
        wanted += f" above {above:g}"
    if below is not None:
        wanted += f" and below {below:g}"
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    good = (
        real
        and abs(value) <= sys.float_info.max  # also for integers that no float can hold
        and (at_least is None or value >= at_least)
        and (above is None or value > above)
        and (below is None or value < below)
    )
    if not good:
        raise _error(name, wanted, value, real)
    return float(value)


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """A whole number of at least `at_least`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < at_least:
        raise _error(name, f"a whole number of at least {at_least}", value, whole)
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """True or False, and nothing that merely passes for one."""
    if not isinstance(value, (bool, np.bool_)):
        raise _error(name, "True or False", value, False)
    return bool(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of the names in `choices`."""
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        raise _error(name, "one of " + ", ".join(map(repr, choices)), value, True)
    return value


def as_generator(rng: Any) -> np.random.Generator:
    """A NumPy generator from a seed, a generator, or None (fresh entropy)."""
    if isinstance(rng, np.random.Generator):
        return rng
    seed = isinstance(rng, (int, np.integer)) and not isinstance(rng, bool)
    if rng is None or (seed and rng >= 0):
        return np.random.default_rng(rng if rng is None else int(rng))
    raise _error("rng", "a non-negative whole number, a numpy.random.Generator or None", rng, True)


def _error(name: str, wanted: str, value: Any, right_type: bool) -> Exception:
    kind = ValueError if right_type else TypeError
    return kind(f"{name} must be {wanted}. Got {value!r} instead.")
