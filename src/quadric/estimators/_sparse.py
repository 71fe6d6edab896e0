"""Sparse quadratic models: the lasso over all inputs, squares and products."""

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from quadric.checks import Array, check_integer, check_number
from quadric.core import ACTIVATIONS
from quadric.estimators._data import (
    FitData,
    Units,
    check_fit_data,
    with_class_weight,
    without_zero_weights,
)
from quadric.estimators._fitted_attributes import (
    ClassPredictions,
    NeuronAttributes,
    predict_from_logits,
)
from quadric.estimators._parameters import AT_LEAST_ONE
from quadric.estimators._sparse_results import SparsePath, Stability
from quadric.estimators._subsamples import folds, halves_of, strata_of
from quadric.lasso import (
    HIERARCHIES,
    Certificate,
    Path,
    Problem,
    Terms,
    follow,
    grid,
    inputs_of,
    refit,
)
from quadric.network import Network
from quadric.training import Samples
from quadric.utils import threads_for_loops

PATIENCE = 5  # penalties for which the mean loss on held-out samples may rise
ROUGHLY = 1e-4  # how precise refitted models are in the choice of a penalty
REFIT_PATIENCE = 20  # the loss of refitted models depends less smoothly on the penalty
PROVEN = 1e-6  # the largest violation of the optimality conditions without a warning
SMALLEST = 1e-10  # alpha of standardized targets, if no term is related to them


class Posed(NamedTuple):
    """The samples of a fit, the loss, and the units of the targets."""

    samples: Samples
    loss: str
    units: Units


@dataclass(eq=False, repr=False)
class SparseQuadraticEstimator(NeuronAttributes):
    """An estimator with few terms; see `SparseQuadraticClassifier` for the parameters."""

    alpha: Any = "auto"
    _: KW_ONLY
    hierarchy: str = "none"
    max_terms: int | None = None
    refit: bool = False
    n_alphas: int = 50
    eps: float = 1e-2
    cv: Any = 5
    tol: float = 1e-10
    random_state: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "hierarchy": [StrOptions(set(HIERARCHIES))],
        "max_terms": [AT_LEAST_ONE, None],
        "refit": ["boolean"],
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
        self.__dict__.pop("stability_", None)
        with threads_for_loops():
            if self.alpha == "auto":
                splits = self._splits(samples, posed.loss)
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
            _named(*inputs_of(terms, path.problem.terms.n)),
            coefficients * scale,
            np.array([point.loss for point in points]) * scale[0] ** 2,
        )

    @_fit_context(prefer_skip_nested_validation=True)
    def stability(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        max_false: float = 1.0,
        threshold: float = 0.75,
        n_pairs: int = 25,
    ) -> Stability:
        """Compute how often each term is selected on halves of the samples.

        After `fit`, the result is also the attribute `stability_`, so that `explain`, plots and
        files have the frequencies. `fit` deletes it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            One row per sample.
        y : array of shape (n_samples,)
            The targets.
        sample_weight : array of shape (n_samples,), default=None
            One weight per sample; all 1 if None.
        max_false : float, default=1.0
            The bound on the expected number of false terms.
        threshold : float, default=0.75
            The frequency from which a term counts as stable, above 1/2.
        n_pairs : int, default=25
            The number of pairs of complementary halves.

        Returns
        -------
        Stability
            The frequencies, the stable terms and the bound.

        Notes
        -----
        On each half, the path is followed as long as it has at most q terms. A term is false if
        this selects it with a probability of at most q / p, where p is the number of all terms.
        The expected number of false terms that are stable is at most
        q² / ((2 threshold - 1) p), without further assumptions [1]_. q is chosen so that this is
        at most `max_false`.

        References
        ----------
        .. [1] R. D. Shah and R. J. Samworth (2013). "Variable selection with error control:
           another look at stability selection." Journal of the Royal Statistical Society B, 75(1).
        """
        check_number("max_false", max_false, above=0)
        n_pairs = check_integer("n_pairs", n_pairs, at_least=1)
        if not 0.5 < threshold <= 1:
            raise ValueError(f"threshold must be above 0.5 and at most 1. Got {threshold!r}.")
        posed = self._pose(check_fit_data(self, X, y, sample_weight))
        samples = without_zero_weights(posed.samples)
        n = samples.X.shape[1]
        p = n + n * (n + 1) // 2
        most = max(1, int(np.sqrt(max_false * (2 * threshold - 1) * p)))
        most = min(most, self.max_terms or most)
        rng, strata = check_random_state(self.random_state), strata_of(samples.Y, posed.loss)
        halves = [rows for _ in range(n_pairs) for rows in halves_of(strata, rng)]
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        found = parallel(
            delayed(self._first_terms)(samples.take(rows), posed.loss, most) for rows in halves
        )
        terms, counts = np.unique(np.concatenate(found), return_counts=True)
        order = np.argsort(-counts, kind="stable")
        i, j = inputs_of(terms[order], n)
        self.stability_ = Stability(
            _named(i, j),
            counts[order] / len(halves),
            threshold,
            float(np.mean([len(one) for one in found])) ** 2 / ((2 * threshold - 1) * p),
            p,
        )
        return self.stability_

    def _first_terms(self, samples: Samples, loss: str, most: int) -> Array:
        """The terms on the path of some samples, as long as there are at most `most`."""
        with threads_for_loops():
            path = self._path(samples, loss)
            found = np.zeros(0, dtype=np.intp)
            for alpha in grid(max(path.alpha_max, SMALLEST), self.n_alphas, self.eps):
                point = path.solve(float(alpha))
                if len(point.terms) > most:
                    break
                found = point.terms
        return found

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

    def _splits(self, samples: Samples, loss: str) -> list[tuple[Array, Array]]:
        """The rows that each fold trains and tests on."""
        Y = samples.Y
        strata = strata_of(Y, loss)
        if not isinstance(self.cv, int | np.integer):
            y = Y[:, 0] if loss == "squared" else strata
            splitter = check_cv(self.cv, y, classifier=loss != "squared")
            return list(splitter.split(samples.X, y))
        rng = check_random_state(self.random_state)
        fold = folds(strata, samples.weight, int(self.cv), rng)
        numbers = np.unique(fold[fold >= 0])
        return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in numbers]

    def _choose(
        self, samples: Samples, loss: str, alphas: Array, splits: list[tuple[Array, Array]]
    ) -> int:
        """The index of the largest alpha within one standard error of the best, by folds.

        With `refit`, it is the best alpha, because more terms then lead to overfitting. The folds
        proceed together, some penalties at a time, until the mean loss has risen for several
        penalties.
        """
        with Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            folds = parallel(
                delayed(self._fold)(samples.take(train), samples.take(test), loss)
                for train, test in splits
            )
            table = np.empty((0, len(splits)))
            for first in range(0, len(alphas), PATIENCE):
                some = alphas[first : first + PATIENCE]
                losses = parallel(
                    delayed(_held_out_losses)(*fold, some, self.refit) for fold in folds
                )
                table = np.vstack([table, np.array(losses).T])
                mean = table.mean(axis=1)
                best = int(mean.argmin())
                if len(mean) - 1 - best >= (REFIT_PATIENCE if self.refit else PATIENCE):
                    break
        self.cv_loss_ = table
        if self.refit:
            return best
        spread = float(table[best].std(ddof=1)) if len(splits) > 1 else 0.0
        return int(np.argmax(mean <= mean[best] + spread / np.sqrt(len(splits))))

    def _fold(self, train: Samples, test: Samples, loss: str) -> tuple[Path, Samples]:
        """The path of the training samples of a fold, and the samples that it is tested on."""
        with threads_for_loops():
            return self._path(train, loss), without_zero_weights(test)

    def _publish(self, path: Path, alphas: Array, units: Units) -> None:
        """Solve for the last of the penalties, check the solution and set the attributes."""
        for alpha in alphas[:-1]:
            path.solve(float(alpha))
        point, found = path.prove(float(alphas[-1]))
        if found.kkt_violation > PROVEN:
            text = (
                f"The optimality conditions are violated by {found.kkt_violation:.1e} of alpha. "
                "Use a larger alpha, or drop one of the features that are nearly equal."
            )
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        if self.refit:
            point = refit(path.problem, point)
        scale, terms = units.scale, path.problem.terms
        layer = terms.layer(
            point.terms, point.coefficients * scale, point.intercept * scale + units.mean
        )
        self.alphas_ = alphas * scale[0]
        self.alpha_ = float(alphas[-1] * scale[0])
        self.terms_ = _named(*terms.inputs_of(point.terms))
        self.coefficients_ = point.coefficients * scale
        self.center_, self.scale_ = terms.center, terms.scale
        self.certificate_ = Certificate(
            found.kkt_violation,
            float(found.duality_gap * scale[0] ** 2),
            float(found.objective * scale[0] ** 2),
            found.n_terms,
            found.n_passes,
        )
        self.network_ = Network([layer], [path.problem.function.last])


