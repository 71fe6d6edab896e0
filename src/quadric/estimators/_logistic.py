"""Quadratic logistic regression: one quadratic neuron, or one for each class."""

from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from quadric.checks import Array
from quadric.core import Quadratic, Stack
from quadric.estimators._data import (
    AnySamples,
    FitData,
    as_samples,
    check_fit_data,
    check_memory,
    merge_repeated,
    warn_about_scales,
    with_class_weight,
)
from quadric.estimators._fitted_attributes import ClassPredictions, NeuronAttributes
from quadric.estimators._messages import progress, warn_not_converged, warn_user
from quadric.estimators._networks import QuadraticClassifier
from quadric.network import Network
from quadric.training import Architecture, BlockSamples, Options, TrainingState, train

LOSS_NAMES = {"multinomial": "cross_entropy", "one-vs-rest": "binary_cross_entropy"}
LBFGS_PAIRS = 20  # more than usual: more memory, but fewer passes over the data
SHARED = (
    "tol",
    "max_iter",
    "class_weight",
    "learning_rate_init",
    "random_state",
    "warm_start",
    "verbose",
    "on_divergence",
)


@dataclass(eq=False, repr=False)
class QuadraticLogisticRegression(ClassPredictions, ClassifierMixin, NeuronAttributes):
    """Logistic regression on x, its squares and its products, without expanding them.

    The problem is convex. With `solver='lbfgs'`, the result is that of
    ``make_pipeline(PolynomialFeatures(2, include_bias=False), LogisticRegression(C=C))``, but the
    expanded matrix with n(n+3)/2 columns is never built.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the L2 penalty on the coefficients of the monomials, w_i, q_ii and
        2 q_ij; np.inf for no penalty. The intercept is not penalized.
    penalty : {'l2', None}, default='l2'
        None means the same as C=np.inf.
    l1_ratio : 0 or None, default=0.0
        Only the L2 penalty is supported; other values raise an error.
    dual : False, default=False
        Only the primal problem is supported; True raises an error.
    loss : {'multinomial', 'one-vs-rest'}, default='multinomial'
        For more than two classes: one softmax, or a sigmoid for each class.
    solver : {'lbfgs', 'sgd'}, default='lbfgs'
        'lbfgs' finds the optimum. 'sgd' performs the paper's updates, one sample at a time; it
        penalizes q_ij instead of 2 q_ij, and stops near the optimum.
    tol : float, default=1e-4
        'lbfgs' stops when no entry of the gradient, in rescaled parameters, is larger than `tol`.
        'sgd' stops when the loss has not improved by at least `tol` for ten epochs.
    max_iter : int, default=1000
        The maximum number of iterations of 'lbfgs', or of epochs of 'sgd'. With 0, the parameters
        keep their initial values.
    fit_intercept : bool, default=True
        Whether to fit an intercept; 'sgd' always does.
    intercept_scaling : float, default=1
        Has no effect, as in `LogisticRegression` with 'lbfgs'.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes, as in `QuadraticClassifier`.
    learning_rate_init : float, default=0.01
        The learning rate of 'sgd'.
    random_state : int, RandomState or None, default=None
        Determines the order of the samples in 'sgd'.
    warm_start : bool, default=False
        Whether 'lbfgs' starts from the last solution.
    verbose : bool, default=False
        Whether to report progress on stderr, as in `QuadraticClassifier`.
    on_divergence : {'recover', 'raise'}, default='recover'
        As in `QuadraticClassifier`, for 'sgd'.
    n_jobs : int or None, default=None
        Has no effect, as in `LogisticRegression`.

    Attributes
    ----------
    w_, b_ : arrays of shapes (n_neurons, n_features) and (n_neurons,)
        The linear coefficients and the intercepts; one neuron for two classes, otherwise one for
        each class. Arrays can be assigned to `w_`, `b_` and `Q_`.
    Q_ : array of shape (n_neurons, n_features, n_features)
        The symmetric matrices.
    classes_ : array of shape (n_classes,)
        The classes.
    network_ : Network
        The same model as a network of one layer.
    feature_importances_ : array of shape (n_features,)
        Share of the variance of z that comes from each feature, if the features are independent
        and normal with mean 0 and variance 1.
    n_iter_ : array of shape (1,)
        Number of iterations or epochs.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from quadric.datasets import xor
    >>> X, y = xor()
    >>> QuadraticLogisticRegression().fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    C: float = 1.0
    _: KW_ONLY
    penalty: str | None = "l2"
    l1_ratio: float | None = 0.0
    dual: bool = False
    loss: str = "multinomial"
    solver: str = "lbfgs"
    tol: float = 1e-4
    max_iter: int = 1000
    fit_intercept: bool = True
    intercept_scaling: float = 1
    class_weight: Any = None
    learning_rate_init: float = 0.01
    random_state: Any = None
    warm_start: bool = False
    verbose: bool = False
    on_divergence: str = "recover"
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "loss": [StrOptions(set(LOSS_NAMES))],
        "solver": [StrOptions({"lbfgs", "sgd"})],
        "fit_intercept": ["boolean"],
        **{name: QuadraticClassifier._parameter_constraints[name] for name in SHARED},
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        # 'deprecated' is the default value in LogisticRegression 1.8 and 1.9
        "penalty": [
            StrOptions({"l1", "l2", "elasticnet"}),
            None,
            Hidden(StrOptions({"deprecated"})),
        ],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
        "dual": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the neurons to labeled samples.

        Parameters
        ----------
        X : array, sparse matrix or Dask collection of shape (n_samples, n_features)
            One row per sample. A Dask array or dataframe is fitted on the workers that hold it; y
            and the weights may then be Dask collections, too.
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,), default=None
            One weight per sample; all 1 if None.

        Returns
        -------
        estimator
            The fitted classifier itself.
        """
        self._check_penalty()
        if hasattr(X, "__dask_graph__"):
            return self._fit_on_cluster(X, y, sample_weight)
        data = check_fit_data(self, X, y, sample_weight)
        check_classification_targets(data.y)
        y = column_or_1d(data.y)
        classes, index = np.unique(y, return_inverse=True)
        _check_two_classes(classes)
        data = data._replace(
            y=y, weight=with_class_weight(self.class_weight, classes, y, data.weight)
        )
        m = 1 if len(classes) == 2 else len(classes)
        if self.solver == "lbfgs":
            shape = Architecture(data.X.shape[1], [("quadratic", m)], 8)
            check_memory(data, shape, self._lbfgs_options())
            warn_about_scales(data.X, type(self).__name__)
        # an interrupted fit must not leave the network of other classes
        before, self.classes_ = self.__dict__.pop("network_", None), classes
        if self.solver == "sgd":
            self._fit_sgd(data)
        else:
            Y = (index[:, None] == np.arange(len(classes))[-m:]).astype(float)
            samples = merge_repeated(as_samples(data.X, Y, data.weight, np.dtype(np.float64)))
            self._fit_lbfgs(samples, data.X.shape[1], m, data.X.dtype, before)
        if self.max_iter == 0:
            warn_not_converged("max_iter=0: the parameters keep their initial values.")
        return self

    def _fit_on_cluster(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit the neurons to Dask collections."""
        from quadric.estimators import _on_cluster

        _on_cluster.refuse(self)
        rows, data = _on_cluster.collect(self, X, y, sample_weight, classify=True)
        assert rows.classes is not None
        _check_two_classes(rows.classes)
        m = 1 if len(rows.classes) == 2 else len(rows.classes)
        warn_about_scales(data.X, type(self).__name__)
        samples = _on_cluster.in_blocks(rows, m, np.dtype(np.float64), self.class_weight)
        self.__dict__.pop("network_", None)
        self.classes_ = rows.classes
        self._fit_lbfgs(samples, rows.n_columns, m, data.X.dtype, None)
        return self

    def _check_penalty(self) -> None:
        """Raise ValueError for a penalty other than L2 or none."""
        if self.penalty in ("l1", "elasticnet") or self.l1_ratio or self.dual:
            raise ValueError(
                f"Solver {self.solver} supports only 'l2' or None penalties, l1_ratio=0 and "
                f"dual=False. Got penalty={self.penalty!r}, l1_ratio={self.l1_ratio!r} and "
                f"dual={self.dual!r}. For other penalties, use LogisticRegression after "
                "PolynomialFeatures(2)."
            )
        if self.penalty is None and self.C != 1:
            warn_user(
                f"Setting penalty=None will ignore the C and l1_ratio parameters. Got C={self.C!r}."
            )

    @property
    def _l2(self) -> float:
        """The coefficient of the penalty |v|² / 2 for the sum of the losses."""
        return 0.0 if self.penalty is None else 1 / self.C

    def _lbfgs_options(self) -> Options:
        return Options(
            solver="lbfgs",
            epochs=self.max_iter,
            l2=self._l2,
            penalty="monomials",
            by_weight=True,
            tol=self.tol,
            max_evaluations=100 * self.max_iter,
            pairs=LBFGS_PAIRS,
            fixed=() if self.fit_intercept else ("b",),
        )

    def _fit_lbfgs(
        self, samples: AnySamples, n: int, m: int, dtype: np.dtype[Any], before: Network | None
    ) -> None:
        """Minimize mean loss + |v|² / (2 C total weight); v holds the monomials' coefficients.

        The network of m neurons with n inputs then gets the given dtype. A warm start begins with
        the network `before`.
        """
        loss = "binary_cross_entropy" if m == 1 else LOSS_NAMES[self.loss]
        last = "softmax" if loss == "cross_entropy" else "logistic"
        zeros = {name: np.zeros(shape) for name, shape in Quadratic.shapes(n, m).items()}
        network = Network([Quadratic.of(**zeros)], [last])
        if self.warm_start and before is not None and before.layers[0].W.shape == (m, n):
            network = Network(before.astype("float64").layers, [last])
        if not self.fit_intercept:
            network.layers[0].b[...] = 0
        stack, state = Stack(network.layers, [last], loss), TrainingState()
        on_cluster = isinstance(samples, BlockSamples)
        name, rows = type(self).__name__, len(samples) if on_cluster else 0
        with progress(name, self.max_iter, rows) if self.verbose else nullcontext() as report:
            run: Any = train
            if on_cluster:
                from quadric.estimators import _on_cluster

                run = _on_cluster.train
            run(stack, samples, self._lbfgs_options(), state, callback=report)
        self.network_ = network.astype(dtype)
        self.n_iter_ = np.array([state.call.epochs], dtype=np.int32)
        if state.history.exhausted:
            warn_not_converged(
                f"lbfgs failed to converge after {state.call.epochs} iteration(s): increase "
                "max_iter or scale the data."
            )

    def _fit_sgd(self, data: FitData) -> None:
        """Fit a single layer with the paper's algorithm."""
        if not self.fit_intercept:
            raise ValueError("fit_intercept=False needs solver='lbfgs'. Got solver='sgd'.")
        total = float(len(data.y) if data.weight is None else np.sum(data.weight))
        classifier = QuadraticClassifier(
            (),
            layer_kinds="quadratic",
            init="normal",
            solver="sgd",
            batch_size=1,
            momentum=0.0,
            loss=LOSS_NAMES[self.loss] if len(self.classes_) > 2 else "auto",
            alpha=self._l2 / total,
            **{name: getattr(self, name) for name in SHARED if name != "class_weight"},
        )
        classifier._fit(data.X, data.y, data.weight, incremental=False, title=type(self).__name__)
        self.network_ = classifier.network_
        self.n_iter_ = np.array([classifier.n_iter_], dtype=np.int32)


def _check_two_classes(classes: Array) -> None:
    if len(classes) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data "
            f"contains only one class: {classes[0]!r}"
        )
