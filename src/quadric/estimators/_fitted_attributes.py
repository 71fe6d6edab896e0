"""What a fitted estimator offers: views of its network, importances, and predictions."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, SupportsIndex

import numpy as np
from scipy import sparse, special
from sklearn.base import BaseEstimator
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from quadric.checks import Array, as_csr
from quadric.cluster import is_collection, lazily
from quadric.core import (
    Layer,
    Quadratic,
    Reduced,
    Stack,
    checked_array,
    log_softmax,
    monomial_coefficients,
    term_variances,
)
from quadric.estimators._data import ACCEPTED, check_inputs
from quadric.network import Network
from quadric.training import Architecture, check_answers, converted_bytes, matrix_bytes

FLOATS = np.dtype(np.float64), np.dtype(np.float32)

# ---- parameters and importances --------------------------------------------------------------


class HasNetwork(BaseEstimator):
    """An estimator with a `network_`, once it is fitted, and the importance of each input."""

    network_: Network

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a network; an interrupted first `fit` may leave other attributes."""
        return "network_" in vars(self)

    def _accepts_as_it_is(self, X: Any) -> bool:
        """Whether scikit-learn's validation would return X itself, without a warning.

        For a single row, the validation would take several times as long as the prediction.
        """
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and len(X) > 0
            and X.dtype in FLOATS
            and X.shape[1] == vars(self).get("n_features_in_")
            and "feature_names_in_" not in vars(self)
        )

    def _fitted(self) -> Network:
        if "network_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self.network_

    @property
    def feature_importances_(self) -> Array:
        """Share of the variance of z that comes from each input, shape (n_features,); sums to 1.

        The inputs are assumed to be independent and normal with mean 0 and variance 1, as after a
        `StandardScaler`. Then w_i x_i has variance w_i², q_ii x_i² has 2 q_ii², and 2 q_ij x_i x_j
        has 4 q_ij², half of which counts for each of its inputs. Variances are added over the
        neurons; with softmax, the mean of all neurons is subtracted first. Only available for a
        single layer. `quadric.explain.explain(model, X)` computes the shares on data, and
        `quadric.explain.permutation_importances` works for every model.
        """
        network = self._fitted()
        if len(network.layers) > 1:
            raise AttributeError(
                "feature_importances_ needs a single layer (hidden_layer_sizes=()). This network "
                "has hidden layers; use quadric.explain.permutation_importances(model, X, y)."
            )
        return _importances(network)


class _Views(list[Array]):
    """Views of one parameter array of each layer; assigning to an item changes the layer."""

    def __init__(self, name: str, views: Sequence[Array]) -> None:
        super().__init__(views)
        self.name = name

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, SupportsIndex):
            raise TypeError(f"assign to all of {self.name}, or to one item of it.")
        view = self[index]
        view[...] = checked_array(f"{self.name}[{index}]", value, view.shape, view.dtype)

    def assign(self, values: Any) -> None:
        """Change all layers, or none if a value is not valid."""
        if len(values) != len(self):
            raise ValueError(
                f"{self.name} must have one array for each of the {len(self)} layers. "
                f"Got {len(values)} instead."
            )
        checked = [
            checked_array(f"{self.name}[{l}]", value, view.shape, view.dtype)
            for l, (value, view) in enumerate(zip(values, self, strict=True))
        ]
        for view, value in zip(self, checked, strict=True):
            view[...] = value


class FittedAttributes(HasNetwork):
    """The attributes that the network estimators share with scikit-learn's networks."""

    @property
    def coefs_(self) -> _Views:
        """W of each layer, transposed: shape (inputs, neurons), as in scikit-learn."""
        return _Views("coefs_", [layer.W.T for layer in self._fitted().layers])

    @coefs_.setter
    def coefs_(self, values: Any) -> None:
        self.coefs_.assign(values)

    @property
    def intercepts_(self) -> _Views:
        """b of each layer."""
        return _Views("intercepts_", [layer.b for layer in self._fitted().layers])

    @intercepts_.setter
    def intercepts_(self, values: Any) -> None:
        self.intercepts_.assign(values)

    @property
    def out_activation_(self) -> str:
        """The activation of the last layer."""
        return self._fitted().activations[-1]

    @property
    def n_layers_(self) -> int:
        """The number of layers, including the input."""
        return len(self._fitted().layers) + 1

    @property
    def n_outputs_(self) -> int:
        """The number of neurons of the last layer."""
        return self._fitted().n_outputs


def _refused(name: str) -> property:
    """Return a property that raises AttributeError and names the attributes to use instead.

    Other tools take a model with `coef_` for a linear one: shap would explain it as such, and RFE
    and SelectFromModel would ignore its squares and products.
    """

    def refuse(self: Any, *_: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} has no attribute {name!r}, because z = x'Qx + w'x + b is not "
            "linear. Use w_, b_ and Q_, or feature_importances_."
        )

    return property(refuse, refuse)


def _parameter(name: str, field: str, doc: str) -> property:
    """Return a property for a parameter of the only layer, to which an array can be assigned."""

    def read(self: Any) -> Any:
        return getattr(self._fitted().layers[0], field)

    def assign(self: Any, value: Any) -> None:
        layer = self._fitted().layers[0]
        shape = getattr(layer, field).shape
        setattr(layer, field, checked_array(name, value, shape, layer.dtype))

    return property(read, assign, doc=doc)


