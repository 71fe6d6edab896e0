"""Quadratic logistic regression: one quadratic neuron, or one for each class."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import optimize
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d, compute_sample_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from quadric import triangle
from quadric.arrays import Array, Matrix
from quadric.errors import DivergenceError
from quadric.estimators.checks import as_samples, warn_about_scales
from quadric.estimators.classifier import QuadraticClassifier
from quadric.estimators.probabilities import LogitsToClasses, checked_logits
from quadric.estimators.repeated import merge_repeated
from quadric.estimators.threads import suitable_threads
from quadric.layers import Quadratic
from quadric.losses import LOSSES
from quadric.memory import check_memory
from quadric.network import Network
from quadric.training import backprop
from quadric.training.full_batch import input_squares, preconditioner
from quadric.training.history import History

__all__ = ["QuadraticLogisticRegression"]

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
        A live bar on stderr for 'sgd'.
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
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        classes, index = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {classes[0]!r}"
            )
        if self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, y)
            weights = by_class if weights is None else weights * by_class
        n, neurons = X.shape[1], 1 if len(classes) == 2 else len(classes)
        check_memory(n, [("quadratic", neurons)], 8, copies=6.0 + LBFGS_PAIRS)
        warn_about_scales(X, type(self).__name__)
        before = self.__dict__.get("network_")
        self.classes_ = classes
        if self.solver == "sgd":
            if not self.fit_intercept:
                raise ValueError("fit_intercept=False needs solver='lbfgs'. Got solver='sgd'.")
            self._fit_sgd(X, y, weights)
        else:
            if neurons == 1:
                name, last, Y = "binary_cross_entropy", "logistic", index[:, None].astype(float)
            else:
                name = LOSS_NAMES[self.loss]
                last = "softmax" if name == "cross_entropy" else "logistic"
                Y = np.eye(neurons)[index]
            layer = Quadratic.of(
                W=np.zeros((neurons, n)),
                b=np.zeros(neurons),
                packed=np.zeros((triangle.n_pairs(n), neurons)),
            )
            if self.warm_start and before is not None and before.layers[0].W.shape == layer.W.shape:
                layer = before.astype("float64").layers[0]
            if not self.fit_intercept:
                layer.b[...] = 0
            network = Network([layer], [last])
            with suitable_threads(network.layers, X.shape[0]):
                self._fit_lbfgs(network, name, as_samples(X, network.dtype), Y, weights)
            self.network_ = network.astype(X.dtype)
        neuron: Any = self.network_.layers[0]
        self.Q_, self.coef_, self.intercept_ = neuron.Q, neuron.W, neuron.b
        return self

    def _fit_lbfgs(
        self, network: Network, name: str, X: Matrix, Y: Array, weights: Array | None
    ) -> None:
        """Minimise mean loss + |v|^2 / (2 C total weight), v being the monomials' coefficients."""
        layer, loss, last = network.layers[0], LOSSES[name], network.activations[0]
        X, Y, weights = merge_repeated(X, Y, weights)
        total = float(len(Y))
        if weights is not None:
            total = float(weights.sum(dtype=np.float64))
            weights = np.asarray(weights, dtype=np.float64) * (len(Y) / total)
        penalty = 1 / (self.C * total)
        m, n = layer.W.shape
        # q_ij stands for the coefficient 2 q_ij of x_i x_j where i < j
        rows, columns = np.triu_indices(n)
        factor = np.where(rows == columns, 1.0, 2.0)

        s = input_squares(X)
        with np.errstate(over="ignore"):
            pairs = s[rows] * s[columns]
        met = np.concatenate([np.tile(s, m), np.ones(m), np.tile(pairs, m)])
        scales = preconditioner(np.where(np.isfinite(met), met, 1.0), penalty)

        def split(vector: Array) -> tuple[Array, Array, Array]:
            W, b = vector[: m * n].reshape(m, n), vector[m * n : m * n + m]
            return W, b, vector[m * n + m :].reshape(m, -1)

        def assign(vector: Array) -> None:
            W, b, monomials = split(vector)
            held = layer.arrays()
            held["W"][...], held["b"][...] = W, b
            held["packed"][...] = (monomials / factor).T

        def objective(scaled: Array) -> tuple[float, Array]:
            vector = scaled / scales
            assign(vector)
            with np.errstate(over="ignore", invalid="ignore"):
                value, (grad,) = backprop.gradients([layer], [last], loss, X, Y, weights)
            g = grad.arrays()
            W, _, monomials = split(vector)
            by_b = g["b"] if self.fit_intercept else np.zeros(m)
            gradient = np.concatenate(
                [
                    (g["W"] + penalty * W).ravel(),
                    by_b,
                    (g["packed"].T / factor + penalty * monomials).ravel(),
                ]
            )
            size = float((W**2).sum() + (monomials**2).sum())
            return value + penalty / 2 * size, gradient / scales

        held = layer.arrays()
        start = np.concatenate([held["W"].ravel(), held["b"], (held["packed"].T * factor).ravel()])
        result = optimize.minimize(
            objective, start * scales, method="L-BFGS-B", jac=True,
            options={
                "maxiter": self.max_iter, "maxfun": 100 * self.max_iter, "maxcor": LBFGS_PAIRS,
                "gtol": self.tol, "ftol": 0.0,
            },
        )  # fmt: skip
        if not (np.isfinite(result.fun) and np.isfinite(result.x).all()):
            raise DivergenceError(
                epoch=0, sample=None, layer=0, learning_rate=None, history=History(len(Y))
            )
        assign(result.x / scales)
        self.n_iter_ = int(result.nit)
        if result.status == 1:
            warnings.warn(
                f"lbfgs failed to converge after {result.nit} iteration(s): increase max_iter or "
                "scale the data.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _fit_sgd(self, X: Matrix, y: Array, weights: Array | None) -> None:
        total = float(len(y)) if weights is None else float(np.sum(weights))
        classifier = QuadraticClassifier(
            (), layer_kinds="quadratic", init="normal", solver="sgd", batch_size=1, momentum=0.0,
            loss=LOSS_NAMES[self.loss] if len(self.classes_) > 2 else "auto",
            alpha=1 / (self.C * total), learning_rate_init=self.learning_rate_init, tol=self.tol,
            max_iter=self.max_iter, random_state=self.random_state, verbose=self.verbose,
            on_divergence=self.on_divergence,
        )  # fmt: skip
        classifier.fit(X, y, sample_weight=weights)
        self.network_, self.n_iter_ = classifier.network_, classifier.n_iter_

    def _logits(self, X: Any) -> Array:
        return checked_logits(self, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
