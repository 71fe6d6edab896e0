"""Scores of predictions, computed from the number of times that each row counts.

With all counts equal to one, the scores are those of scikit-learn. The rows of a bootstrap resample
occur several times or not at all, so that one matrix of counts gives the scores of all resamples.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from quadric.checks import Array

SMALLEST = float(np.finfo(np.float64).eps)  # probabilities are at least this in the log-loss
ROUNDING = 64 * SMALLEST  # smaller differences are rounding errors
BINS = 10  # number of bins of equal width in the calibration error
MOST_CONFUSED = 200  # with more classes, the confusion matrix is too large to report
MOST_AREAS = 50  # with more classes, the ROC AUC has no interval, which would take too long


class Metrics(Protocol):
    """Predictions whose scores can be computed for any rows."""

    def scores(self, counts: Array) -> dict[str, Array]:
        """Return each score for each resample; `counts` has shape (n_resamples, n_rows)."""

    def rows(self, chosen: Array) -> "Metrics":
        """Return the metrics of the chosen rows."""

    def __len__(self) -> int: ...


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

    def __len__(self) -> int:
        return len(self.truth)

    def rows(self, chosen: Array) -> "ClassMetrics":
        return ClassMetrics(self.truth[chosen], self.probabilities[chosen])

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
        recall, _, f1 = per_class(*self.class_counts(counts))
        with_auc = k <= MOST_AREAS or len(counts) == 1
        auc = self._area(counts) if with_auc else np.full(len(counts), np.nan)
        return {
            "accuracy": accuracy,
            "balanced accuracy": _mean(recall),
            "macro F1": _mean(f1),
            "ROC AUC": auc,
            "log-loss": log_loss,
            "Brier score": brier_score,
            "calibration error": self._calibration_error(counts, right) / total,
        }

    def class_counts(self, counts: Array) -> tuple[Array, Array, Array]:
        """Return the numbers of rows of each class, predicted as it, and predicted correctly."""
        k = self.probabilities.shape[1]
        right = self.predicted == self.truth
        belong, predicted = _indicator(self.truth, k), _indicator(self.predicted, k)
        correct = _indicator(self.truth, k, right.astype(np.float64))
        return counts @ belong, counts @ predicted, counts @ correct

    def confusion(self) -> Array:
        """Return the counts of (true class, predicted class) pairs."""
        k = self.probabilities.shape[1]
        pairs = np.bincount(self.truth * k + self.predicted, minlength=k * k)
        return pairs.reshape(k, k)

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
        return np.where(error < ROUNDING * len(right), 0.0, error)

    def _area(self, counts: Array) -> Array:
        """Area under the ROC curve; for more than two classes, the mean of each against the rest.

        Classes that do not occur are left out of the mean.
        """
        k = self.probabilities.shape[1]
        areas = []
        for c in range(k) if k > 2 else [1]:
            scores = self.probabilities[:, c]
            order = np.argsort(scores, kind="stable")
            ties = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
            sorted_counts, is_class = counts[:, order], self.truth[order] == c
            inside = np.add.reduceat(sorted_counts * is_class, ties, axis=1)
            outside = np.add.reduceat(sorted_counts * ~is_class, ties, axis=1)
            below = np.cumsum(outside, axis=1) - outside / 2
            pairs = inside.sum(axis=1) * outside.sum(axis=1)
            areas.append(_ratio((inside * below).sum(axis=1), pairs))
        return _mean(np.column_stack(areas))


@dataclass(frozen=True)
class NumberMetrics:
    """Scores of predicted numbers.

    Parameters
    ----------
    truth, predicted : array of shape (n_rows,)
    """

    truth: Array
    predicted: Array

    def __len__(self) -> int:
        return len(self.truth)

    def rows(self, chosen: Array) -> "NumberMetrics":
        return NumberMetrics(self.truth[chosen], self.predicted[chosen])

    def scores(self, counts: Array) -> dict[str, Array]:
        error, centered = self.predicted - self.truth, self.truth - self.truth.mean()
        parts = np.column_stack([error**2, np.abs(error), centered, centered**2])
        squares, absolute, mean, second = (counts @ parts / counts.sum(axis=1)[:, None]).T
        variance = second - mean**2
        variance[variance <= SMALLEST * second] = 0.0  # only rounding errors
        return {
            "R²": 1 - _ratio(squares, variance),
            "RMSE": np.sqrt(squares),
            "MAE": absolute,
            "median absolute error": _median(np.abs(error), counts),
        }


def per_class(belong: Array, predicted: Array, right: Array) -> tuple[Array, Array, Array]:
    """Return recall, precision and F1; NaN where a class does not occur."""
    return _ratio(right, belong), _ratio(right, predicted), _ratio(2 * right, belong + predicted)


def _indicator(columns: Array, n_columns: int, values: Array | None = None) -> Any:
    """Return a sparse matrix with one entry per row, in the given columns."""
    rows = np.arange(len(columns))
    entries = np.ones(len(columns)) if values is None else values
    return sparse.csr_array((entries, (rows, columns)), shape=(len(columns), n_columns))


def _bins(probabilities: Array) -> Array:
    return np.digitize(probabilities, np.arange(1, BINS) / BINS)


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Divide, with NaN where the denominator is zero."""
    result = np.full(np.shape(numerator), np.nan)
    return np.divide(numerator, denominator, out=result, where=denominator > 0)


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