class NeuronAttributes(HasNetwork):
    """The parameters of an estimator with a single quadratic layer, which can be assigned."""

    coef_ = _refused("coef_")
    intercept_ = _refused("intercept_")
    w_ = _parameter("w_", "W", "The linear coefficients, shape (n_neurons, n_features).")
    b_ = _parameter("b_", "b", "The intercepts, shape (n_neurons,).")
    Q_ = _parameter(
        "Q_",
        "Q",
        "The symmetric matrices, shape (n_neurons, n_features, n_features), read-only.\n\n"
        "To change them, assign a whole array. A nonsymmetric Q is replaced by (Q + Q')/2.",
    )


def _importances(network: Network) -> Array:
    layer = network.layers[0].astype(np.dtype(np.float64))
    n, m = layer.n_inputs, layer.n_outputs
    mean_w, mean_Q, shares = np.zeros(n), np.zeros((n, n)), np.zeros(n)
    if network.activations[0] == "softmax":
        for k in range(m):
            w, Q = _coefficients(layer, k)
            mean_w += w / m
            mean_Q += Q / m
    for k in range(m):
        w, Q = _coefficients(layer, k)
        Q = monomial_coefficients(Q - mean_Q)
        linear, products = term_variances(w - mean_w, Q, np.ones(n))
        # a diagonal entry occurs in both sums and therefore counts in full
        shares += linear + (products.sum(axis=0) + products.sum(axis=1)) / 2
    total = shares.sum()
    return shares / total if total > 0 else shares


def _coefficients(layer: Layer, k: int) -> tuple[Array, Any]:
    """w, shape (n,), and the symmetric matrix Q, shape (n, n), of one neuron of any kind."""
    if isinstance(layer, Quadratic):
        return layer.W[k], Quadratic.of(packed=layer.packed[:, [k]]).Q[0]
    if isinstance(layer, Reduced):
        product = np.outer(layer.W[k], layer.U[k])
        return layer.c[k] * layer.W[k] + layer.b[k] * layer.U[k], (product + product.T) / 2
    return layer.W[k], np.zeros((layer.n_inputs, layer.n_inputs))


# ---- predictions -----------------------------------------------------------------------------


def predict_from_logits(estimator: HasNetwork, X: Any, answer: Callable[[Array], Array]) -> Array:
    """Return answer(z) for the rows of new data, where z contains a fitted estimator's logits.

    Rows are processed in blocks, so that no array is larger than X or the result. The
    computation has the dtype of X or of the network, whichever is more precise, as in scikit-learn.

    Non-finite values of X show up in the first layer's z, because every neuron multiplies every
    input by a weight, and infinity times zero is NaN. X itself is searched only if z is not finite.
    """
    if "network_" not in vars(estimator):
        check_is_fitted(estimator)
    given = X
    if not estimator._accepts_as_it_is(X):
        if is_collection(X):
            return lazily(partial(predict_from_logits, estimator, answer=answer), X)
        given = check_inputs(X)
        X = validate_data(estimator, given, reset=False, ensure_all_finite=False, **ACCEPTED)
    network, n_samples = estimator.network_, X.shape[0]
    own_dtype = network.layers[0].dtype
    dtype = X.dtype if X.dtype == own_dtype else np.result_type(X.dtype, own_dtype)
    shape = Architecture.of(network.layers, dtype.itemsize)
    each = shape.n_outputs * dtype.itemsize  # the answers of a single block are never much larger
    if n_samples > shape.block_rows:
        each = answer(np.zeros((1, shape.n_outputs), dtype)).nbytes
    allocated = converted_bytes(given, X)
    allocated += matrix_bytes(X, dtype.itemsize) if sparse.issparse(X) else 0
    allocated += shape.n_parameters * dtype.itemsize if dtype != own_dtype else 0
    check_answers(shape, n_samples, each, allocated)
    inputs = as_csr("X", X, dtype) if sparse.issparse(X) else X
    network = network if dtype == own_dtype else network.astype(dtype)
    answers: Any = None  # its shape and dtype are those of the first block
    try:
        for rows, z in Stack(network.layers, network.activations).logit_blocks(inputs):
            part = answer(z)
            if answers is None:
                answers = np.empty((n_samples, *part.shape[1:]), dtype=part.dtype)
            answers[rows] = part
    except ValueError:
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
        raise
    return answers


class ClassPredictions(HasNetwork):
    """The prediction methods of a classifier with `classes_` and `network_`."""

    classes_: Array

    @property
    def _is_multilabel(self) -> bool:
        binarizer = self.__dict__.get("_label_binarizer")
        return binarizer is not None and binarizer.y_type_.startswith("multilabel")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy of the predictions.

        Parameters
        ----------
        X : array, sparse matrix or Dask collection of shape (n_samples, n_features)
            The samples.
        y : array or Dask collection of shape (n_samples,)
            The true classes.
        sample_weight : array of shape (n_samples,), default=None
            The weights of the samples; all 1 if None.

        Returns
        -------
        float
            The share of samples whose class is predicted.
        """
        if is_collection(X):
            from quadric.estimators import _on_cluster

            return _on_cluster.accuracy(self, X, y, sample_weight)
        return float(super().score(X, y, sample_weight))

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
            return log_softmax(z)
        each = special.log_expit(z)  # one sigmoid per class, normalized
        return each - special.logsumexp(each, axis=1, keepdims=True)
