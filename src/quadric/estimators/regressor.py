"""Regression with one or several outputs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from quadric.arrays import Array, Matrix
from quadric.estimators.base import QuadraticNetworkEstimator
from quadric.layers import Layer

__all__ = ["QuadraticRegressor", "scale_outputs"]


def scale_outputs(last: Layer, scale: Array, shift: Array) -> None:
    """Turn the output z of the layer into scale * z + shift."""
    factor = scale.astype(last.dtype)
    for name, array in last.arrays().items():
        if name in ("W", "b"):
            array *= factor[:, None] if name == "W" else factor
        elif name == "packed":
            array *= factor
    if last.kind != "reduced":
        last.arrays()["b"] += shift.astype(last.dtype)


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

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        activation: str = "tanh",
        *,
        layer_kinds: Any = "auto",
        loss: str = "squared_error",
        init: str = "relinear",
        solver: str = "auto",
        alpha: Any = "auto",
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 100,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: int = 10,
        max_fun: int = 15000,
        dtype: str | None = None,
        on_divergence: str = "recover",
    ) -> None:
        super().__init__(
            hidden_layer_sizes=hidden_layer_sizes, activation=activation, layer_kinds=layer_kinds,
            loss=loss, init=init, solver=solver, alpha=alpha, batch_size=batch_size,
            learning_rate=learning_rate, learning_rate_init=learning_rate_init, power_t=power_t,
            max_iter=max_iter, shuffle=shuffle, random_state=random_state, tol=tol,
            verbose=verbose, warm_start=warm_start, momentum=momentum,
            nesterovs_momentum=nesterovs_momentum, early_stopping=early_stopping,
            validation_fraction=validation_fraction, beta_1=beta_1, beta_2=beta_2,
            epsilon=epsilon, n_iter_no_change=n_iter_no_change, max_fun=max_fun, dtype=dtype,
            on_divergence=on_divergence,
        )  # fmt: skip

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

    def _encode_targets(self, y: Any, *, incremental: bool, first: bool) -> Array:
        y = np.asarray(y, dtype=np.float64)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        Y = y[:, None] if y.ndim == 1 else y
        if not first and Y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {Y.shape[1]} outputs, but this {type(self).__name__} was fitted with "
                f"{self.n_outputs_}."
            )
        return Y

    def _fit_lbfgs(self, X: Matrix, Y: Array, weights: Array | None) -> None:
        """Fit to standardised targets, and state the result in the targets' own units.

        The penalty then means the same whatever the targets' scale. A reduced last layer, a
        product, has no place for a mean: its targets are scaled and not centred.
        """
        last = self.network_.layers[-1]  # selection may put another network in this one's place
        mean = np.average(Y, axis=0, weights=weights)
        if last.kind == "reduced":
            mean = np.zeros_like(mean)
        largest = np.abs(Y - mean).max(axis=0)  # first, so that no square overflows
        largest[~(largest > 0)] = 1.0
        scale = np.sqrt(np.average(((Y - mean) / largest) ** 2, axis=0, weights=weights)) * largest
        scale[~(scale > 0)] = 1.0
        if self.t_ > 0:  # warm start: the network speaks in the targets' units
            scale_outputs(last, 1 / scale, -mean / scale)
        try:
            super()._fit_lbfgs(X, ((Y - mean) / scale).astype(Y.dtype), weights)
        finally:
            scale_outputs(self.network_.layers[-1], scale, mean)
        self.t_ += len(Y) * self.n_iter_

    def _loss_and_activation(self) -> tuple[str, str]:
        return "squared_error", "identity"

    def _score_of_logits(self, z: Array, Y: Array, sample_weight: Array | None) -> float:
        return float(r2_score(Y, z, sample_weight=sample_weight))

    def predict(self, X: Any) -> Array:
        """The predicted values, shape (n_samples,) or (n_samples, n_outputs)."""
        z = self._logits(X)
        return z[:, 0] if z.shape[1] == 1 else z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
