"""The state of an estimator between two calls of `partial_fit`, as arrays that can be stored."""

import math
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.training import TrainingState

NUMBERS = "numbers"
RECORDS = ("loss", "seconds")  # arrays with one entry per epoch; the others have a fixed shape


def training_state(estimator: Any) -> dict[str, Array]:
    """Return the parameters and the solver's state of an estimator as named arrays.

    Parameters
    ----------
    estimator : QuadraticClassifier or QuadraticRegressor
        An estimator that was trained with `partial_fit`.

    Returns
    -------
    dict of array
        The layers' arrays are not copied.

    See Also
    --------
    restore_training : Continue from this state.
    """
    arrays, numbers = estimator._state.to_arrays()
    values = [math.nan if numbers[name] is None else numbers[name] for name in sorted(numbers)]
    return arrays | _parameters(estimator) | {NUMBERS: np.array(values, dtype=np.float64)}


def restore_training(
    estimator: Any, arrays: dict[str, Array], n_features: int, classes: Any = None
) -> None:
    """Restore the result of `training_state`, so that `partial_fit` continues bit-identically.

    Parameters
    ----------
    estimator : QuadraticClassifier or QuadraticRegressor
        A new estimator with the same parameters.
    arrays : dict of array
        The state. It may come from a file: everything is checked.
    n_features : int
    classes : array, optional
        The classes of a classifier, as in `partial_fit`.

    Raises
    ------
    ValueError
        If the arrays are not those of a valid state of such an estimator.

    Examples
    --------
    >>> from quadric import QuadraticRegressor
    >>> X, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    >>> first = QuadraticRegressor((), random_state=0).partial_fit(X, y)
    >>> second = QuadraticRegressor((), random_state=0)
    >>> restore_training(second, training_state(first), n_features=2)
    >>> bool((second.partial_fit(X, y).predict(X) == first.partial_fit(X, y).predict(X)).all())
    True
    """
    # one row of zeros creates the network and the fitted attributes; its effect is overwritten
    target = np.zeros(1) if classes is None else np.asarray(classes)[:1]
    options = {} if classes is None else {"classes": classes}
    estimator.partial_fit(np.zeros((1, n_features)), target, **options)
    _check_arrays(training_state(estimator), arrays)
    names = estimator._state.to_arrays()[1]
    numbers = {
        name: _checked_number(name, value, is_integer=type(names[name]) is int)
        for name, value in zip(sorted(names), arrays[NUMBERS].tolist(), strict=True)
    }
    for name, array in _parameters(estimator).items():
        array[...] = arrays[name]
    estimator._state = TrainingState.from_arrays(arrays, numbers)
    estimator._set_attributes()  # model files need them, even without further training


def _parameters(estimator: Any) -> dict[str, Array]:
    return {
        f"layers.{l}.{name}": array
        for l, layer in enumerate(estimator.network_.layers)
        for name, array in layer.arrays().items()
    }


def _check_arrays(expected: dict[str, Array], given: dict[str, Array]) -> None:
    """Raise ValueError unless the given arrays could be a later state of the expected ones."""
    if different := sorted(set(expected) ^ set(given)):
        raise ValueError(f"the array {different[0]} is missing or unknown")
    for name, array in given.items():
        shape = (max(array.size, 1),) if name in RECORDS else expected[name].shape
        if array.shape != shape or array.dtype != expected[name].dtype:
            raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}")
        if name != NUMBERS and not np.isfinite(array).all():
            raise ValueError(f"{name} contains a number that is not finite")
        if (".square." in name or name == "seconds") and (array < 0).any():
            raise ValueError(f"{name} contains a negative number")
    if given["seconds"].size != given["loss"].size:
        raise ValueError(f"seconds has {given['seconds'].size} entries")


def _checked_number(name: str, value: float, *, is_integer: bool) -> Any:
    """Return a counter or a rate if it is in range; NaN stands for None."""
    if is_integer and 0 <= value < 2**53 and value == int(value):
        return int(value)
    if name == "rate" and math.isnan(value):
        return None
    ranges = {
        "rate": 0 < value < math.inf,
        "damping": 0 < value <= 1,
        "typical_loss": 0 <= value < math.inf,
    }
    if is_integer or not ranges.get(name, not math.isnan(value)):
        raise ValueError(f"{name} is {value}")
    return value
