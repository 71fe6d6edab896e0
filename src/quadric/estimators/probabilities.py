"""From the logits of a fitted classifier to classes and probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from quadric.arrays import Array
from quadric.estimators.checks import as_samples
from quadric.network import Network
from quadric.training import backprop

__all__ = ["LogitsToClasses", "checked_logits"]


def checked_logits(estimator: Any, X: Any) -> Array:
    """z of a fitted estimator's last layer for new data.

    Whether X is finite shows in the first layer's z (every input meets every neuron, and infinity
    times zero is not a number): X itself is looked through only where z is not.
    """
    check_is_fitted(estimator)
    X = validate_data(
        estimator, X,
        accept_sparse="csr", dtype=(np.float64, np.float32), reset=False, ensure_all_finite=False,
    )  # fmt: skip
    network, suspicious = estimator.network_, False

    def look(z: Array) -> None:
        nonlocal suspicious
        suspicious = suspicious or not bool(np.isfinite(z).all())

    with np.errstate(over="ignore", invalid="ignore"):
        z = backprop.logits(network.layers, network.activations, as_samples(X, network.dtype), look)
    if suspicious or not np.isfinite(z).all():
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
    if not np.isfinite(z).all():
        raise ValueError(
            f"X holds values so large (up to {abs(X).max():g}) that the output is not finite in "
            f"{network.dtype}. Scale the features as they were scaled in fit."
        )
    return z


class LogitsToClasses:
    """The methods of a classifier that has `_logits`, `classes_` and `network_`."""

    classes_: Array
    network_: Network

    if TYPE_CHECKING:  # what the class that uses this brings along

        def _logits(self, X: Any) -> Array: ...

    @property
    def _is_multilabel(self) -> bool:
        return False

    def decision_function(self, X: Any) -> Array:
        """The logits: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        z = self._logits(X)
        if len(self.classes_) == 2 and z.shape[1] == 2 and not self._is_multilabel:
            return z[:, 1] - z[:, 0]
        return z[:, 0] if z.shape[1] == 1 else z

    def predict(self, X: Any) -> Array:
        """The classes of the samples; for multi-label an array of 0 and 1."""
        z = self._logits(X)
        if self._is_multilabel:
            return (z > 0).astype(int)
        if z.shape[1] == 1:
            index = (z[:, 0] > 0).astype(int) if len(self.classes_) > 1 else np.zeros(len(z), int)
        else:
            index = z.argmax(axis=1)
        return self.classes_[index]

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`, computed without taking them: none is -inf early."""
        z = self._logits(X)
        if self._is_multilabel:
            return special.log_expit(z)
        if len(self.classes_) == 1:
            return np.zeros((len(z), 1), dtype=z.dtype)
        if z.shape[1] == 1:
            return np.hstack([special.log_expit(-z), special.log_expit(z)])
        if self.network_.activations[-1] == "softmax":
            return special.log_softmax(z, axis=1)
        each = special.log_expit(z)  # one sigmoid for each class, normalised
        return each - special.logsumexp(each, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities, shape (n_samples, n_classes); rows sum to 1 (multi-label apart)."""
        p = np.exp(self.predict_log_proba(X))
        return p if self._is_multilabel else p / p.sum(axis=1, keepdims=True)
