"""Evaluation of predictions: scores with bootstrap intervals, next to those of two baselines.

The baselines are a constant (the most frequent class or the mean) and a linear model.
The scores are computed from the number of times that each row counts. With all counts equal to
one, they are those of scikit-learn. The rows of a bootstrap resample occur several times or not at
all, so that one matrix of counts gives the scores of all resamples.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax

from quadric.apps.shell.tables._schema import Schema
from quadric.checks import Array
from quadric.errors import ModelFileError
from quadric.utils import shown as shown, visible

MODEL = "this model"  # its name in tables and reports, next to those of the baselines
TRIVIAL = {"classification": "most frequent class", "regression": "the mean"}
LINEAR = {"classification": "logistic regression", "regression": "linear regression"}
METRIC = {"classification": "accuracy", "regression": "R²"}
RESAMPLES = 500
MOST_RESAMPLED = 10_000  # rows in a resample
LEVEL = 0.95
SMALLEST = float(np.finfo(np.float64).eps)  # probabilities are at least this in the log-loss
MOST_STORED = 20_000  # coefficients in a model file, whose description is JSON
BINS = 10  # number of bins of equal width in the calibration error
MOST_CONFUSED = 200  # with more classes, the confusion matrix is too large to report
MOST_AREAS = 50  # with more classes, areas under curves have no interval: it would take too long
OF_EACH_CLASS = ("precision", "recall", "F1", "average precision")


@dataclass(frozen=True)
class Score:
    """One score of a model.

    Attributes
    ----------
    value : float or None
        None if the score is not defined, such as the ROC AUC if all rows are of one class.
    low, high : float or None
        The ends of the 95% bootstrap interval.
    baselines : dict
        The score of each baseline.
    differences : dict
        The standard error of the difference from each baseline on the same rows.
    """

    value: float | None
    low: float | None
    high: float | None
    baselines: dict[str, float | None]
    differences: dict[str, float | None]


@dataclass(frozen=True)
class Evaluation:
    """The scores of a model and of baselines on the same rows.

    Attributes
    ----------
    task : {'classification', 'regression'}
    rows : int
        The number of rows.
    scores : dict of Score
        By name. For classification: accuracy, balanced accuracy, macro F1, ROC AUC (one class
        against the rest), average precision (of the rarer of two classes, otherwise the mean),
        log-loss, Brier score and the expected calibration error (10 bins).
        For regression: R², RMSE, MAE and the median absolute error.
    classes : list of dict
        For each class: its rows, how often it is predicted, precision, recall, F1 and average
        precision.
    confusion : list of list of int
        The confusion matrix of a classifier with up to 200 classes; one row per true class.
    calibration : list of dict
        For bins of the probability of the predicted class: its mean, the accuracy and the rows.
    repetitions : int
        How often each row was predicted. The scores are those of all predictions; the classes, the
        confusion matrix and the calibration are those of the first prediction of each row.
    p_values : dict
        How probable so good a score is if the predictions are "unrelated" to the targets, and so
        large a calibration error if the probabilities are "calibrated"; see `chances`.
    """

    task: str
    rows: int
    scores: dict[str, Score]
    classes: list[dict[str, Any]]
    confusion: list[list[int]]
    calibration: list[dict[str, float]]
    p_values: dict[str, float]
    repetitions: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as JSON values, without the parts that do not apply."""
        return {name: value for name, value in asdict(self).items() if value != []}

    def score_table(self) -> list[list[str]]:
        """Return the scores as text: a header, then one line per score."""
        baselines = next(iter(self.scores.values())).baselines
        lines = [
            [name, shown(score.value), _interval(score), *map(shown, score.baselines.values())]
            for name, score in self.scores.items()
        ]
        return [["", MODEL, f"{LEVEL:.0%} interval", *baselines], *lines]

    def class_table(self) -> list[list[str]]:
        """Return the scores of each class as text: a header, then one line per class."""
        lines = [
            [visible(str(line["class"])), str(line["rows"]), str(line["predicted"])]
            + [shown(line[name]) for name in OF_EACH_CLASS]
            for line in self.classes
        ]
        return [["class", "rows", "predicted", *OF_EACH_CLASS], *lines]


