"""The model and the linear baseline, trained side by side on buffers of rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline

from quadric.arrays import Array
from quadric.errors import MemoryLimitError, TableError
from quadric.estimators.data import scale_outputs
from quadric.estimators.fitting import set_attributes
from quadric.tables.preprocessing import fitted_to_moments
from quadric.tables.schema import Schema
from quadric.tables.training import Settings, make_estimator, too_large
from quadric.training.state import TrainingState

__all__ = ["Learner", "check_arrays", "put_state", "state_of"]

RATE = 0.01  # at the start; it falls in a straight line to a twentieth
LAST_RATE = 0.05
NUMBERS = "numbers"
RECORDS = ("loss", "seconds")  # one entry an epoch; all other arrays keep their shapes


class Learner:
    """Learns from rows in the schema's columns; knows nothing of files.

    Parameters
    ----------
    schema : Schema
        Of the first pass; its moments standardise inputs and, for regression, targets.
        (Adam's steps are of a fixed size, so the targets must be, too.)
    settings : Settings
    """

    def __init__(self, schema: Schema, settings: Settings) -> None:
        self.schema, self.settings = schema, settings
        self.preprocess = fitted_to_moments(schema)
        # a reduced neuron, a product, has no place for a mean
        self.center = 0.0 if settings.kind == "reduced" else schema.target_mean
        self.scale = schema.target_std or 1.0  # numbers below 1e-150 have a variance of 0
        options: dict[str, Any] = {
            "solver": "adam",
            "shuffle": False,
            "learning_rate_init": RATE,
            "tol": 0.0,
        }
        linear = replace(settings, hidden=(), kind="linear")
        self.estimators = {
            "model": make_estimator(schema, settings, **options),
            "linear": make_estimator(schema, linear, **options),
        }

    def learn(self, X: Any, y: Array, progress: float) -> None:
        """One pass over the rows in their order; `progress` of the whole run is from 0 to 1."""
        if not len(y):
            return
        Z, target = self.preprocess.transform(X), self._target(y)
        for estimator in self.estimators.values():
            estimator.set_params(learning_rate_init=RATE * max(LAST_RATE, 1 - progress))
            self._partial_fit(estimator, Z, target)

    @property
    def has_learned(self) -> bool:
        """Whether there was any row to learn from."""
        return all("_state" in vars(estimator) for estimator in self.estimators.values())

    def _target(self, y: Array) -> Array:
        return y if self.schema.task == "classification" else (y - self.center) / self.scale

    def _partial_fit(self, estimator: Any, Z: Array, y: Array) -> None:
        try:
            if self.schema.task == "classification":
                estimator.partial_fit(Z, y, classes=np.array(self.schema.classes))
            else:
                estimator.partial_fit(Z, y)
        except MemoryLimitError as error:
            raise TableError(too_large(error)) from None
        if not estimator._state.epochs:  # the estimator ends its epoch quietly, the run must not
            raise KeyboardInterrupt

    def state(self) -> dict[str, Array]:
        """Arrays, for a checkpoint; none before the first row was learned."""
        if not self.has_learned:
            return {}
        arrays: dict[str, Array] = {}
        for name, estimator in self.estimators.items():
            own, numbers = state_of(estimator)
            arrays |= {f"{name}.{key}": array for key, array in own.items()}
            arrays[f"{name}.{NUMBERS}"] = _as_array(numbers)
        return arrays

    def restore(self, arrays: dict[str, Array]) -> None:
        """Return to a state; what follows is bit-identical.

        ValueError if these are not the arrays of such a state; nothing is changed then.
        """
        if not arrays:
            return
        other = Learner(self.schema, self.settings)
        other._learn_nothing()
        check_arrays(other.state(), arrays)
        for name, estimator in other.estimators.items():
            own = {
                key.removeprefix(f"{name}."): array
                for key, array in arrays.items()
                if key.startswith(f"{name}.")
            }
            put_state(estimator, own, _as_numbers(own.pop(NUMBERS), state_of(estimator)[1]))
        self.estimators = other.estimators

    def _learn_nothing(self) -> None:
        """Give the estimators networks of the right shape."""
        n = len(self.preprocess.get_feature_names_out())
        for estimator in self.estimators.values():
            first = self.schema.classes[:1] or (0.0,)
            self._partial_fit(estimator, np.zeros((1, n)), np.array(first))

    def finish(self) -> tuple[Pipeline, Pipeline]:
        """The model and the baseline behind their preprocessing, in the targets' own units."""
        for estimator in self.estimators.values():
            estimator.set_params(learning_rate_init=RATE)
            if self.schema.task == "regression":
                scale_outputs(
                    estimator.network_.layers[-1], np.array([self.scale]), np.array([self.center])
                )
        steps = [step for _, step in self.preprocess.steps]
        model, linear = (make_pipeline(*steps, one) for one in self.estimators.values())
        return model, linear


def state_of(estimator: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """Parameters and training state of a fitted estimator, as arrays and plain numbers."""
    arrays, numbers = estimator._state.to_arrays()
    for l, layer in enumerate(estimator.network_.layers):
        arrays |= {f"layers.{l}.{name}": array for name, array in layer.arrays().items()}
    return arrays, numbers


def put_state(estimator: Any, arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
    """Return a fitted estimator of the same shape to that state; `partial_fit` then continues."""
    for l, layer in enumerate(estimator.network_.layers):
        for name, array in layer.arrays().items():
            array[...] = arrays[f"layers.{l}.{name}"]
    estimator._state = TrainingState.from_arrays(arrays, numbers)
    set_attributes(estimator)  # a model file keeps them, and there may be no step after this one


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
