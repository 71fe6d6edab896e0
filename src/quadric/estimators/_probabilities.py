"""From the logits of a fitted classifier to classes and probabilities."""

from typing import Any

import numpy as np
from scipy import special

from quadric._utils.arrays import Array
from quadric.estimators._data import network_answers
from quadric.network import Network


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

        def decide(z: Array) -> Array:
            if len(self.classes_) == 2 and z.shape[1] == 2 and not self._is_multilabel:
                return z[:, 1] - z[:, 0]
            return z[:, 0] if z.shape[1] == 1 else z

        return network_answers(self, X, decide)

    def predict(self, X: Any) -> Array:
        """The classes of the samples; for multi-label an array of 0 and 1."""

        def choose(z: Array) -> Array:
            if self._is_multilabel:
                return (z > 0).astype(int)
            if z.shape[1] > 1:
                return self.classes_[z.argmax(axis=1)]
            index = (z[:, 0] > 0).astype(int) if len(self.classes_) > 1 else np.zeros(len(z), int)
            return self.classes_[index]

        return network_answers(self, X, choose)

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`, computed from the logits so that none underflows."""
        return network_answers(self, X, self._log_proba)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities, shape (n_samples, n_classes); rows sum to 1 (multi-label apart)."""

        def proba(z: Array) -> Array:
            p = np.exp(self._log_proba(z))
            return p if self._is_multilabel else p / p.sum(axis=1, keepdims=True)

        return network_answers(self, X, proba)

    def _log_proba(self, z: Array) -> Array:
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
