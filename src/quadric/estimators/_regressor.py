"""Regression with one or several outputs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from quadric._utils.arrays import Array
from quadric.estimators._base import QuadraticNetworkEstimator
from quadric.estimators._data import (
    ACCEPTED,
    check_weight,
    network_answers,
    sound,
    sound_targets,
)
from quadric.estimators._fitting import Task, fit_network, starts_anew
from quadric.training._memory_needs import converted_bytes


class QuadraticRegressor(RegressorMixin, QuadraticNetworkEstimator):
    """A regressor whose last layer is quadratic, behind scikit-learn's interface.

    Parameters and fitted attributes are those of `sklearn.neural_network.MLPRegressor` and, where
    they are not, those of `QuadraticClassifier`; the loss is half the squared error.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = X[:, 0] * X[:, 1] - X[:, 2] ** 2
    >>> model = QuadraticRegressor(hidden_layer_sizes=(), random_state=0)
    >>> model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.99
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **QuadraticNetworkEstimator._parameter_constraints,
        "loss": [StrOptions({"squared_error"})],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuadraticRegressor:
        """Fit to the data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,), optional
        """
        return self._fit(X, y, sample_weight, incremental=False)

    @available_if(lambda self: self._solver_is_stochastic())
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuadraticRegressor:
        """One epoch over the data given; the solver's memory is kept from call to call."""
        return self._fit(X, y, sample_weight, incremental=True)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> QuadraticRegressor:
        anew = starts_anew(self, incremental=incremental)
        y, given = sound_targets(y), sound(X)
        X, y = validate_data(self, given, y, reset=anew, multi_output=True, **ACCEPTED)
        weight = check_weight(sample_weight, X)
        y = np.asarray(y, dtype=np.float64)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        Y = y[:, None] if y.ndim == 1 else y
        if not anew and Y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {Y.shape[1]} outputs, but this {type(self).__name__} was fitted with "
                f"{self.n_outputs_}."
            )
        task = Task(
            lambda dtype: Y.astype(dtype), Y.shape[1], "squared_error", "identity", _r2,
            standardise=True,
        )  # fmt: skip
        more = converted_bytes(given, X) + (y.nbytes if y.ndim == 2 else 0)
        fit_network(self, X, weight, task, incremental=incremental, converted=more)
        return self

    def predict(self, X: Any) -> Array:
        """The predicted values, shape (n_samples,) or (n_samples, n_outputs)."""
        return network_answers(self, X, lambda z: z[:, 0] if z.shape[1] == 1 else z)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _r2(z: Array, Y: Array, weight: Array | None) -> float:
    return float(r2_score(Y, z, sample_weight=weight))