def _held_out_losses(path: Path, test: Samples, alphas: Array, with_refit: bool) -> list[float]:
    """The mean losses on held-out samples for the next penalties of a path."""
    found: list[float] = []
    before = None
    with threads_for_loops():
        for point in follow(path, alphas):
            if with_refit:
                point = before = refit(path.problem, point, before, ROUGHLY)
            columns = path.problem.terms.columns(point.terms, test.X)
            z = point.intercept + columns @ point.coefficients
            values = path.problem.function.values(z, test.Y)
            found.append(float(np.average(values, weights=test.weight)))
    return found


def _named(i: Array, j: Array) -> list[tuple[int, ...]]:
    return [(a,) if b < 0 else (a, b) for a, b in zip(i.tolist(), j.tolist(), strict=True)]


def _count_within(path: Path, alphas: Array, most: int) -> int:
    """The number of penalties for which no output has more than `most` terms; at least one."""
    return max(1, sum(1 for _ in follow(path, alphas, most)))


@dataclass(eq=False, repr=False, kw_only=True)
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
    refit : bool, default=False
        Whether the chosen terms get new coefficients without the penalty, which makes them too
        small: they minimize mean loss + ||coefficients||² / (2 n_samples). alpha='auto' is then
        the penalty whose refitted model has the smallest cross-validated loss. The certificate is
        that of the model before.
    n_alphas : int, default=50
        The number of penalties on the path.
    eps : float, default=0.01
        The smallest penalty on the path, as a share of the smallest one for which all
        coefficients are zero.
    cv : int, splitter or iterable, default=5
        The folds for alpha='auto'.
    tol : float, default=1e-10
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
    stability_ : Stability
        The result of `stability`, after it was called.
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


class SparseQuadraticRegressor(RegressorMixin, SparseQuadraticEstimator):
    """A regressor with few terms, and a proof that no other term belongs to the optimum.

    The inputs are standardized: s_i = (x_i - mean) / std. The terms are s_i, s_i² and s_i s_j, and
    are standardized as well. The model minimizes

        mean of (y - prediction)² / 2 + alpha * sum |coefficients of the terms|

    This is ``Lasso(alpha)`` on ``StandardScaler`` of ``PolynomialFeatures(2)`` of
    ``StandardScaler``, but the n(n+3)/2 terms are never expanded.

    Parameters
    ----------
    alpha, hierarchy, max_terms, refit, n_alphas, eps, cv, tol, random_state, \
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
        Y = column_or_1d(data.y).astype(np.float64)[:, None]
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