def evaluate(
    classes: Sequence[Any],
    truth: Array,
    model: Array,
    baselines: Mapping[str, Array],
    seed: int = 0,
    rows: Array | None = None,
) -> Evaluation:
    """Score predicted probabilities or numbers.

    Parameters
    ----------
    classes : sequence
        The class of each column of probabilities; empty for regression.
    truth : array of shape (n_rows,)
        The index of the true class, or the true number.
    model : array of shape (n_rows, n_classes) or (n_rows,)
        The probabilities or numbers that the model predicts.
    baselines : dict of array
        The probabilities or numbers that each baseline predicts, by name.
    seed : int
        Seed of the bootstrap.
    rows : array of int of shape (n_rows,), optional
        The row of each prediction, if rows are predicted several times. The predictions of a row
        are resampled together, because they are not independent.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> found = evaluate(["no", "yes"], np.array([0, 1, 1]), P, {"coin": P * 0 + 0.5})
    >>> round(found.scores["accuracy"].value, 3), found.confusion
    (0.667, [[1, 0], [1, 1]])
    """
    metrics = ClassMetrics if classes else NumberMetrics
    _, first, row = np.unique(
        np.arange(len(truth)) if rows is None else rows, return_index=True, return_inverse=True
    )
    scores = _scores(metrics, truth, model, baselines, seed, row)
    p_values, repetitions = chances(truth, model, row, seed), len(row) // len(first)
    if not classes:
        return Evaluation("regression", len(first), scores, [], [], [], p_values, repetitions)
    ours = ClassMetrics(truth[first], model[first])
    return Evaluation(
        "classification",
        len(first),
        scores,
        classes=ours.class_table(classes),
        confusion=ours.confusion().tolist() if len(classes) <= MOST_CONFUSED else [],
        calibration=ours.calibration(),
        p_values=p_values,
        repetitions=repetitions,
    )


def chances(truth: Array, predicted: Array, rows: Array, seed: int) -> dict[str, float]:
    """Return the p-values of two hypotheses about predictions, from RESAMPLES random draws.

    - "unrelated": the targets are exchangeable between rows. The targets are permuted, and the
      score is the log-likelihood, or the covariance for numbers, which orders permutations as R²
      does. Not defined if all targets are equal.
    - "calibrated": the predicted class is right with its probability. The classes are drawn with
      these probabilities, and the score is the calibration error. Only for probabilities.

    `rows` has the same number where a row is predicted several times, so that these predictions
    get the same target. At most MOST_RESAMPLED predictions are used.
    """
    rng = np.random.default_rng(seed)
    if len(truth) > MOST_RESAMPLED:
        some = np.sort(rng.choice(len(truth), MOST_RESAMPLED, replace=False))
        truth, predicted, rows = truth[some], predicted[some], rows[some]
    _, first, row = np.unique(rows, return_index=True, return_inverse=True)
    targets, found = truth[first], {}
    if (targets != targets[0]).any():
        every = np.arange(len(truth))
        fit = np.log(np.maximum(predicted, SMALLEST)) if predicted.ndim == 2 else None
        centered = predicted - predicted.mean(axis=0)

        def score(y: Array) -> float:
            return float(centered @ y if fit is None else fit[every, y].sum())

        permuted = [score(rng.permutation(targets)[row]) for _ in range(RESAMPLES)]
        found["unrelated"] = _p_value(score(truth), np.array(permuted))
    if predicted.ndim == 2:
        ours, confidence = ClassMetrics(truth, predicted), predicted.max(axis=1)
        right = rng.random((RESAMPLES, len(first)))[:, row] < confidence
        drawn = np.abs((right - confidence) @ _indicator(_bins(confidence), BINS)).sum(axis=1)
        error = ours.scores(np.ones((1, len(truth))))["calibration error"][0] * len(truth)
        found["calibrated"] = _p_value(error, drawn)
    return found


def _p_value(score: float, drawn: Array) -> float:
    """Return the share of random scores, the score itself included, that are as large."""
    rounding = 1e-9 * abs(score)
    return float((1 + (drawn >= score - rounding).sum()) / (1 + len(drawn)))


def main_score(classes: Sequence[Any], truth: Array, predicted: Array) -> float:
    """Return the accuracy or R² of predictions as in `evaluate`; NaN if it is not defined."""
    if classes:
        return float((predicted.argmax(axis=1) == truth).mean())
    parts = NumberMetrics(truth, predicted).parts(float(truth.mean()))
    return float(number_scores(*parts.mean(axis=0))["R²"])


