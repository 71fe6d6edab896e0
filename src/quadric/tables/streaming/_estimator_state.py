"""Where a fitted estimator stands in its training, as arrays, and back."""

import math
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.training._state import TrainingState

NUMBERS = "numbers"
RECORDS = ("loss", "seconds")  # one entry an epoch; all other arrays keep their shapes


def state_of(estimator: Any) -> dict[str, Array]:
    """Parameters and training state of a fitted estimator, by name."""
    arrays, numbers = estimator._state.to_arrays()
    for l, layer in enumerate(estimator.network_.layers):
        arrays |= {f"layers.{l}.{name}": array for name, array in layer.arrays().items()}
    return arrays | {NUMBERS: _as_array(numbers)}


def put_state(estimator: Any, arrays: dict[str, Array]) -> None:
    """Return a fitted estimator of the same shape to that state; `partial_fit` then continues.

    ValueError for a counter or a rate that is out of its range.
    """
    numbers = _as_numbers(arrays[NUMBERS], estimator._state.to_arrays()[1])
    for l, layer in enumerate(estimator.network_.layers):
        for name, array in layer.arrays().items():
            array[...] = arrays[f"layers.{l}.{name}"]
    estimator._state = TrainingState.from_arrays(arrays, numbers)
    estimator._set_attributes()  # a model file keeps them, and there may be no step after this one


def check_arrays(expected: dict[str, Array], given: dict[str, Array]) -> None:
    """Raise ValueError unless the given arrays can be a later state of the expected ones."""
    if missing := sorted(set(expected) - set(given)):
        raise ValueError(f"{missing[0]} is missing")
    if more := sorted(set(given) - set(expected)):
        raise ValueError(f"{more[0]} belongs to no state")
    for name, array in given.items():
        wanted, record = expected[name], name.split(".")[1] in RECORDS
        shape = (max(array.size, 1),) if record else wanted.shape
        if array.shape != shape or array.dtype != wanted.dtype:
            raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}")
        if name.endswith(f".{NUMBERS}"):
            continue
        if not np.isfinite(array).all():
            raise ValueError(f"a number of {name} is not finite")
        if (".square." in name or name.endswith(".seconds")) and array.size and array.min() < 0:
            raise ValueError(f"a number of {name} is negative")
    for name in expected:
        if name.endswith(".seconds") and len(given[name]) != len(given[name[:-7] + "loss"]):
            raise ValueError(f"{name} has {len(given[name])} entries")


def _as_array(numbers: dict[str, Any]) -> Array:
    """The counters and rates, sorted by name; None is NaN."""
    ordered = [numbers[name] for name in sorted(numbers)]
    return np.array([math.nan if value is None else value for value in ordered], dtype=np.float64)


def _as_numbers(array: Array, like: dict[str, Any]) -> dict[str, Any]:
    """What `_as_array` has stored; ValueError for a number that is out of its range."""
    numbers: dict[str, Any] = {}
    for name, value in zip(sorted(like), array.tolist(), strict=True):
        if type(like[name]) is int:
            good = 0 <= value < 2**53 and value == int(value)
            numbers[name] = int(value) if good else None
        elif name == "rate":
            good = math.isnan(value) or 0 < value < math.inf
            numbers[name] = None if math.isnan(value) else value
        elif name == "damping":
            good, numbers[name] = 0 < value <= 1, value
        else:  # the best loss, the best score
            good, numbers[name] = not math.isnan(value), value
        if not good:
            raise ValueError(f"{name} is {value}")
    return numbers
