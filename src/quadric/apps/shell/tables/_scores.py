"""Scores of a model, a trivial baseline and a linear baseline on held-out rows."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from quadric.apps.shell.tables._evaluation import MODEL, Evaluation, evaluate, finite_or_none
from quadric.apps.shell.tables._metrics import MOST_CONFUSED
from quadric.apps.shell.tables._schema import Schema
from quadric.checks import Array

TRIVIAL = {"classification": "most frequent class", "regression": "the mean"}
LINEAR = {"classification": "logistic regression", "regression": "linear regression"}
MOST_NUMBERS = 2**23  # maximum number of predicted numbers kept per model or baseline
METRIC = {"classification": "accuracy", "regression": "R²"}


class Confusion:
    """Counts of (true class, predicted class) pairs, accumulated batch by batch.

    With more than MOST_CONFUSED classes, only the correct predictions are counted.
    """

    def __init__(self, classes: Sequence[Any]) -> None:
        self.classes = np.array(classes)
        k = len(classes) if len(classes) <= MOST_CONFUSED else 0
        self.counts = np.zeros((k, k), dtype=np.int64)
        self.correct = self.rows = 0

    def add(self, truth: Array, predicted: Array) -> None:
        self.correct += int((truth == predicted).sum())
        self.rows += len(truth)
        if len(self.counts):
            self.counts += confusion_matrix(truth, predicted, labels=self.classes)

    @property
    def score(self) -> float:
        """The accuracy."""
        return self.correct / self.rows


@dataclass
class Residuals:
    """Sums for R² and the mean absolute error, accumulated batch by batch."""

    count: int = 0
    squares: float = 0.0
    absolute: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    def add(self, truth: Array, predicted: Array) -> None:
        error = predicted - truth
        self.squares += float(error @ error)
        self.absolute += float(np.abs(error).sum())
        n, mean = len(truth), float(truth.mean())
        total, difference = self.count + n, mean - self.mean
        self.m2 += float(((truth - mean) ** 2).sum())
        self.m2 += difference**2 * self.count * n / total
        self.mean += difference * n / total
        self.count = total

    @property
    def score(self) -> float:
        """R²: 1 for perfect predictions, 0 for predicting the mean."""
        return 1 - self.squares / self.m2 if self.m2 > 0 else float("nan")


@dataclass(frozen=True)
class Report:
    """The scores of a trained model and of two baselines.

    Attributes
    ----------
    metric : {'accuracy', 'R²'}
    how : str
        A description of the rows on which the scores are computed.
    scores : dict
        The score of the model and of each baseline; empty if no row was held out. NaN if the score
        is not defined, such as R² if all targets are equal.
    trained, held_out : int
        The number of rows that the saved model was trained on, and the number held out.
    spread : dict or None
        The standard deviations of the scores over the folds of a cross-validation.
    confusion : list of list of int, or None
        The confusion matrix of a classifier with up to 200 classes; one row per true class.
    mean_absolute_error : float or None
        The mean absolute error of a regressor.
    evaluation : Evaluation or None
        More scores with intervals, on the same rows; after a cross-validation, on all folds.
    """

    metric: str
    how: str
    scores: dict[str, float]
    trained: int
    held_out: int
    spread: dict[str, float] | None = None
    confusion: list[list[int]] | None = None
    mean_absolute_error: float | None = None
    evaluation: Evaluation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, without the fields that do not apply.

        Scores that are not defined are None, because JSON does not have NaN.
        """
        state = asdict(replace(self, evaluation=None))
        for name in ("scores", "spread"):
            if state[name] is not None:
                state[name] = {key: finite_or_none(value) for key, value in state[name].items()}
        state["evaluation"] = None if self.evaluation is None else self.evaluation.to_dict()
        return {name: value for name, value in state.items() if value is not None}


class Sample:
    """A random sample of rows of several arrays in their order, collected batch by batch.

    Parameters
    ----------
    most : int
        The maximum number of rows. If there are no more, the sample contains all of them.
    seed : int
    """

    def __init__(self, most: int, seed: int = 0) -> None:
        self.most, self.seen = most, 0
        self._rng = np.random.default_rng(seed)
        self._batches: list[list[Array]] = []

    def add(self, *arrays: Array) -> None:
        """Add rows; every array has one entry per row."""
        self.seen += len(arrays[0])
        self._batches.append([self._rng.random(len(arrays[0])), *arrays])
        if sum(len(batch[0]) for batch in self._batches) > 2 * self.most:
            self._batches = [self._chosen()]

    def arrays(self) -> list[Array]:
        """Return the rows of the sample; raise IndexError if there are none."""
        return self._chosen()[1:]

    def _chosen(self) -> list[Array]:
        """Return the rows with the smallest random keys, which come first."""
        keys, *arrays = (np.concatenate(parts) for parts in zip(*self._batches, strict=True))
        if len(keys) <= self.most:
            return [keys, *arrays]
        rows = np.sort(np.argpartition(keys, self.most)[: self.most])
        return [keys[rows], *(array[rows] for array in arrays)]