def _scores(
    metrics: "type[ClassMetrics | NumberMetrics]",
    truth: Array,
    model: Array,
    baselines: Mapping[str, Array],
    seed: int,
    row: Array,
) -> dict[str, Score]:
    """Return each score with its percentile interval over bootstrap resamples of the rows.

    `row` is the number of the row of each prediction, counted from 0. With more than MOST_RESAMPLED
    rows, a random subset of this size is resampled, and the distances from the score are scaled by
    the square root of the ratio of the numbers of rows.
    """
    n, rng = int(row.max()) + 1, np.random.default_rng(seed)
    m = min(n, MOST_RESAMPLED)
    subset = np.arange(n) if m == n else np.sort(rng.choice(n, m, replace=False))
    drawn = [np.bincount(rng.integers(m, size=m), minlength=m) for _ in range(RESAMPLES)]
    rows = np.flatnonzero(np.isin(row, subset))
    counts = np.array(drawn, dtype=np.float64)[:, np.searchsorted(subset, row[rows])]
    every, scale = {MODEL: model, **baselines}, math.sqrt(m / n)
    whole = {other: metrics(truth, P).scores(np.ones((1, len(row)))) for other, P in every.items()}
    some = {other: metrics(truth[rows], P[rows]) for other, P in every.items()}
    resampled = {other: one.scores(counts) for other, one in some.items()}
    center = whole[MODEL] if m == n else some[MODEL].scores(np.ones((1, len(rows))))
    result = {}
    for name, (value,) in whole[MODEL].items():
        ours = resampled[MODEL][name]
        known = ours[~np.isnan(ours)]
        levels = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
        ends = np.quantile(known, levels) if len(known) else np.full(2, math.nan)
        low, high = value + scale * (ends - center[name][0])
        result[name] = Score(
            finite_or_none(value),
            finite_or_none(low),
            finite_or_none(high),
            {other: finite_or_none(whole[other][name][0]) for other in baselines},
            {
                other: finite_or_none(scale * np.std(ours - resampled[other][name]))
                for other in baselines
            },
        )
    return result


def _interval(score: Score) -> str:
    if score.low is None or score.high is None:
        return "-"
    # next to a much larger number, the digits of a tiny one are meaningless
    low = 0.0 if abs(score.low) < min(0.0005, 0.01 * abs(score.high)) else score.low
    return f"{shown(low)} to {shown(score.high)}"


