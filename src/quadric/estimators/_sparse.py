"""Sparse quadratic models: the lasso over all inputs, squares and products."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from quadric.checks import Array
from quadric.core import ACTIVATIONS
from quadric.estimators._data import (
    FitData,
    Units,
    check_fit_data,
    merge_repeated,
    with_class_weight,
    without_zero_weights,
)
from quadric.estimators._fitted_attributes import (
    ClassPredictions,
    NeuronAttributes,
    predict_from_logits,
)
from quadric.estimators._parameters import AT_LEAST_ONE
from quadric.lasso import HIERARCHIES, Certificate, Path, Point, Problem, Terms, follow, grid
from quadric.network import Network
from quadric.training import Samples
from quadric.utils import threads_for_loops

PATIENCE = 5  # penalties for which the loss on held-out samples may rise before a fold stops
SMALLEST = 1e-10  # alpha of standardized targets, if no term is related to them


class Posed(NamedTuple):
    """The samples of a fit, the loss, and the units of the targets."""

    samples: Samples
    loss: str
    units: Units


@dataclass(frozen=True)
class SparsePath:
    """The models for a sequence of penalties.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
        The penalties, in decreasing order.
    terms : list of tuple of int
        The terms that are not zero somewhere on the path: (i,) for x_i, (i, i) for its square and
        (i, j) for a product.
    coefficients : array of shape (n_alphas, n_terms, n_outputs)
        The coefficients of the standardized terms.
    losses : array of shape (n_alphas,)
        The mean losses on the samples of the fit.
    """

    alphas: Array
    terms: list[tuple[int, ...]]
    coefficients: Array
    losses: Array


@dataclass(eq=False, repr=False)
class SparseQuadraticEstimator(NeuronAttributes):
    """An estimator with few terms; see `SparseQuadraticClassifier` for the parameters."""

    alpha: Any = "auto"
    _: KW_ONLY
    hierarchy: str = "none"
    max_terms: int | None = None
    n_alphas: int = 50
    eps: float = 1e-2
    cv: Any = 5
    tol: float = 1e-8
    random_state: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "hierarchy": [StrOptions(set(HIERARCHIES))],
        "max_terms": [AT_LEAST_ONE, None],
        "n_alphas": [AT_LEAST_ONE],
        "eps": [Interval(Real, 0, 1, closed="neither")],
        "cv": [Interval(Integral, 2, None, closed="left"), "cv_object"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _pose(self, data: FitData) -> Posed:
        """Set the attributes that describe the targets, and return the samples and the loss."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            One row per sample.
        y : array of shape (n_samples,)
            The targets.
        sample_weight : array of shape (n_samples,), default=None
            One weight per sample; all 1 if None.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        posed = self._pose(check_fit_data(self, X, y, sample_weight))
        samples = posed.samples
        with threads_for_loops():
            if self.alpha == "auto":
                samples, splits = self._splits(samples, posed.loss)
            path = self._path(samples, posed.loss)
            alphas = self._alphas(path.alpha_max, posed.units)
            if self.max_terms is not None:
                alphas = alphas[: _count_within(path, alphas, self.max_terms)]
            chosen = len(alphas) - 1
            if self.alpha == "auto":
                chosen = self._choose(samples, posed.loss, alphas, splits)
            self._publish(path, alphas[: chosen + 1], posed.units)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_path(self, X: Any, y: Any, sample_weight: Any = None) -> SparsePath:
        """Compute the models for all penalties, without choosing one.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            One row per sample.
        y : array of shape (n_samples,)
            The targets.
        sample_weight : array of shape (n_samples,), default=None
            One weight per sample; all 1 if None.

        Returns
        -------
        SparsePath
            The terms and coefficients. The path ends before `max_terms` is exceeded.
        """
        posed = self._pose(check_fit_data(self, X, y, sample_weight))
        with threads_for_loops():
            path = self._path(posed.samples, posed.loss)
            alphas = self._alphas(path.alpha_max, posed.units)
            points = list(follow(path, alphas, self.max_terms))
        terms = np.unique(np.concatenate([point.terms for point in points]))
        coefficients = np.zeros((len(points), len(terms), posed.samples.Y.shape[1]))
        for row, point in zip(coefficients, points, strict=True):
            row[np.searchsorted(terms, point.terms)] = point.coefficients
        scale = posed.units.scale
        return SparsePath(
            alphas[: len(points)] * scale[0],
            _named(path.problem.terms, terms),
            coefficients * scale,
            np.array([point.loss for point in points]) * scale[0] ** 2,
        )

    def _path(self, samples: Samples, loss: str) -> Path:
        samples = without_zero_weights(samples)
        weight = np.ones(len(samples)) if samples.weight is None else samples.weight
        weight = weight.astype(float) / weight.sum(dtype=float)
        return Path(Problem(Terms(samples.X, weight), samples.Y, loss, self.hierarchy), self.tol)

    def _alphas(self, alpha_max: float, units: Units) -> Array:
        """The penalties of the path, in units of standardized targets."""
        largest = max(alpha_max, SMALLEST)
        if self.alpha == "auto":
            return grid(largest, self.n_alphas, self.eps)
        last = max(self.alpha / units.scale[0], SMALLEST)
        if last >= largest:
            return np.array([last])
        few = 2 + int(np.log2(largest / last))
        return grid(largest, few if self.max_terms is None else self.n_alphas, last / largest)

    def _splits(self, samples: Samples, loss: str) -> tuple[Samples, list[tuple[Array, Array]]]:
        """The samples, and the rows that each fold trains and tests on.

        Equal samples are in the same fold, so that a sample may as well have a weight of two.
        """
        if not isinstance(self.cv, Integral):
            is_class = loss != "squared"
            y = samples.Y.argmax(axis=1) if samples.Y.shape[1] > 1 else samples.Y[:, 0]
            splitter = check_cv(self.cv, y, classifier=is_class)
            return samples, list(splitter.split(samples.X, y))
        X = samples.X if sparse.issparse(samples.X) else np.ascontiguousarray(samples.X)
        samples = merge_repeated(replace(samples, X=X))
        strata = samples.Y @ np.arange(samples.Y.shape[1]) if samples.Y.shape[1] > 1 else (
            samples.Y[:, 0] * (loss != "squared")
        )
        fold = _folds(strata, self.cv, check_random_state(self.random_state))
        numbers = np.unique(fold[fold >= 0])
        return samples, [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in numbers]

    def _choose(
        self, samples: Samples, loss: str, alphas: Array, splits: list[tuple[Array, Array]]
    ) -> int:
        """The index of the largest alpha within one standard error of the best, by folds."""
        losses = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._held_out_losses)(samples.take(train), samples.take(test), loss, alphas)
            for train, test in splits
        )
        common = min(map(len, losses))
        table = self.cv_loss_ = np.array([one[:common] for one in losses]).T
        mean = table.mean(axis=1)
        best = int(mean.argmin())
        spread = float(table[best].std(ddof=1)) if len(splits) > 1 else 0.0
        return int(np.argmax(mean <= mean[best] + spread / np.sqrt(len(splits))))

    def _held_out_losses(
        self, train: Samples, test: Samples, loss: str, alphas: Array
    ) -> list[float]:
        """The mean losses on held-out samples, until they have risen for several penalties."""
        with threads_for_loops():
            path, test = self._path(train, loss), without_zero_weights(test)
            found: list[float] = []
            for point in follow(path, alphas):
                columns = path.problem.terms.columns(point.terms, test.X)
                z = point.intercept + columns @ point.coefficients
                values = path.problem.function.values(z, test.Y)
                found.append(float(np.average(values, weights=test.weight)))
                if len(found) - 1 - int(np.argmin(found)) >= PATIENCE:
                    break
        return found

    def _publish(self, path: Path, alphas: Array, units: Units) -> None:
        """Solve for the last of the penalties, check the solution and set the attributes."""
        for alpha in alphas:
            point = path.solve(float(alpha))
        found = path.certificate(float(alphas[-1]))
        scale, terms = units.scale, path.problem.terms
        layer = terms.layer(
            point.terms, point.coefficients * scale, point.intercept * scale + units.mean
        )
        self.alphas_ = alphas * scale[0]
        self.alpha_ = float(alphas[-1] * scale[0])
        self.terms_ = _named(terms, point.terms)
        self.coefficients_ = point.coefficients * scale
        self.center_, self.scale_ = terms.center, terms.scale
        self.certificate_ = Certificate(
            found.kkt_violation,
            found.duality_gap * scale[0] ** 2,
            found.objective * scale[0] ** 2,
            found.n_terms,
            found.n_passes,
        )
        self.network_ = Network([layer], [path.problem.function.last])


