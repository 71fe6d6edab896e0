"""Training of a model and a linear baseline on the same buffers of rows."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from sklearn.pipeline import Pipeline, make_pipeline

from quadric.apps.shell.tables._linear_baseline import LinearBaseline
from quadric.apps.shell.tables._options import Settings
from quadric.apps.shell.tables._schema import Schema
from quadric.apps.shell.tables._training import (
    make_estimator,
    memory_limit_as_table_error,
    preprocessing,
)
from quadric.checks import Array
from quadric.estimators import scale_outputs
from quadric.training import TrainingState
from quadric.utils import first_applying

RATE = 0.01  # initial learning rate, which decreases linearly to RATE * LAST_RATE
LAST_RATE = 0.05
NUMBERS = "numbers"
RECORDS = ("loss", "seconds")  # arrays with one entry per epoch; the others have a fixed shape


class Learner:
    """A model and a linear baseline that are trained on buffers of rows.

    Parameters
    ----------
    schema : Schema
        The result of the first pass. Its moments are used to standardize the inputs and, for
        regression, the targets, because Adam's steps have a fixed size.
    settings : Settings
    """

    def __init__(self, schema: Schema, settings: Settings) -> None:
        self.schema, self.settings = schema, settings
        self.preprocess = fitted_to_moments(schema)
        # the output of a reduced neuron is a product, so finish() cannot add a mean to it
        self.center = 0.0 if settings.kind == "reduced" else schema.target_mean
        self.scale = schema.target_std or 1.0  # the variance of tiny numbers can underflow to 0
        adam: dict[str, Any] = {"solver": "adam", "shuffle": False, "tol": 0.0}
        adam["learning_rate_init"] = RATE
        if settings.class_weight is not None and schema.classes:
            adam["class_weight"] = balanced_weights(schema)
        linear = replace(settings, hidden=(), kind="linear")  # type: ignore[arg-type]  # not an option
        self.estimators = {
            "model": make_estimator(schema, settings, **adam),
            "linear": make_estimator(schema, linear, **adam),
        }

    @property
    def has_learned(self) -> bool:
        """Whether the estimators have been trained on any row."""
        return all("_state" in vars(estimator) for estimator in self.estimators.values())

    def learn(self, X: Any, y: Array, progress: float) -> None:
        """Train on the rows in order; `progress` is the fraction of the run completed so far."""
        if len(y):
            target = y if self.schema.classes else (y - self.center) / self.scale
            rate = RATE * max(LAST_RATE, 1 - progress)
            self._partial_fit(self.preprocess.transform(X), target, rate)

    def _partial_fit(self, Z: Array, y: Array, rate: float) -> None:
        classes = {"classes": np.array(self.schema.classes)} if self.schema.classes else {}
        for estimator in self.estimators.values():
            estimator.set_params(learning_rate_init=rate)
            with memory_limit_as_table_error():
                estimator.partial_fit(Z, y, **classes)
            if not estimator._state.epochs:  # the estimator has caught a KeyboardInterrupt
                raise KeyboardInterrupt

    def state(self) -> dict[str, Array]:
        """Return the arrays for a checkpoint; empty before training on the first row."""
        return {
            f"{name}.{key}": array
            for name, estimator in self.estimators.items()
            if self.has_learned
            for key, array in state_of(estimator).items()
        }

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore a state, so that training continues as if it had never been interrupted.

        The result is bit-identical. Raises ValueError if the arrays are not those of a valid state.
        """
        # training on one artificial row creates networks with the right shapes
        row = np.zeros((1, len(self.preprocess.get_feature_names_out())))
        self._partial_fit(row, np.array(self.schema.classes[:1] or (0.0,)), RATE)
        check_arrays(self.state(), arrays)
        for name, estimator in self.estimators.items():
            put_state(estimator, {key: arrays[f"{name}.{key}"] for key in state_of(estimator)})

    def finish(self) -> tuple[Pipeline, LinearBaseline]:
        """Return the model and the baseline, which predict in the target's units."""
        for estimator in self.estimators.values():
            estimator.set_params(learning_rate_init=RATE)
            if self.schema.task == "regression":
                last = estimator.network_.layers[-1]
                scale_outputs(last, np.array([self.scale]), np.array([self.center]))
        steps = [step for _, step in self.preprocess.steps]
        model, linear = self.estimators.values()
        baseline = LinearBaseline.of_layer(linear.network_.layers[-1], self.schema)
        return make_pipeline(*steps, model), baseline


def balanced_weights(schema: Schema) -> dict[Any, float]:
    """Return the weights of 'balanced', which `partial_fit` cannot compute from a buffer."""
    used = sum(schema.class_counts) / len(schema.classes)
    return {
        label: used / count
        for label, count in zip(schema.classes, schema.class_counts, strict=True)
    }


def fitted_to_moments(schema: Schema) -> Pipeline:
    """Return the preprocessing steps, fitted to the moments and categories in the schema.

    They are fitted to a few rows with the same means, standard deviations and categories as the
    whole table: alternately mean + std and mean - std, and every category at least once.
    """
    rows = max([2, *(len(column.categories) + 1 for column in schema.columns)])
    rows += rows % 2
    data = {}
    for column in schema.columns:
        if column.kind == "category":
            values: list[Any] = [*column.categories, *([None] if column.missing else [])]
            data[column.name] = pl.Series((values * rows)[:rows], dtype=pl.String)
        else:
            values = [column.mean + column.std, column.mean - column.std] * (rows // 2)
            data[column.name] = pl.Series(values, dtype=pl.Float64)
    return make_pipeline(*preprocessing(schema)).fit(pl.DataFrame(data))


def state_of(estimator: Any) -> dict[str, Array]:
    """Return the parameters and the training state of a fitted estimator as named arrays."""
    arrays, numbers = estimator._state.to_arrays()
    values = [math.nan if numbers[name] is None else numbers[name] for name in sorted(numbers)]
    return arrays | _parameters(estimator) | {NUMBERS: np.array(values, dtype=np.float64)}


def put_state(estimator: Any, arrays: dict[str, Array]) -> None:
    """Restore the state of a fitted estimator of the same shape, to continue with `partial_fit`.

    Raises ValueError if a counter or a rate is out of range.
    """
    like = estimator._state.to_arrays()[1]
    numbers = {
        name: _checked_number(name, value, is_integer=type(like[name]) is int)
        for name, value in zip(sorted(like), arrays[NUMBERS].tolist(), strict=True)
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


def check_arrays(expected: dict[str, Array], given: dict[str, Array]) -> None:
    """Raise ValueError unless the given arrays could be a later state of the expected ones."""
    if different := sorted(set(expected) ^ set(given)):
        raise ValueError(f"the array {different[0]} is missing or unknown")
    for name, array in given.items():
        wanted, record = expected[name], name.split(".")[1] in RECORDS
        shape = (max(array.size, 1),) if record else wanted.shape
        seconds = name.endswith(".seconds")
        problems = {
            f"has shape {array.shape} and dtype {array.dtype}": (
                array.shape != shape or array.dtype != wanted.dtype
            ),
            "contains a number that is not finite": (
                not name.endswith(f".{NUMBERS}") and not np.isfinite(array).all()
            ),
            "contains a negative number": (".square." in name or seconds) and (array < 0).any(),
            f"has {array.size} entries": (
                seconds and array.size != given[name.removesuffix("seconds") + "loss"].size
            ),
        }
        if problem := first_applying(problems):
            raise ValueError(f"{name} {problem}")


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