def finite_or_none(value: Any) -> float | None:
    """Return a float, or None for NaN and infinity, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True)
class ClassMetrics:
    """Scores of predicted probabilities.

    Parameters
    ----------
    truth : array of int of shape (n_rows,)
        The index of the true class.
    probabilities : array of shape (n_rows, n_classes)
        The rows must sum to one. The class with the largest probability is predicted.
    """

    truth: Array
    probabilities: Array

    @property
    def predicted(self) -> Array:
        """The index of the predicted class."""
        return self.probabilities.argmax(axis=1)

    def scores(self, counts: Array) -> dict[str, Array]:
        P, truth = self.probabilities, self.truth
        k, total = P.shape[1], counts.sum(axis=1)
        right = (self.predicted == truth).astype(np.float64)
        own = P[np.arange(len(truth)), truth]
        # sum over classes of (p - y)²; halved for two classes, as in scikit-learn
        brier = ((P**2).sum(axis=1) - 2 * own + 1) / (2 if k == 2 else 1)
        parts = np.column_stack([right, -np.log(np.maximum(own, SMALLEST)), brier])
        accuracy, log_loss, brier_score = (counts @ parts / total[:, None]).T
        classes = self._of_each_class(counts)
        return {
            "accuracy": accuracy,
            "balanced accuracy": _mean(classes["recall"]),
            "macro F1": _mean(classes["F1"]),
            **self._area_scores(counts),
            "log-loss": log_loss,
            "Brier score": brier_score,
            "calibration error": self._calibration_error(counts, right) / total,
        }

    def _of_each_class(self, counts: Array) -> dict[str, Array]:
        """Return how many rows belong to each class and are predicted as it, and its scores."""
        k = self.probabilities.shape[1]
        right = (self.predicted == self.truth).astype(np.float64)
        rows, correct = (counts @ _indicator(self.truth, k, part) for part in (None, right))
        predicted = counts @ _indicator(self.predicted, k)
        return {
            "rows": rows,
            "predicted": predicted,
            "precision": _ratio(correct, predicted),
            "recall": _ratio(correct, rows),
            "F1": _ratio(2 * correct, rows + predicted),
        }

    def class_table(self, classes: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the scores of each class; None where a class does not occur."""
        every = np.ones((1, len(self.truth)))
        found = self._of_each_class(every) | self._areas(every)
        return [
            {"class": label, "rows": int(found["rows"][0, k])}
            | {"predicted": int(found["predicted"][0, k])}
            | {name: finite_or_none(found[name][0, k]) for name in OF_EACH_CLASS}
            for k, label in enumerate(classes)
        ]

    def confusion(self) -> Array:
        """Return the counts of (true class, predicted class) pairs."""
        k = self.probabilities.shape[1]
        return np.bincount(self.truth * k + self.predicted, minlength=k * k).reshape(k, k)

    def calibration(self) -> list[dict[str, float]]:
        """Return the mean probability and the accuracy of each bin that has rows.

        The probability is that of the predicted class. Bins have equal widths.
        """
        confidence = self.probabilities.max(axis=1)
        right, bins = self.predicted == self.truth, _bins(confidence)
        return [
            {
                "probability": float(confidence[bins == b].mean()),
                "accuracy": float(right[bins == b].mean()),
                "rows": int((bins == b).sum()),
            }
            for b in np.unique(bins)
        ]

    def _calibration_error(self, counts: Array, right: Array) -> Array:
        """Sum of |accuracy - probability| over the bins, each times its number of rows."""
        confidence = self.probabilities.max(axis=1)
        excess = _indicator(_bins(confidence), BINS, right - confidence)
        error = np.abs(counts @ excess).sum(axis=1)
        rounding = 64 * SMALLEST * len(right)  # smaller differences are rounding errors
        return np.where(error < rounding, 0.0, error)

    def _areas(self, counts: Array) -> dict[str, Array]:
        """Return the ROC AUC and the average precision of each class against the rest.

        The average precision is the sum of the precisions at all thresholds, weighted by the gains
        in recall. A score is NaN for a class that does not occur.
        """
        areas, precisions = [], []
        for c in range(self.probabilities.shape[1]):
            scores = self.probabilities[:, c]
            order = np.argsort(scores, kind="stable")
            ties = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
            sorted_counts, is_class = counts[:, order], self.truth[order] == c
            inside = np.add.reduceat(sorted_counts * is_class, ties, axis=1)
            outside = np.add.reduceat(sorted_counts * ~is_class, ties, axis=1)
            below = np.cumsum(outside, axis=1) - outside / 2
            rows, others = inside.sum(axis=1), outside.sum(axis=1)
            areas.append(_ratio((inside * below).sum(axis=1), rows * others))
            found, wrong = (np.cumsum(one[:, ::-1], axis=1)[:, ::-1] for one in (inside, outside))
            precision = np.nan_to_num(_ratio(found, found + wrong))
            precisions.append(_ratio((inside * precision).sum(axis=1), rows))
        return {"ROC AUC": np.array(areas).T, "average precision": np.array(precisions).T}

    def _area_scores(self, counts: Array) -> dict[str, Array]:
        """Return the scores of the rarer of two classes, or the means over several classes."""
        k = self.probabilities.shape[1]
        if k > MOST_AREAS and len(counts) > 1:
            return dict.fromkeys(("ROC AUC", "average precision"), np.full(len(counts), np.nan))
        rows = np.bincount(self.truth, minlength=k)
        chosen = list(range(k)) if k > 2 else [0 if rows[0] < rows[1] else 1]
        return {name: _mean(found[:, chosen]) for name, found in self._areas(counts).items()}


@dataclass(frozen=True)
class NumberMetrics:
    """Scores of predicted numbers.

    Parameters
    ----------
    truth, predicted : array of shape (n_rows,)
    """

    truth: Array
    predicted: Array

    def scores(self, counts: Array) -> dict[str, Array]:
        sums = counts @ self.parts(float(self.truth.mean()))
        return {
            **number_scores(*(sums / counts.sum(axis=1)[:, None]).T),
            "median absolute error": _median(np.abs(self.predicted - self.truth), counts),
        }

    def parts(self, center: float) -> Array:
        """Return what `number_scores` needs the means of; `center` is a typical target."""
        error, centered = self.predicted - self.truth, self.truth - center
        return np.column_stack([error**2, np.abs(error), centered, centered**2])


def number_scores(squares: Any, absolute: Any, mean: Any, second: Any) -> dict[str, Array]:
    """Return the scores of predicted numbers from the means of `NumberMetrics.parts`."""
    variance = np.asarray(second - mean**2)
    variance = np.where(variance <= SMALLEST * second, 0.0, variance)  # only rounding errors
    return {"R²": 1 - _ratio(squares, variance), "RMSE": np.sqrt(squares), "MAE": absolute}