def _named(terms: Terms, numbers: Array) -> list[tuple[int, ...]]:
    i, j = terms.inputs_of(numbers)
    return [(a,) if b < 0 else (a, b) for a, b in zip(i.tolist(), j.tolist(), strict=True)]


def _count_within(path: Path, alphas: Array, most: int) -> int:
    """The number of penalties for which no output has more than `most` terms; at least one."""
    return max(1, sum(1 for _ in follow(path, alphas, most)))


def _folds(strata: Array, count: int, rng: np.random.RandomState) -> Array:
    """The fold of each sample; -1 for the only member of a stratum, which is never held out."""
    fold = np.full(len(strata), -1)
    values, index, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    if sizes.max() < 2:
        raise ValueError(
            f"alpha='auto' needs at least 2 different samples of a class. Got n_samples = "
            f"{len(strata)}. Set alpha to a number."
        )
    next_fold = 0
    for k in range(len(values)):
        if sizes[k] > 1:
            members = rng.permutation(np.flatnonzero(index == k))
            fold[members] = (next_fold + np.arange(len(members))) % count
            next_fold += len(members)
    return fold


def _column(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64).reshape(len(values), -1)


@dataclass(eq=False, repr=False)
class SparseQuadraticClassifier(ClassifierMixin, ClassPredictions, SparseQuadraticEstimator):
    """A classifier with few terms, and a proof that no other term belongs to the optimum.

    The inputs are standardized: s_i = (x_i - mean) / std. The terms are s_i, s_i² and s_i s_j, and
    are standardized as well. The model minimizes

        mean loss + alpha * sum |coefficients of the terms|

    where the loss is logistic, or multinomial for more than two classes, and the intercept is not
    penalized. This is the lasso on ``StandardScaler`` of ``PolynomialFeatures(2)`` of
    ``StandardScaler``, but the n(n+3)/2 terms are never expanded.

    Parameters
    ----------
    alpha : float or 'auto', default='auto'
        The penalty. 'auto' is the largest one whose cross-validated loss is at most one standard
        error above the smallest.
    hierarchy : {'none', 'strong'}, default='none'
        With 'strong', a product enters together with its two inputs and a square with its input.
        The penalty is then that of the overlapping group lasso: each group (s_i), (s_i, s_i²) and
        (s_i, s_j, s_i s_j) has coefficients of its own, which add up to those of the terms, and
        costs alpha * sqrt(size of the group) * norm of its coefficients.
    max_terms : int or None, default=None
        The largest number of terms of each output. The penalty is increased until this holds.
    n_alphas : int, default=50
        The number of penalties on the path.
    eps : float, default=0.01
        The smallest penalty on the path, as a share of the smallest one for which all
        coefficients are zero.
    cv : int, splitter or iterable, default=5
        The folds for alpha='auto'. With an int, equal samples are in the same fold.
    tol : float, default=1e-8
        The largest violation of an optimality condition, as a share of alpha.
    random_state : int, RandomState or None, default=None
        Determines the folds.
    n_jobs : int or None, default=None
        The number of threads for the folds.
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes, as in `QuadraticClassifier`.

    Attributes
    ----------
    terms_ : list of tuple of int
        The terms of the model: (i,) for s_i, (i, i) for its square and (i, j) for a product.
    coefficients_ : array of shape (n_terms, n_outputs)
        The coefficients of the standardized terms.
    alpha_, alphas_ : float, array
        The penalty, and those of the path up to it.
    certificate_ : Certificate
        How far the model is from the optimum: the largest violation of the optimality conditions
        over all terms, and the duality gap.
    cv_loss_ : array of shape (n_alphas, n_folds)
        The loss on held-out samples, for alpha='auto'.
    center_, scale_ : arrays of shape (n_features,)
        Means and standard deviations of the inputs.
    w_, b_ : arrays of shapes (n_neurons, n_features) and (n_neurons,)
        The linear coefficients and the intercepts in units of x; one neuron for two classes,
        otherwise one for each class.
    Q_ : array of shape (n_neurons, n_features, n_features)
        The symmetric matrices.
    classes_ : array of shape (n_classes,)
        The classes.
    network_ : Network
        The same model as a network of one quadratic layer.
    feature_importances_ : array of shape (n_features,)
        Share of the variance of z that comes from each feature, if the features are independent
        and normal with mean 0 and variance 1.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 20))
    >>> y = X[:, 2] * X[:, 5] + X[:, 7] > 0
    >>> model = SparseQuadraticClassifier(max_terms=2).fit(X, y)
    >>> model.terms_
    [(7,), (2, 5)]
    >>> model.certificate_.kkt_violation < 1e-6, model.certificate_.n_terms
    (True, 230)
    """

    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SparseQuadraticEstimator._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def _pose(self, data: FitData) -> Posed:
        check_classification_targets(data.y)
        y = column_or_1d(data.y)
        classes, index = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {classes[0]!r}"
            )
        self.classes_ = classes
        weight = with_class_weight(self.class_weight, classes, y, data.weight)
        m = 1 if len(classes) == 2 else len(classes)
        Y = (index[:, None] == np.arange(len(classes))[-m:]).astype(float)
        loss = "logistic" if m == 1 else "multinomial"
        return Posed(_samples(data, Y, weight), loss, Units(np.zeros(m), np.ones(m)))