class Scores:
    """Scores of the model and of the baselines, accumulated fold by fold.

    The score of a fold is computed from all its rows. To limit memory, the other scores are those
    of a random sample if there are more than MOST_NUMBERS predicted numbers.
    """

    def __init__(self, schema: Schema, seed: int = 0) -> None:
        self.schema, self.seed = schema, seed
        self.names = (MODEL, TRIVIAL[schema.task], LINEAR[schema.task])
        self.folds: defaultdict[int, dict[str, Any]] = defaultdict(self._new_fold)
        self.sample = new_sample(schema, seed)

    def _new_fold(self) -> dict[str, Any]:
        codes = range(len(self.schema.classes))
        return {name: Confusion(codes) if codes else Residuals() for name in self.names}

    def add(
        self, fold: int, numbers: Array, truth: Array, model: Array, trivial: Any, linear: Array
    ) -> None:
        """Add the predictions for the rows of a fold.

        Parameters
        ----------
        fold : int
        numbers : array of shape (n_rows,)
            The numbers of the rows in the table, counted from 1.
        truth : array of shape (n_rows,)
            The true classes, or numbers.
        model, linear : array
            The probabilities of the classes, shape (n_rows, n_classes), or numbers, (n_rows,).
        trivial : array or float
            The shares of the classes, shape (n_classes,), or the mean of the target.
        """
        trivial = np.broadcast_to(trivial, model.shape)
        if self.schema.classes:
            truth = np.searchsorted(np.array(self.schema.classes), truth)
        self.sample.add(numbers, truth, model, trivial, linear)
        for name, found in zip(self.names, (model, trivial, linear), strict=True):
            predicted = found.argmax(axis=1) if self.schema.classes else found
            self.folds[fold][name].add(truth, predicted)

    def report(self, how: str, trained: int, held_out: int) -> Report:
        """Average the scores over the folds, and evaluate the rows of all folds together."""
        metric, folds = METRIC[self.schema.task], list(self.folds.values())
        if not folds:
            return Report(metric, "no row was held out", {}, trained, held_out)
        scores = {name: [fold[name].score for fold in folds] for name in self.names}
        means = {name: float(np.mean(values)) for name, values in scores.items()}
        spread = {name: float(np.std(values)) for name, values in scores.items()}
        _, truth, model, *others = self.sample.arrays()
        baselines = dict(zip(self.names[1:], others, strict=True))
        report = Report(
            metric,
            how,
            means,
            trained,
            held_out,
            spread if len(folds) > 1 else None,
            evaluation=evaluate(self.schema.classes, truth, model, baselines, self.seed),
        )
        ours = [fold[MODEL] for fold in folds]
        if self.schema.task == "regression":
            error = sum(one.absolute for one in ours) / sum(one.count for one in ours)
            return replace(report, mean_absolute_error=error)
        return replace(report, confusion=sum(one.counts for one in ours).tolist() or None)


def new_sample(schema: Schema, seed: int) -> Sample:
    """Return a sample of at most MOST_NUMBERS predicted numbers."""
    return Sample(MOST_NUMBERS // max(1, len(schema.classes)), seed)


def outputs(estimator: Any, X: Any) -> Array:
    """Return the probabilities of the classes, or the predicted numbers."""
    is_classifier = getattr(estimator, "classes_", None) is not None
    return estimator.predict_proba(X) if is_classifier else estimator.predict(X)


def trivial_outputs(schema: Schema) -> Any:
    """Return the shares of the classes, or the mean of the target, in the training table."""
    counts = np.array(schema.class_counts, dtype=np.float64)
    return counts / counts.sum() if schema.classes else schema.target_mean


def report_of(evaluation: Evaluation, how: str, trained: int) -> Report:
    """Return the report of a model that was evaluated on another table."""
    metric = METRIC[evaluation.task]
    main = evaluation.scores[metric]
    errors = evaluation.scores.get("MAE")
    return Report(
        metric,
        how,
        {
            name: math.nan if value is None else value
            for name, value in {MODEL: main.value, **main.baselines}.items()
        },
        trained,
        evaluation.rows,
        confusion=evaluation.confusion or None,
        mean_absolute_error=None if errors is None else errors.value,
        evaluation=evaluation,
    )
