"""Classification: binary, multi-class and multi-label."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
    check_classification_targets,
    type_of_target,
    unique_labels,
)
from sklearn.utils.validation import validate_data

from quadric._utils.arrays import Array, unmasked
from quadric.core._losses import accuracy
from quadric.estimators._base import QuadraticNetworkEstimator
from quadric.estimators._data import (
    ACCEPTED,
    check_weight,
    sound,
    sound_targets,
    with_class_weight,
)
from quadric.estimators._fitting import Task, fit_network, starts_anew
from quadric.estimators._probabilities import LogitsToClasses
from quadric.training._memory_needs import converted_bytes


class QuadraticClassifier(LogitsToClasses, ClassifierMixin, QuadraticNetworkEstimator):
    """A classifier whose last layer is quadratic, behind scikit-learn's interface.

    Parameters and fitted attributes are those of `sklearn.neural_network.MLPClassifier` wherever
    they mean the same; change the class name and nothing else. Quadratic neurons square their
    inputs: put a `StandardScaler` in front.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, int or 'auto', default='auto'
        The widths of the hidden layers; () is a single layer. 'auto' takes a single quadratic
        layer or 32 hidden neurons, whichever does better on held-out samples ('lbfgs', and at
        most 32 features; else 32 hidden neurons).
    activation : {'identity', 'logistic', 'tanh', 'relu'}, default='tanh'
        Of the hidden layers.
    layer_kinds : 'auto', a kind, or a sequence of kinds, default='auto'
        'linear', 'quadratic' or 'reduced' for each layer, the output layer last. 'auto' is the
        paper's advice: linear hidden layers and a quadratic output.
    loss : {'auto', 'cross_entropy', 'binary_cross_entropy'}, default='auto'
        'auto' is softmax with cross-entropy for several classes, and a sigmoid otherwise.
        'binary_cross_entropy' gives the paper's one sigmoid for each class.
    init : {'relinear', 'glorot', 'normal', 'identity'}, default='relinear'
        Initial values, see `quadric.core._initial_values`.
    solver : {'auto', 'lbfgs', 'adam', 'sgd'}, default='auto'
        'auto' is 'lbfgs' for up to 20 000 samples, and 'adam' for more, for `partial_fit`, and
        where batches are asked for (an integer `batch_size`, `early_stopping`).
        'sgd' with batch_size=1 and momentum=0 is the paper's algorithm, in a compiled loop.
    alpha : float or 'auto', default='auto'
        L2 penalty on the weights (on Q: its independent entries), divided by the batch's sum of
        weights. Biases are not penalised. 'auto' chooses among a few values on held-out samples
        ('lbfgs', whose batch is all of the data), and is 0.0001 otherwise.
    batch_size, learning_rate, learning_rate_init, power_t, max_iter, shuffle, random_state, tol, \
