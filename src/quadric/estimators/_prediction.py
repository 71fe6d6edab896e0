"""Prediction: from the logits of a fitted network to values, classes and probabilities."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse, special
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from quadric.checks import Array, as_csr
from quadric.core import Stack
from quadric.estimators._data import ACCEPTED, check_inputs
from quadric.network import Network
from quadric.training import Architecture, check_answers, converted_bytes, matrix_bytes


def predict_from_logits(estimator: Any, X: Any, answer: Callable[[Array], Array]) -> Array:
    """Return answer(z) for the rows of new data, where z contains a fitted estimator's logits.

    Rows are processed in blocks, so that no array is larger than X or the result. The
    computation has the dtype of X or of the network, whichever is more precise, as in scikit-learn.

    Non-finite values of X show up in the first layer's z, because every neuron multiplies every
    input by a weight, and infinity times zero is NaN. X itself is searched only if z is not finite.
    """
    check_is_fitted(estimator)
    given = check_inputs(X)
    X = validate_data(estimator, given, reset=False, ensure_all_finite=False, **ACCEPTED)
    network, answers, allocated = estimator.network_, None, converted_bytes(given, X)
    dtype = np.result_type(X.dtype, network.dtype)
    shape = replace(Architecture.of(network.layers), itemsize=dtype.itemsize)
    allocated += matrix_bytes(X, dtype.itemsize) if sparse.issparse(X) else 0
    allocated += shape.n_parameters * dtype.itemsize if dtype != network.dtype else 0
    check_answers(shape, X.shape[0], 0, allocated)  # an answer's size is not known yet
    inputs = as_csr("X", X, dtype) if sparse.issparse(X) else X
    network = network if dtype == network.dtype else network.astype(dtype)
    try:
        for rows, z in Stack(network.layers, network.activations).logit_blocks(inputs):
            part = answer(z)
            if answers is None:
                check_answers(shape, X.shape[0], part.nbytes // len(part), allocated)
                answers = np.empty((X.shape[0], *part.shape[1:]), dtype=part.dtype)
            answers[rows] = part
    except ValueError:
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
        raise
    assert answers is not None  # scikit-learn raises an error for data without rows
    return answers


class ClassPredictions:
    """The prediction methods of a classifier with `classes_` and `network_`."""

    classes_: Array
    network_: Network

    @property
    def _is_multilabel(self) -> bool:
        binarizer = self.__dict__.get("_label_binarizer")
        return binarizer is not None and binarizer.y_type_.startswith("multilabel")

    def decision_function(self, X: Any) -> Array:
        """Compute the logits, shape (n_samples,) for two classes, else (n_samples, n_classes)."""

        def decide(z: Array) -> Array:
            if len(self.classes_) == 2 and z.shape[1] == 2 and not self._is_multilabel:
                return z[:, 1] - z[:, 0]
            return z[:, 0] if z.shape[1] == 1 else z

        return predict_from_logits(self, X, decide)

    def predict(self, X: Any) -> Array:
        """Predict the classes, shape (n_samples,), or an array of 0 and 1 for multi-label data."""

        def choose(z: Array) -> Array:
            if self._is_multilabel:
                return (z > 0).astype(int)
            if z.shape[1] > 1:
                return self.classes_[z.argmax(axis=1)]
            return self.classes_[((z[:, 0] > 0) & (len(self.classes_) > 1)).astype(int)]

        return predict_from_logits(self, X, choose)

    def predict_log_proba(self, X: Any) -> Array:
        """Compute the logarithms of `predict_proba` from the logits, so that none underflows."""
        return predict_from_logits(self, X, self._log_proba)

    def predict_proba(self, X: Any) -> Array:
        """Compute the probabilities of the classes or labels, shape (n_samples, n_classes)."""

        def proba(z: Array) -> Array:
            p = np.exp(self._log_proba(z))
            return p if self._is_multilabel else p / p.sum(axis=1, keepdims=True)

        return predict_from_logits(self, X, proba)

    def _log_proba(self, z: Array) -> Array:
        if self._is_multilabel:
            return special.log_expit(z)
        if len(self.classes_) == 1:
            return np.zeros((len(z), 1), dtype=z.dtype)
        if z.shape[1] == 1:
            return np.hstack([special.log_expit(-z), special.log_expit(z)])
        if self.network_.activations[-1] == "softmax":
            return special.log_softmax(z, axis=1)
        each = special.log_expit(z)  # one sigmoid per class, normalized
        return each - special.logsumexp(each, axis=1, keepdims=True)
