"""Quadratic logistic regression: one quadratic neuron, or one for each class."""

from __future__ import annotations

from contextlib import nullcontext
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from quadric._utils.arrays import Array, Matrix, unmasked
from quadric.core._layers import Quadratic
from quadric.core._stack import Stack
from quadric.estimators._classifier import QuadraticClassifier
from quadric.estimators._data import (
    ACCEPTED,
    as_samples,
    check_weight,
    merge_repeated,
    merging_bytes,
    sound,
    warn_about_scales,
    with_class_weight,
)
from quadric.estimators._messages import progress, warn_not_converged
from quadric.estimators._probabilities import LogitsToClasses
from quadric.network import Network
from quadric.training._memory_needs import (
    Architecture,
    SampleSizes,
    check_training,
    converted_bytes,
)
from quadric.training._options import Options
from quadric.training._state import TrainingState
from quadric.training._train import train

LOSS_NAMES = {"multinomial": "cross_entropy", "one-vs-rest": "binary_cross_entropy"}
LBFGS_PAIRS = 20  # more memory than usual: fewer passes over the data


class QuadraticLogisticRegression(LogitsToClasses, ClassifierMixin, BaseEstimator):
    """Logistic regression on x, its squares and its products, without expanding them.

    A convex problem: with `solver='lbfgs'` the result is that of
    ``make_pipeline(PolynomialFeatures(2, include_bias=False), LogisticRegression(C=C))``, but the
    expanded matrix, n(n+3)/2 columns, is never built.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength (np.inf: none) of the L2 penalty on the coefficients of the monomials:
        w_i, q_ii and 2 q_ij. The intercept is not penalised.
    loss : {'multinomial', 'one-vs-rest'}, default='multinomial'
        For more than two classes: one softmax, or a sigmoid for each class.
    solver : {'lbfgs', 'sgd'}, default='lbfgs'
        'lbfgs' finds the optimum. 'sgd' takes the paper's updates, one sample at a time; its
        penalty acts on q_ij (not 2 q_ij), and it stops near the optimum.
    tol : float, default=1e-4
        'lbfgs' stops when no entry of the gradient of the mean loss is larger; 'sgd' when the
        loss has not fallen by as much for ten epochs.
    max_iter : int, default=1000
        Iterations of 'lbfgs', epochs of 'sgd'.
    fit_intercept : bool, default=True
    class_weight : dict, 'balanced' or None, default=None
    learning_rate_init : float, default=0.01
        For 'sgd'.
    random_state : int, RandomState or None, default=None
        For the order of the samples in 'sgd'.
    warm_start : bool, default=False
        Start from the last solution ('lbfgs').
    verbose : bool, default=False
        Report on stderr: a live bar on a terminal, else lines.
    on_divergence : {'recover', 'raise'}, default='recover'
        As in `QuadraticClassifier`, for 'sgd'.

    Attributes
    ----------
    Q_ : array of shape (n_neurons, n_features, n_features)
        Symmetric; one neuron for two classes, else one for each class.
    coef_ : array of shape (n_neurons, n_features)
    intercept_ : array of shape (n_neurons,)
    classes_ : array of shape (n_classes,)
    network_ : Network
        The same model as a network of one layer.
    n_iter_, n_features_in_ : int

    Examples
    --------
    >>> from quadric.datasets import xor
    >>> X, y = xor()
    >>> QuadraticLogisticRegression().fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "loss": [StrOptions(set(LOSS_NAMES))],
        "solver": [StrOptions({"lbfgs", "sgd"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "on_divergence": [StrOptions({"recover", "raise"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "multinomial",
        solver: str = "lbfgs",
        tol: float = 1e-4,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        class_weight: Any = None,
        learning_rate_init: float = 0.01,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
        on_divergence: str = "recover",
    ) -> None:
        self.C = C
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.learning_rate_init = learning_rate_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.on_divergence = on_divergence

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuadraticLogisticRegression:
        """Fit to the data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        """
        given = sound(X)
        X, y = validate_data(self, given, unmasked("y", y), **ACCEPTED)
        weight = check_weight(sample_weight, X)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        classes, index = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {classes[0]!r}"
            )
        weight = with_class_weight(self.class_weight, y, weight)
        neurons = 1 if len(classes) == 2 else len(classes)
        if self.solver == "lbfgs":
            _check_memory(X, neurons, converted_bytes(given, X))
        warn_about_scales(X, type(self).__name__)
        self.classes_ = classes
        if self.solver == "sgd":
            self._fit_sgd(X, y, weight)
        else:
            Y = np.zeros((len(index), neurons))
            Y[np.arange(len(index)), index if neurons > 1 else 0] = index if neurons == 1 else 1
            self._fit_lbfgs(X, Y, weight)
        neuron = self.network_.layers[0]
        self.coef_, self.intercept_ = neuron.W, neuron.b
        return self

    @property
    def Q_(self) -> Array:
        """The symmetric matrices, shape (n_neurons, n_features, n_features), read-only."""
        neuron: Any = self.network_.layers[0]
        return neuron.Q

    def _fit_lbfgs(self, X: Matrix, Y: Array, weight: Array | None) -> None:
        """Minimise mean loss + |v|^2 / (2 C total weight), v being the monomials' coefficients."""
        m, n = Y.shape[1], X.shape[1]
        loss = "binary_cross_entropy" if m == 1 else LOSS_NAMES[self.loss]
        last = "softmax" if loss == "cross_entropy" else "logistic"
        zeros = {name: np.zeros(shape) for name, shape in Quadratic.shapes(n, m).items()}
        network, before = Network([Quadratic.of(**zeros)], [last]), self.__dict__.get("network_")
        if self.warm_start and before is not None and before.layers[0].W.shape == (m, n):
            network = Network(before.astype("float64").layers, [last])
        if not self.fit_intercept:
            network.layers[0].b[...] = 0
        samples = merge_repeated(as_samples(X, Y, weight, network.dtype))
        options = Options(
            solver="lbfgs",
            epochs=self.max_iter,
            l2=1 / self.C,
            penalty="monomials",
            by_weight=True,
            tol=self.tol,
            max_evaluations=100 * self.max_iter,
            pairs=LBFGS_PAIRS,
            fixed=() if self.fit_intercept else ("b",),
        )
        state = TrainingState()
        name = type(self).__name__
        with progress(name, self.max_iter) if self.verbose else nullcontext() as report:
            stack = Stack(network.layers, [last], loss)
            train(stack, samples, options, state, callback=report)
        self.network_, self.n_iter_ = network.astype(X.dtype), state.epochs
        if state.history.exhausted:
            warn_not_converged(
                f"lbfgs failed to converge after {state.epochs} iteration(s): increase max_iter or "
                "scale the data."
            )

    def _fit_sgd(self, X: Matrix, y: Array, weight: Array | None) -> None:
        if not self.fit_intercept:
            raise ValueError("fit_intercept=False needs solver='lbfgs'. Got solver='sgd'.")
        total = float(len(y)) if weight is None else float(np.sum(weight))
        classifier = QuadraticClassifier(
            (),
            layer_kinds="quadratic",
            init="normal",
            solver="sgd",
            batch_size=1,
            momentum=0.0,
            loss=LOSS_NAMES[self.loss] if len(self.classes_) > 2 else "auto",
            alpha=1 / (self.C * total),
            learning_rate_init=self.learning_rate_init,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            verbose=self.verbose,
            on_divergence=self.on_divergence,
        )
        classifier.fit(X, y, sample_weight=weight)
        self.network_, self.n_iter_ = classifier.network_, classifier.n_iter_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _check_memory(X: Matrix, neurons: int, converted: int) -> None:
    """Raise MemoryLimitError before anything is made of the data, in float64."""
    N, n = X.shape
    shape = Architecture(n, [("quadratic", neurons)], 8)
    sizes = SampleSizes.of(X, neurons, 8, converted)
    training = sizes.all + max(sizes.X, shape.solver_bytes("lbfgs", N, LBFGS_PAIRS))
    check_training(shape, sizes, max(sizes.X + merging_bytes(X, sizes), training))
