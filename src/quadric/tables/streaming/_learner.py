"""The model and the linear baseline, trained side by side on buffers of rows."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline

from quadric._utils.arrays import Array
from quadric.errors import MemoryLimitError, TableError
from quadric.estimators._data import scale_outputs
from quadric.tables._preprocessing import fitted_to_moments
from quadric.tables._schema import Schema
from quadric.tables._training import Settings, make_estimator, too_large
from quadric.tables.streaming._estimator_state import check_arrays, put_state, state_of

RATE = 0.01  # at the start; it falls in a straight line to a twentieth
LAST_RATE = 0.05


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
        return {
            f"{name}.{key}": array
            for name, estimator in self.estimators.items()
            for key, array in state_of(estimator).items()
        }

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
            own = {key: arrays[f"{name}.{key}"] for key in state_of(estimator)}
            put_state(estimator, own)
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
