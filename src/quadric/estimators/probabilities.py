"""From the logits of a fitted classifier to classes and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from quadric.arrays import Array
from quadric.estimators.data import network_logits
from quadric.network import Network

__all__ = ["LogitsToClasses"]


class LogitsToClasses:
    """The prediction methods of a classifier that has `classes_` and `network_`."""

    classes_: Array
    network_: Network

    @property
    def _is_multilabel(self) -> bool:
        binarizer = self.__dict__.get("_label_binarizer")
        return binarizer is not None and binarizer.y_type_.startswith("multilabel")

    def decision_function(self, X: Any) -> Array:
        """The logits: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        z = network_logits(self, X)
        if len(self.classes_) == 2 and z.shape[1] == 2 and not self._is_multilabel:
            return z[:, 1] - z[:, 0]
        return z[:, 0] if z.shape[1] == 1 else z

    def predict(self, X: Any) -> Array:
        """The classes of the samples; for multi-label an array of 0 and 1."""
        z = network_logits(self, X)
        if self._is_multilabel:
            return (z > 0).astype(int)
        if z.shape[1] == 1:
            index = (z[:, 0] > 0).astype(int) if len(self.classes_) > 1 else np.zeros(len(z), int)
        else:
            index = z.argmax(axis=1)
        return self.classes_[index]

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`, computed from the logits so that none underflows."""
        z = network_logits(self, X)
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
