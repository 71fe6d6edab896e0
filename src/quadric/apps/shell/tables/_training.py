"""Training on a table in memory: schema, fit, and scores on held-out rows, folds or a test table.

Start with `train`.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline

from quadric.apps.shell.tables._evaluation import (
    METRIC,
    MODEL,
    LinearBaseline,
    finite_or_none,
    trivial_outputs,
)
from quadric.apps.shell.tables._held_out import (
    Remark,
    ScoredRows,
    TestTable,
    check_target,
    evaluate_table,
    most_important,
    outputs_of,
    remark_on_shape,
    remarks_on_duplicates,
    remarks_on_scores,
    remarks_on_table,
)
from quadric.apps.shell.tables._options import ColumnOptions, Settings
from quadric.apps.shell.tables._preprocessing import preprocessing
from quadric.apps.shell.tables._schema import Schema, labeled_rows
from quadric.apps.shell.tables._schema_inference import infer_schema, new_profiles, profile_batch
from quadric.apps.shell.tables._source import Source
from quadric.checks import Array
from quadric.errors import MemoryLimitError, TableError
from quadric.estimators import QuadraticClassifier, QuadraticRegressor
from quadric.utils import counted


@dataclass(frozen=True)
class Trained:
    """A trained model.

    Attributes
    ----------
    model : Pipeline
        Preprocessing followed by a `QuadraticClassifier` or `QuadraticRegressor`.
    linear : LinearBaseline
        The linear baseline, fitted to the same rows as the model.
    schema : Schema
        The columns that the model uses.
    rows : int
        The number of rows that the model was trained on.
    tested : TestTable or None
        The predictions and scores for the held-out rows, all folds or the test table.
    how : str
        A description of these rows.
    held_out : int
        The number of rows that the model was not trained on.
    notes : list of str
        Sentences about unused columns, imputed values and warnings.
    remarks : list of str
        At most three sentences about the quality of the model; see `_remarks`.
    """

    model: Pipeline
    linear: LinearBaseline
    schema: Schema
    rows: int
    tested: TestTable | None
    how: str
    held_out: int
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def selection(self) -> list[dict[str, Any]]:
        """The shapes that were compared, the best first; see `QuadraticClassifier.selection_`."""
        return getattr(self.model[-1], "selection_", [])

    @property
    def report(self) -> dict[str, Any]:
        """The scores of the model and of the two baselines as JSON values.

        "scores" has the accuracy or R² of each; after a cross-validation, the mean over the folds,
        and "spread" the standard deviation. A score that is not defined is None.
        """
        metric = METRIC[self.schema.task]
        report: dict[str, Any] = {
            "metric": metric,
            "how": self.how,
            "scores": {},
            "trained": self.rows,
            "held_out": self.held_out,
        }
        if self.tested is None:
            return report | {"how": "no row was held out"}
        evaluation, folds = self.tested.evaluation, self.tested.folds
        main = evaluation.scores[metric]
        report["scores"] = {MODEL: main.value, **main.baselines}
        if folds:
            by_name = {name: [fold[name] for fold in folds] for name in folds[0]}
            report["scores"] = {n: finite_or_none(np.mean(v)) for n, v in by_name.items()}
            report["spread"] = {n: finite_or_none(np.std(v)) for n, v in by_name.items()}
        if evaluation.confusion:
            report["confusion"] = evaluation.confusion
        if "MAE" in evaluation.scores:
            report["mean_absolute_error"] = evaluation.scores["MAE"].value
        return report | {"evaluation": evaluation.to_dict()}


def train(
    source: Source,
    options: ColumnOptions,
    settings: Settings,
    tell: Callable[[str], None] = lambda text: None,
    test: Source | None = None,
) -> Trained:
    """Infer the schema of a table, fit a model and compare it with two baselines.

    Parameters
    ----------
    source : Source
        See `open_table`.
    options : ColumnOptions
    settings : Settings
    tell : callable, optional
        Called with a short description at the beginning of each step.
    test : Source, optional
        A table to score the model on, instead of a held-out split of the first table.

    Returns
    -------
    Trained
        The model, the schema, the scores, and notes and remarks for the user.

    Raises
    ------
    TableError
        If the table cannot be read or cannot be learned from.
    """
    tell("reading")
    frame = source.read()
    profiles = new_profiles(options, source.columns)
    profile_batch(profiles, frame)
    schema = infer_schema(profiles, options, source.unnamed)
    X, y, present = labeled_rows(schema, frame)
    del frame
    run = _Run(X, y, np.flatnonzero(present) + 1, schema, settings, tell)
    run.remarks += remarks_on_table(schema, may_use_cv=settings.cv is None and test is None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if test is not None:
            trained = run.test_on(test)
        elif settings.cv is not None:
            trained = run.cross_validate(settings.cv)
        else:
            trained = run.hold_out()
    return finished(trained, settings, caught, run.remarks)


def finished(
    trained: Trained,
    settings: Settings,
    caught: list[warnings.WarningMessage],
    remarks: list[Remark],
) -> Trained:
    """Add notes about the table and the training, and the most important remarks."""
    messages = {str(entry.message) for entry in caught if issubclass(entry.category, UserWarning)}
    notes = trained.schema.notes() + sorted(messages)
    if trained.tested is not None:
        notes += trained.tested.notes
        balanced = settings.class_weight is not None
        remarks = remarks + remarks_on_scores(trained.tested.evaluation, balanced=balanced)
    return replace(trained, notes=notes, remarks=most_important(remarks))


@dataclass
class _Run:
    """The rows that have a target, and three ways to train and test a model on them.

    `numbers` are the numbers of the rows in the table, counted from 1.
    """

    X: pl.DataFrame
    y: Array
    numbers: Array
    schema: Schema
    settings: Settings
    tell: Callable[[str], None]
    remarks: list[Remark] = field(default_factory=list)

    def test_on(self, test: Source) -> Trained:
        """Train on all rows and test on another table."""
        check_target(self.schema, test)
        self.tell("training")
        model, linear = self._fit(slice(None))
        self.tell("scoring")
        trained = tested_on(test, model, linear, self.schema, self.settings)
        if trained.tested and trained.tested.rows:
            self.remarks += remarks_on_duplicates((self.X, self.y), trained.tested.rows)
        return trained

    def hold_out(self) -> Trained:
        """Train on some rows and test on the others."""
        rows, held = _holdout(self.y, self.schema, self.settings)
        collected = ScoredRows(self.schema, self.settings.seed)
        self.tell("training")
        model, linear = self._fit_and_predict(rows, held, collected)
        trained = tested_on_held_out(collected, model, linear, len(rows))
        ours = trained.report["scores"].get(MODEL)
        if self.settings.hidden == () and ours is not None:
            self.tell("comparing with other shapes")
            free = replace(self.settings, hidden=None, kind=None)
            other = _fitted(self.X[rows], self.y[rows], self.schema, free)
            score = other.score(self.X[held], self.y[held])
            self.remarks.append(remark_on_shape(other[-1], score, ours, METRIC[self.schema.task]))
        return trained

    def cross_validate(self, count: int) -> Trained:
        """Test on each of several folds, and train the model on all rows."""
        collected = ScoredRows(self.schema, self.settings.seed)
        for fold, (rows, held) in enumerate(_folds(self.y, self.schema, count, self.settings.seed)):
            self.tell(f"fold {fold + 1} of {count}")
            self._fit_and_predict(rows, held, collected, fold)
        self.tell("training")
        model, linear = self._fit(slice(None))
        how = f"{count}-fold cross-validation; the saved model is trained on all rows"
        return Trained(model, linear, self.schema, len(self.y), collected.evaluate(), how, 0)

    def _fit_and_predict(
        self, rows: Array, held: Array, collected: ScoredRows, fold: int = 0
    ) -> tuple[Pipeline, LinearBaseline]:
        """Fit the model and the linear baseline to `rows`, and predict the rows `held`."""
        model, linear = self._fit(rows)
        if len(held):
            self.tell("scoring")
            X, y = self.X[held], self.y[held]
            collected.constants.append(trivial_outputs(self.schema, collected.codes(self.y[rows])))
            outputs = outputs_of(model, self.schema, X, linear)
            collected.add(self.numbers[held], collected.codes(y), outputs, fold)
            if fold == 0:  # the other folds would give similar remarks
                self.remarks += remarks_on_duplicates((self.X[rows], self.y[rows]), (X, y))
        return model, linear

    def _fit(self, rows: Any) -> tuple[Pipeline, LinearBaseline]:
        """Fit the model and the linear baseline."""
        X, y = self.X[rows], self.y[rows]
        model = _fitted(X, y, self.schema, self.settings)
        Z = model[:-1].transform(X)
        return model, LinearBaseline.fit(Z, y, self.schema, self.settings.class_weight)


def tested_on(
    test: Source, model: Pipeline, linear: LinearBaseline, schema: Schema, settings: Settings
) -> Trained:
    """Score a model, which was trained on all rows that have a target, on another table."""
    tested = evaluate_table(model, schema, test, linear=linear, seed=settings.seed)
    rows = schema.rows - schema.missing_targets
    how = f"the rows of {test.path.name}, which the saved model was not trained on"
    return Trained(model, linear, schema, rows, tested, how, tested.evaluation.rows)


def tested_on_held_out(
    collected: ScoredRows, model: Pipeline, linear: LinearBaseline, rows: int
) -> Trained:
    """Score a model, which was trained on `rows` rows, on the others."""
    count = collected.seen
    tested = collected.evaluate() if count else None
    how = f"{counted(count, 'held-out row')}, which the saved model was not trained on"
    return Trained(model, linear, collected.schema, rows, tested, how, count)


def make_estimator(schema: Schema, settings: Settings, **options: Any) -> Any:
    """Return a classifier or regressor, which can be explained if it has no hidden layers."""
    chosen: dict[str, Any] = {}
    if settings.hidden is not None or settings.kind is not None:
        hidden = settings.hidden or ()
        kinds = ["linear"] * len(hidden) + [settings.kind or "quadratic"]
        chosen = {"hidden_layer_sizes": hidden, "layer_kinds": kinds}
    make = QuadraticClassifier if schema.classes else QuadraticRegressor
    if settings.class_weight is not None and not schema.classes:
        raise TableError("--class-weight needs a classifier, but this model predicts numbers.")
    given = {name: getattr(settings, name) for name in ("alpha", "max_iter", "class_weight")}
    chosen |= {name: value for name, value in given.items() if value is not None}
    return make(random_state=settings.seed, **(chosen | options))


@contextmanager
def memory_limit_as_table_error() -> Iterator[None]:
    """Convert a MemoryLimitError to a TableError whose advice refers to command-line options."""
    try:
        yield
    except MemoryLimitError as error:
        raise TableError(
            f"{error.fact} Use --kind reduced, --hidden 30, or fewer columns (--drop)."
        ) from None


def _folds(y: Array, schema: Schema, count: int, seed: int) -> list[tuple[Array, Array]]:
    """Return pairs of training rows and held-out rows, stratified by class."""
    fewest, there_are = len(y), f"; there are {len(y)}"
    if schema.classes:
        fewest, rarest = min(zip(schema.class_counts, schema.classes, strict=True))
        there_are = f" of every class; {rarest!r} has {fewest}"
    if fewest < count:
        raise TableError(f"--cv {count} needs at least {count} rows{there_are}.")
    make = StratifiedKFold if schema.classes else KFold
    return list(make(count, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))


def _holdout(y: Array, schema: Schema, settings: Settings) -> tuple[Array, Array]:
    """Return training rows and held-out rows, with at least one training row per class."""
    rng = np.random.default_rng(settings.seed)
    groups = [np.flatnonzero(y == label) for label in schema.classes] or [np.arange(len(y))]
    counts = [min(round(settings.test_size * len(group)), len(group) - 1) for group in groups]
    held = [rng.permutation(group)[:count] for group, count in zip(groups, counts, strict=True)]
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(y)), out), out


def _fitted(X: pl.DataFrame, y: Array, schema: Schema, settings: Settings) -> Pipeline:
    estimator = make_estimator(schema, settings, verbose=settings.verbose)
    with memory_limit_as_table_error():
        return make_pipeline(*preprocessing(schema), estimator).fit(X, y)