def _indicator(columns: Array, n_columns: int, values: Array | None = None) -> Any:
    """Return a sparse matrix with one entry per row, in the given columns."""
    n = len(columns)
    entries = np.ones(n) if values is None else values
    return sparse.csr_array((entries, (np.arange(n), columns)), shape=(n, n_columns))


def _bins(probabilities: Array) -> Array:
    return np.digitize(probabilities, np.arange(1, BINS) / BINS)


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Divide, with NaN where the denominator is zero."""
    nowhere = np.full(np.shape(numerator), np.nan)
    return np.divide(numerator, denominator, out=nowhere, where=denominator > 0)


def _mean(values: Array) -> Array:
    """Return the mean of each row over the numbers that are not NaN."""
    known = ~np.isnan(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1))


def _median(values: Array, counts: Array) -> Array:
    """Return the median of the values for each resample; the counts are integers."""
    order = np.argsort(values)
    reached, total = np.cumsum(counts[:, order], axis=1), counts.sum(axis=1)[:, None]
    lower = (reached > (total - 1) // 2).argmax(axis=1)
    upper = (reached > total // 2).argmax(axis=1)
    return (values[order[lower]] + values[order[upper]]) / 2


def trivial_outputs(schema: Schema, truth: Array | None = None) -> Any:
    """Return the shares of the classes, or the mean of the target.

    They are those of the training table or, if given, of `truth`: indices of classes, or numbers.
    """
    if not schema.classes:
        return schema.target_mean if truth is None else truth.mean()
    counts: Any = schema.class_counts
    if truth is not None:
        counts = np.bincount(truth, minlength=len(schema.classes))
    return np.array(counts) / np.sum(counts)


@dataclass(frozen=True)
class LinearBaseline:
    """A linear model of the preprocessed columns.

    Parameters
    ----------
    coef : array of shape (n_outputs, n_columns)
        One output per class; a single output for two classes and for regression.
    intercept : array of shape (n_outputs,)
    classifies : bool
        Whether the outputs are log-odds.
    """

    coef: Array
    intercept: Array
    classifies: bool

    @classmethod
    def fit(cls, Z: Any, y: Array, schema: Schema, class_weight: str | None = None) -> Self:
        """Fit the baseline to preprocessed rows."""
        from sklearn.linear_model import LinearRegression, LogisticRegression  # takes time

        if not schema.classes:
            fitted = LinearRegression().fit(Z, y)
            return cls(fitted.coef_[None, :], np.array([fitted.intercept_]), classifies=False)
        with warnings.catch_warnings(action="ignore"):  # the baseline need not converge
            fitted = LogisticRegression(max_iter=1000, class_weight=class_weight).fit(Z, y)
        return cls(fitted.coef_, fitted.intercept_, classifies=True)

    def outputs(self, Z: Any) -> Array:
        """Return the probabilities of the classes, or the predicted numbers."""
        z = Z @ self.coef.T + self.intercept
        if not self.classifies:
            return z[:, 0]
        if z.shape[1] > 1:
            return softmax(z, axis=1)
        return np.hstack([expit(-z), expit(z)])

    def to_dict(self) -> dict[str, Any] | None:
        """Return the coefficients as JSON values; None if there are more than MOST_STORED."""
        if self.coef.size > MOST_STORED:
            return None
        return {"coef": self.coef.tolist(), "intercept": self.intercept.tolist()}

    @classmethod
    def from_dict(cls, state: Any, schema: Schema, n_columns: int) -> Self | None:
        """Return the baseline that was saved with a model, or None if there is none.

        Raises ModelFileError unless the coefficients are finite and fit the model.
        """
        if state is None:
            return None
        n_outputs = len(schema.classes) if len(schema.classes) > 2 else 1
        try:
            coef, intercept = (np.array(state[name], float) for name in ("coef", "intercept"))
            shapes = (coef.shape, intercept.shape) == ((n_outputs, n_columns), (n_outputs,))
            fits = shapes and np.isfinite(coef).all() and np.isfinite(intercept).all()
        except (LookupError, TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise ModelFileError(
                "the linear baseline in the model file does not fit the model. Train it again with "
                "`quadric train`."
            )
        return cls(coef, intercept, classifies=bool(schema.classes))
