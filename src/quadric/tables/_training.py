"""A model from a table that fits in memory: split or cross-validation, baselines, report."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline

from quadric._utils.arrays import Array
from quadric.errors import MemoryLimitError, TableError
from quadric.estimators import QuadraticClassifier, QuadraticRegressor
from quadric.tables._features import features, labels, take
from quadric.tables._preprocessing import preprocessing
from quadric.tables._profile import profile_batch
from quadric.tables._schema import Schema, Wishes, decide
from quadric.tables._scores import LINEAR, METRIC, MODEL, TRIVIAL, Confusion, Report, Residuals
from quadric.tables._source import Source

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """The model that is asked for, and how it is tested."""

    hidden: tuple[int, ...] = ()
    kind: str = "quadratic"
    seed: int = 0
    test_size: float = 0.25
    cv: int | None = None
    verbose: bool = False


@dataclass(frozen=True)
class Trained:
    """A fitted pipeline, what it takes, how good it is, and what is worth saying."""

    model: Pipeline
    schema: Schema
    report: Report
    notes: list[str] = field(default_factory=list)


def make_estimator(schema: Schema, settings: Settings, **options: Any) -> Any:
    """A quadratic classifier or regressor; without hidden layers it can be explained.

    One class serves all: its penalty is chosen on held-out samples, it takes hidden layers and
    reduced neurons, and it learns from batches.
    """
    kinds = ["linear"] * len(settings.hidden) + [settings.kind]
    make = QuadraticClassifier if schema.task == "classification" else QuadraticRegressor
    return make(settings.hidden, layer_kinds=kinds, random_state=settings.seed, **options)


def train(
    source: Source, wishes: Wishes, settings: Settings, tell: Tell = lambda text: None
) -> Trained:
    """Read the table, decide what its columns are, fit, and compare with the baselines."""
    tell("reading")
    frame = source.read()
    profiles = wishes.new_profiles(source.columns)
    profile_batch(profiles, frame, 0)
    schema = decide(profiles, wishes, source.unnamed)
    X = features(schema, frame)
    y, there = labels(schema, frame)
    if not there.all():
        X = take(X, there)
    del frame
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, report = _fit_and_score(X, y, schema, settings, tell)
    notes = schema.notes()
    notes += sorted({str(warning.message) for warning in caught
                     if issubclass(warning.category, UserWarning)})  # fmt: skip
    return Trained(model, schema, report, notes)


def _fit_and_score(
    X: pl.DataFrame, y: Array, schema: Schema, settings: Settings, tell: Tell
) -> tuple[Pipeline, Report]:
    if settings.cv is None:
        rows, held = _split(y, schema, settings)
        tell("training")
        model = _fit(X, y, rows, schema, settings)
        if not len(held):
            return model, Report(METRIC[schema.task], "no row could be held out", {}, len(rows), 0)
        how = f"{len(held)} rows held out; the model saved has not seen them"
        tell("scoring")
        scores, spread, confusion, error = _score([(model, rows, held)], X, y, schema)
        return model, Report(
            METRIC[schema.task], how, scores, len(rows), len(held), spread, confusion, error
        )

    def folds() -> Iterator[tuple[Pipeline, Array, Array]]:
        for k, (rows, held) in enumerate(_folds(y, schema, settings)):
            tell(f"fold {k + 1} of {settings.cv}")
            yield _fit(X, y, rows, schema, settings), rows, held

    scores, spread, confusion, error = _score(folds(), X, y, schema)
    tell("training")
    model = _fit(X, y, np.arange(len(y)), schema, settings)
    how = f"{settings.cv}-fold cross-validation; the model saved is trained on all rows"
    return model, Report(METRIC[schema.task], how, scores, len(y), 0, spread, confusion, error)


def _fit(X: pl.DataFrame, y: Array, rows: Array, schema: Schema, settings: Settings) -> Pipeline:
    steps = preprocessing(schema)
    estimator = make_estimator(schema, settings, verbose=settings.verbose)
    try:
        return make_pipeline(*steps, estimator).fit(take(X, rows), y[rows])
    except MemoryLimitError as error:
        raise TableError(too_large(error)) from None


def too_large(error: MemoryLimitError) -> str:
    """The estimator's words, in the command line's."""
    return f"{error.fact} Use --kind reduced, --hidden 30, or fewer columns (--drop)."


def _split(y: Array, schema: Schema, settings: Settings) -> tuple[Array, Array]:
    """Rows to train on and rows held out, by class; each class keeps one row at least."""
    rng = np.random.default_rng(settings.seed)
    groups = [np.arange(len(y))]
    if schema.task == "classification":
        groups = [np.flatnonzero(y == label) for label in schema.classes]
    held = []
    for group in groups:
        count = min(round(settings.test_size * len(group)), len(group) - 1)
        held.append(rng.permutation(group)[: max(count, 0)])
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(y)), out), out


def _folds(y: Array, schema: Schema, settings: Settings) -> list[tuple[Array, Array]]:
    count = settings.cv or 2
    if schema.task == "regression":
        if len(y) < count:
            raise TableError(f"--cv {count} needs {count} rows; there are {len(y)}.")
        return list(KFold(count, shuffle=True, random_state=settings.seed).split(y))
    least = int(np.argmin(schema.class_counts))
    if schema.class_counts[least] < count:
        raise TableError(
            f"--cv {count} needs {count} rows of every class; {schema.classes[least]!r} has "
            f"{schema.class_counts[least]}."
        )
    folds = StratifiedKFold(count, shuffle=True, random_state=settings.seed)
    return list(folds.split(np.zeros(len(y)), y))


def _score(
    fitted: Any, X: pl.DataFrame, y: Array, schema: Schema
) -> tuple[dict[str, float], dict[str, float], Confusion | None, float | None]:
    """Scores of the model and of the baselines over (model, rows, held-out rows)."""
    classification = schema.task == "classification"
    names = (MODEL, TRIVIAL[schema.task], LINEAR[schema.task])
    each: dict[str, list[float]] = {name: [] for name in names}
    confusion, residuals = Confusion(schema.classes), Residuals()
    for model, rows, held in fitted:
        truth, unseen = y[held], take(X, held)
        predicted = model.predict(unseen)
        linear = _linear(model, X, y, rows, schema).predict(model[:-1].transform(unseen))
        if classification:
            confusion.add(truth, predicted)
            labels, counts = np.unique(y[rows], return_counts=True)
            trivial: Array = np.full(len(truth), labels[counts.argmax()])
        else:
            residuals.add(truth, predicted)
            trivial = np.full(len(truth), y[rows].mean())
        for name, guess in zip(names, (predicted, trivial, linear), strict=True):
            each[name].append(_one_score(truth, guess, schema.task))
    scores = {name: float(np.mean(values)) for name, values in each.items()}
    several = len(each[MODEL]) > 1
    spread = {name: float(np.std(values)) for name, values in each.items()} if several else {}
    if classification:
        return scores, spread, confusion, None
    return scores, spread, None, residuals.absolute / max(residuals.count, 1)


def _one_score(truth: Array, guess: Array, task: str) -> float:
    if task == "classification":
        return float(np.mean(truth == guess))
    sums = Residuals()
    sums.add(truth, guess)
    return sums.score


def _linear(model: Pipeline, X: pl.DataFrame, y: Array, rows: Array, schema: Schema) -> Any:
    Z = model[:-1].transform(take(X, rows))
    if schema.task == "regression":
        return LinearRegression().fit(Z, y[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a baseline: how it ends is not the user's concern
        return LogisticRegression(max_iter=1000).fit(Z, y[rows])