def _samples(data: FitData, Y: Array, weight: Array | None) -> Samples:
    if weight is not None and not np.any(weight):
        raise ValueError("sample_weight must not be zero for all samples.")
    return Samples(data.X, Y, weight)


@dataclass(eq=False, repr=False)
class SparseQuadraticRegressor(RegressorMixin, SparseQuadraticEstimator):
    """A regressor with few terms, and a proof that no other term belongs to the optimum.

    The inputs are standardized: s_i = (x_i - mean) / std. The terms are s_i, s_i² and s_i s_j, and
    are standardized as well. The model minimizes

        mean of (y - prediction)² / 2 + alpha * sum |coefficients of the terms|

    This is ``Lasso(alpha)`` on ``StandardScaler`` of ``PolynomialFeatures(2)`` of
    ``StandardScaler``, but the n(n+3)/2 terms are never expanded.

    Parameters
    ----------
    alpha, hierarchy, max_terms, n_alphas, eps, cv, tol, random_state, \
n_jobs : see `SparseQuadraticClassifier`
        The penalty, the terms and the solver. The unit of alpha is that of y.

    Attributes
    ----------
    terms_, coefficients_, alpha_, alphas_, certificate_, cv_loss_, center_, scale_, w_, b_, Q_, \
network_, feature_importances_, n_features_in_
        As in `SparseQuadraticClassifier`. `cv_loss_` is in units of the variance of y.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 20))
    >>> y = X[:, 2] * X[:, 5] + X[:, 7]
    >>> SparseQuadraticRegressor(alpha=0.1).fit(X, y).terms_
    [(7,), (2, 5)]
    """

    def _pose(self, data: FitData) -> Posed:
        Y = _column(column_or_1d(data.y).astype(np.float64))
        samples = _samples(data, Y, data.weight)
        units = Units.of(samples, "quadratic")
        return Posed(units.standardized(samples), "squared", units)

    def predict(self, X: Any) -> Array:
        """Predict the targets, shape (n_samples,).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            One row per sample.

        Returns
        -------
        array of shape (n_samples,)
            The predicted values.
        """
        return predict_from_logits(
            self, X, lambda z: ACTIVATIONS[self.network_.activations[-1]].function(z)[:, 0]
        )
