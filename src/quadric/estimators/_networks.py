"""The network estimators: a classifier (binary, multi-class and multi-label) and a regressor."""

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
    check_classification_targets,
    type_of_target,
    unique_labels,
)

from quadric.checks import Array, unmasked
from quadric.cluster import is_collection
from quadric.core import ACTIVATIONS, accuracy
from quadric.estimators._base import QuadraticNetworkEstimator
from quadric.estimators._data import FitData, Problem, check_inputs, with_class_weight
from quadric.estimators._fitted_attributes import ClassPredictions, predict_from_logits
from quadric.estimators._parameters import IfIncremental

LINKS = {"squared_error": "identity", "poisson": "exponential"}  # the regressor's last activation


@dataclass(eq=False, repr=False, kw_only=True)
class QuadraticClassifier(ClassPredictions, ClassifierMixin, QuadraticNetworkEstimator):
    """A classifier with quadratic neurons: a drop-in replacement for `MLPClassifier`.

    Parameters and fitted attributes shared with `sklearn.neural_network.MLPClassifier` have the
    same names and meanings. Quadratic neurons square their inputs, so put a `StandardScaler` in
    front.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, int, 'auto' or 'single', default='auto'
        The widths of the hidden layers; () means a single layer. If the solver is 'lbfgs' and
        `layer_kinds` is 'auto', 'auto' chooses on held-out samples among a linear layer, a
        quadratic layer, a reduced layer (for more than 64 inputs), 32 hidden neurons with a
        quadratic or linear output, and 64 with a linear output (for at least 2000 samples);
        `selection_` lists the candidates. Otherwise, it means 32 hidden neurons. 'single' chooses
        in the same way, but only among the single layers, so that the model is one equation;
        otherwise, it means ().
    activation : {'identity', 'logistic', 'tanh', 'relu'}, default='tanh'
        The activation of the hidden layers.
    layer_kinds : 'auto', a kind, or a sequence of kinds, default='auto'
        'linear', 'quadratic' or 'reduced' for each layer, the output layer last. 'auto' follows the
        paper: linear hidden layers and a quadratic output.
    loss : {'auto', 'cross_entropy', 'binary_cross_entropy'}, default='auto'
        'auto' is softmax with cross-entropy for more than two classes, and a sigmoid otherwise.
        'binary_cross_entropy' is one sigmoid per class, as in the paper.
    init : {'relinear', 'glorot', 'normal', 'identity'}, default='relinear'
        The initial values. 'relinear' starts as a network of linear layers, 'glorot' preserves the
        variance of the inputs, 'normal' draws small numbers and 'identity' starts with Q = I.
    dtype : {'float32', 'float64'} or None, default=None
        The dtype of the parameters; None means the dtype of the data. Predictions are as precise as
        the parameters or the new data, whichever is more precise.
    solver : {'auto', 'lbfgs', 'adam', 'sgd'}, default='auto'
        'auto' is 'lbfgs' for up to 20 000 samples, and for more if the shape is chosen. It is
        'adam' otherwise, for `partial_fit`, and if `batch_size` is a number or `early_stopping` is
        set. 'sgd' with batch_size=1 and momentum=0 is the paper's algorithm, in a compiled loop.
    alpha : float or 'auto', default='auto'
        L2 penalty on the weights (for Q, on its independent entries), divided by the sum of sample
        weights in the batch. Biases are not penalized. 'auto' chooses among a few values on
        held-out samples if the solver is 'lbfgs', whose batch is all of the data; otherwise it is
        0.0001. The chosen penalty applies to the coefficients of the products x_i x_j, and it may
        be larger for inputs that have little effect.
    batch_size : int or 'auto', default='auto'
        Samples per step of 'sgd' and 'adam'; 'auto' is min(200, n_samples).
    learning_rate : {'constant', 'invscaling', 'adaptive'}, default='constant'
        The schedule of 'sgd', as in `MLPClassifier`.
    learning_rate_init : float, default=0.001
        The initial learning rate.
    power_t : float, default=0.5
        The exponent of 'invscaling'.
    shuffle : bool, default=True
        Whether 'sgd' and 'adam' visit the samples in a new order in every epoch.
    max_iter : int or None, default=None
        The maximum number of iterations of 'lbfgs', or of epochs of 'sgd' and 'adam'. None means
        1000 iterations or 100 epochs.
    random_state : int, RandomState or None, default=None
        Determines the initial values, the held-out samples and the order of the samples.
    tol : float, default=1e-4
        'lbfgs' stops when no entry of the gradient, in rescaled parameters, is larger than `tol`.
        For 'sgd' and 'adam', see `n_iter_no_change`.
    verbose : bool, default=False
        Whether to report progress on stderr: a progress bar on a terminal if rich is installed,
        plain lines otherwise. A notebook displays a bar in any case.
    warm_start : bool, default=False
        Whether `fit` continues with the network of the last call.
    momentum : float, default=0.9
        The momentum of 'sgd'.
    nesterovs_momentum, early_stopping : bool
        Whether 'sgd' uses Nesterov's momentum (default: True), and whether 'sgd' and 'adam' stop
        when the score on held-out samples does not improve (default: False).
    validation_fraction : float, default=0.1
        The fraction of the samples that `early_stopping` holds out.
    beta_1, beta_2, epsilon : float
        The parameters of 'adam'; by default 0.9, 0.999 and 1e-8.
    n_iter_no_change : int, default=10
        'sgd' and 'adam' stop if the loss, or the validation score with `early_stopping`, has not
        improved by at least `tol` for this number of epochs.
    max_fun : int, default=15000
        The maximum number of evaluations of the loss by 'lbfgs'.
    on_divergence : {'recover', 'raise'}, default='recover'
        An epoch of 'sgd' or 'adam' diverges if a value is not finite, or if the mean loss exceeds
        ten times the loss of the same samples at the start of the call. 'recover' restores the last
        good epoch, lowers the learning rate and warns; 'raise' raises `DivergenceError`.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes, multiplied by `sample_weight`. 'balanced' counts each sample by its
        weight. Classes that are not in a dict have weight 1, if every key is a class. A dict is
        not supported for multi-label targets.

    Attributes
    ----------
    network_ : Network
        The trained network.
    feature_importances_ : array of shape (n_features,)
        For a single layer: the share of the variance of z that comes from each feature, if the
        features are independent and normal with mean 0 and variance 1.
    classes_ : array of shape (n_classes,)
        The classes.
    coefs_, intercepts_ : lists of arrays
        W (transposed) and b of each layer; `network_` has the other parameters.
    loss_, best_loss_ : float
        The last and the smallest loss; `best_loss_` is None if `early_stopping` is set.
    loss_curve_ : list of float
        The loss of each epoch. `partial_fit` keeps at least the last 10 000.
    validation_scores_, best_validation_score_ : list of float and float, or None
        The score of each epoch and the best of them, if `early_stopping` is set.
    selection_ : list of dict
        The candidates that were compared, by their loss on held-out samples, and those that were
        skipped because they would need too much time or memory. Only set by 'lbfgs'.
    n_iter_, t_, n_layers_, n_outputs_, n_features_in_ : int
        As in `MLPClassifier`.
    out_activation_ : str
        The activation of the last layer.

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

    loss: str = "auto"
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **QuadraticNetworkEstimator._parameter_constraints,
        "loss": [StrOptions({"auto", "cross_entropy", "binary_cross_entropy"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    @IfIncremental
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Self:
        """Train for one epoch; the state of the solver is kept between calls.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array of shape (n_classes,), default=None
            All classes; required in the first call.

        Returns
        -------
        estimator
            The fitted classifier itself.
        """
        check_inputs(X)  # check both before any attribute is set
        unmasked("y", y)
        if _check_partial_fit_first_call(self, unmasked("classes", classes)):
            multilabel = type_of_target(y).startswith("multilabel")
            self._label_binarizer = LabelBinarizer().fit(y if multilabel else classes)
        return self._fit(X, y, sample_weight, incremental=True)

    def _problem(self, data: FitData, *, anew: bool, incremental: bool) -> Problem:
        """Encode y: one column per class or label, but only one for two classes without softmax."""
        y = data.y
        check_classification_targets(y)
        self._check_classes(y, anew=anew, incremental=incremental)
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
            binarizer.sparse_output = True  # scikit-learn's dense result is int64
            Y: Array = binarizer.transform(y).astype(dtype).toarray()
            return np.hstack([1 - Y, Y]) if softmax and n_outputs == 1 else Y

        return Problem(
            encode=encode,
            n_outputs=max(n_outputs, 1 + softmax),
            weight=with_class_weight(self.class_weight, self.classes_, y, data.weight),
            loss=loss,
            last="softmax" if softmax else "logistic",
            score=_subset_accuracy if multilabel else accuracy,
            stratify=not multilabel,
        )

    def _check_classes(self, y: Array, *, anew: bool, incremental: bool) -> None:
        """Set the classes, or check that they are those of the last call."""
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        one_dict = isinstance(self.class_weight, dict)  # it cannot weight several labels
        tags.classifier_tags.multi_label = self.loss != "cross_entropy" and not one_dict
        return tags


def _subset_accuracy(z: Array, Y: Array, weight: Array | None) -> float:
    return float(accuracy_score(Y > 0.5, z > 0, sample_weight=weight))


class QuadraticRegressor(RegressorMixin, QuadraticNetworkEstimator):
    """A regressor with quadratic neurons: a drop-in replacement for `MLPRegressor`.

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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute R² of the predictions.

        Parameters
        ----------
        X : array, sparse matrix or Dask collection of shape (n_samples, n_features)
            The samples.
        y : array or Dask collection of shape (n_samples,) or (n_samples, n_outputs)
            The true values.
        sample_weight : array of shape (n_samples,), default=None
            The weights of the samples; all 1 if None.

        Returns
        -------
        float
            R², averaged over the outputs.
        """
        if is_collection(X):
            from quadric.estimators import _on_cluster

            return _on_cluster.r2(self, X, y, sample_weight)
        return float(super().score(X, y, sample_weight))

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