verbose, warm_start, momentum, nesterovs_momentum, early_stopping, validation_fraction, beta_1, \
beta_2, epsilon, n_iter_no_change, max_fun
        As in MLPClassifier. `verbose` reports on stderr: a live bar on a terminal, else lines.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes, multiplied into `sample_weight`. 'balanced' counts samples by
        their weight.
    dtype : {'float32', 'float64'} or None, default=None
        The type of the parameters; None takes that of the data.
    on_divergence : {'recover', 'raise'}, default='recover'
        What to do when an epoch of 'sgd' or 'adam' diverges (a value is not finite, or the mean
        loss exceeds ten times the loss of the same samples at the start of the call): return to
        the last good epoch and lower the learning rate (with a warning), or raise
        `DivergenceError`.

    Attributes
    ----------
    network_ : Network
        The trained network.
    classes_ : array of shape (n_classes,)
    coefs_, intercepts_ : lists of arrays
        W (transposed) and b of each layer; the rest of a layer is in `network_`.
    loss_, best_loss_ : float
    loss_curve_ : list of float
        `partial_fit` keeps the last ten thousand or more, so that it can be called for ever.
    validation_scores_ : list of float or None
    n_iter_, t_, n_layers_, n_outputs_, n_features_in_ : int
    out_activation_ : str

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), QuadraticClassifier(random_state=0))
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **QuadraticNetworkEstimator._parameter_constraints,
        "loss": [StrOptions({"auto", "cross_entropy", "binary_cross_entropy"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        activation: str = "tanh",
        *,
        layer_kinds: Any = "auto",
        loss: str = "auto",
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
        class_weight: Any = None,
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
        self.class_weight = class_weight

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuadraticClassifier:
        """Fit to the data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,), or (n_samples, n_labels) of 0 and 1 for multi-label
        sample_weight : array of shape (n_samples,), optional
        """
        return self._fit(X, y, sample_weight, incremental=False)

    @available_if(lambda self: self._solver_is_stochastic())
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> QuadraticClassifier:
        """One epoch over the data given; the solver's memory is kept from call to call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array of shape (n_classes,), optional
            All classes there will be; needed in the first call.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight 'balanced' is not supported for partial_fit. In order to use "
                "'balanced' weights, use compute_class_weight('balanced', classes=classes, y=y) "
                "and pass the resulting weights as the class_weight parameter."
            )
        sound(X), unmasked("y", y)  # before anything is set
        if _check_partial_fit_first_call(self, unmasked("classes", classes)):
            self._label_binarizer = LabelBinarizer()
            multilabel = type_of_target(y).startswith("multilabel")
            self._label_binarizer.fit(y if multilabel else classes)
        return self._fit(X, y, sample_weight, incremental=True)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> QuadraticClassifier:
        anew = starts_anew(self, incremental=incremental)
        y, given = sound_targets(y), sound(X)
        X, y = validate_data(self, given, y, reset=anew, multi_output=True, **ACCEPTED)
        weight = check_weight(sample_weight, X)
        check_classification_targets(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        self._check_classes(y, anew=anew, incremental=incremental)
        weight = with_class_weight(self.class_weight, y, weight)
        more = converted_bytes(given, X) + (y.nbytes if y.ndim == 2 else 0)
        fit_network(self, X, weight, self._task(y), incremental=incremental, converted=more)
        return self

    def _check_classes(self, y: Array, *, anew: bool, incremental: bool) -> None:
        """Learn the classes, or check that they are those of the last call."""
        if "classes_" not in self.__dict__ or (anew and not incremental):
            self._label_binarizer = LabelBinarizer().fit(y)
            self.classes_ = self._label_binarizer.classes_
            return
        labels = unique_labels(y)
        if self.warm_start and not incremental:
            if set(labels) != set(self.classes_):
                raise ValueError(
                    "warm_start can only be used where `y` has the same classes as in the "
                    f"previous call to fit. Previously got {self.classes_}, `y` has {labels}"
                )
        elif np.setdiff1d(labels, self.classes_).size:
            raise ValueError(
                f"`y` has classes not in `self.classes_`. `self.classes_` has {self.classes_}. "
                f"'y' has {labels}."
            )

    def _task(self, y: Array) -> Task:
        """One column for two classes, several labels or a single class; else one for each class."""
        kind, loss = self._label_binarizer.y_type_, self.loss
        multilabel = kind.startswith("multilabel")
        if loss == "auto":
            several = kind == "multiclass" and len(self.classes_) > 2
            loss = "cross_entropy" if several else "binary_cross_entropy"
        if loss == "cross_entropy" and multilabel:
            raise ValueError(
                "loss='cross_entropy' is for exclusive classes: multi-label targets need 'auto' "
                "or 'binary_cross_entropy'."
            )
        n_outputs = len(self.classes_) if multilabel or len(self.classes_) > 2 else 1
        softmax = loss == "cross_entropy"

        def encode(dtype: np.dtype[Any]) -> Array:
            binarizer = copy(self._label_binarizer)
            binarizer.sparse_output = True  # scikit-learn's dense result is of int64
            Y: Array = binarizer.transform(y).astype(dtype).toarray()
            return np.hstack([1 - Y, Y]) if softmax and n_outputs == 1 else Y

        score = _subset_accuracy if multilabel else accuracy
        return Task(
            encode, max(n_outputs, 1 + softmax), loss, "softmax" if softmax else "logistic", score,
            stratify=not multilabel,
        )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self.loss != "cross_entropy"
        return tags


def _subset_accuracy(z: Array, Y: Array, weight: Array | None) -> float:
    return float(accuracy_score(Y > 0.5, z > 0, sample_weight=weight))
