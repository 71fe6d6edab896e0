"""Regression with one or several outputs."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import StrOptions

from quadric.checks import Array
from quadric.core import ACTIVATIONS
from quadric.estimators._base import QuadraticNetworkEstimator
from quadric.estimators._data import FitData, Problem
from quadric.estimators._fitted_attributes import predict_from_logits

LINKS = {"squared_error": "identity", "poisson": "exponential"}  # the last activation


class QuadraticRegressor(RegressorMixin, QuadraticNetworkEstimator):
    """A regressor whose last layer is quadratic, for use in place of `MLPRegressor`.

    Quadratic neurons square their inputs, so put a `StandardScaler` in front.

    Parameters
    ----------
    hidden_layer_sizes, activation, layer_kinds : see `QuadraticClassifier`
        The layers.
    loss : {'squared_error', 'poisson'}, default='squared_error'
        Half the squared error, or half the Poisson deviance for targets that are not negative. With
        'poisson', the prediction is exp(z).
    init, dtype, solver, alpha, batch_size, learning_rate, learning_rate_init, power_t, shuffle, \
max_iter, random_state, tol, verbose, warm_start, momentum, nesterovs_momentum, early_stopping, \
validation_fraction, beta_1, beta_2, epsilon, n_iter_no_change, max_fun, \
on_divergence : see `QuadraticClassifier`
        Training. If the solver is 'lbfgs', the penalty `alpha` applies to targets of variance 1.

    Attributes
    ----------
    network_ : Network
        The trained network.
    feature_importances_ : array of shape (n_features,)
        For a single layer: the share of the variance of z that comes from each feature, if the
        features are independent and normal with mean 0 and variance 1.
    coefs_, intercepts_, loss_, best_loss_, loss_curve_, validation_scores_, \
best_validation_score_, n_iter_, t_, selection_, n_layers_, n_outputs_, n_features_in_, \
out_activation_
        As in `QuadraticClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = X[:, 0] * X[:, 1] - X[:, 2] ** 2
    >>> model = QuadraticRegressor(hidden_layer_sizes=(), random_state=0)
    >>> model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.99
    True
    """

    _y_dtype: ClassVar[Any] = np.float64
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **QuadraticNetworkEstimator._parameter_constraints,
        "loss": [StrOptions(set(LINKS))],
    }

    def _problem(self, data: FitData, *, anew: bool, incremental: bool) -> Problem:
        Y = data.y[:, None] if data.y.ndim == 1 else data.y
        if not anew and Y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {Y.shape[1]} outputs, but this {type(self).__name__} was fitted with "
                f"{self.n_outputs_}."
            )
        if self.loss == "poisson" and Y.min() < 0:
            raise ValueError(
                f"y must not be negative for loss='poisson'. Got a minimum of {Y.min():g}."
            )
        last = LINKS[self.loss]
        g = ACTIVATIONS[last].function
        return Problem(
            encode=lambda dtype: Y.astype(dtype),
            n_outputs=Y.shape[1],
            weight=data.weight,
            loss=self.loss,
            last=last,
            score=lambda z, Y, weight: float(r2_score(Y, g(z), sample_weight=weight)),
            standardize=last == "identity",
        )

    def predict(self, X: Any) -> Array:
        """Predict the targets.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            One row per sample, with the features that the model was fitted to, in the same order
            and on the same scale.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            The predicted values.
        """

        def answer(z: Array) -> Array:
            values = ACTIVATIONS[self.out_activation_].function(z)
            return values[:, 0] if z.shape[1] == 1 else values

        return predict_from_logits(self, X, answer)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
