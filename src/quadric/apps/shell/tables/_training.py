"""Training on a table in memory: preprocessing, the model, and a held-out split or folds."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric.apps.shell.tables._column_profile import profile_batch
from quadric.apps.shell.tables._evaluation import MODEL
from quadric.apps.shell.tables._features import labeled_rows
from quadric.apps.shell.tables._linear_baseline import LinearBaseline
from quadric.apps.shell.tables._options import ColumnOptions, Settings
from quadric.apps.shell.tables._remarks import (
    Remark,
    most_important,
    remark_on_shape,
    remarks_on_columns,
    remarks_on_duplicates,
    remarks_on_rows,
    remarks_on_scores,
)
from quadric.apps.shell.tables._schema import Schema
from quadric.apps.shell.tables._schema_inference import infer_schema
from quadric.apps.shell.tables._scores import Report, Scores, outputs, report_of
from quadric.apps.shell.tables._source import Source
from quadric.apps.shell.tables._test_table import TestTable, check_target, evaluate_table
from quadric.checks import Array
from quadric.errors import MemoryLimitError, TableError
from quadric.estimators import QuadraticClassifier, QuadraticRegressor
from quadric.utils import counted

MISSING_CATEGORY = "missing"


@dataclass(frozen=True)
class Trained:
    """A trained model.

    Attributes
    ----------
    model : Pipeline
        Preprocessing followed by a `QuadraticClassifier` or `QuadraticRegressor`.
    schema : Schema
        The columns that the model uses.
    report : Report
        The scores of the model and of two baselines.
    notes : list of str
        Sentences about unused columns, imputed values and warnings.
    remarks : list of str
        At most three sentences about the quality of the model; see `_remarks`.
    tested : TestTable or None
        The predictions for the held-out rows, all folds or the test table.
    linear : LinearBaseline or None
        The linear baseline, fitted to the same rows as the model.
    """

    model: Pipeline
    schema: Schema
    report: Report
    notes: list[str]
    remarks: list[str] = field(default_factory=list)
    tested: TestTable | None = None
    linear: LinearBaseline | None = None

    @property
    def selection(self) -> list[dict[str, Any]]:
        """The shapes that were compared, the best first; see `QuadraticClassifier.selection_`."""
        return getattr(self.model[-1], "selection_", [])


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
    profiles = options.new_profiles(source.columns)
    profile_batch(profiles, frame)
    schema = infer_schema(profiles, options, source.unnamed)
    X, y, present = labeled_rows(schema, frame)
    del frame
    notes = schema.notes()
    remarks = remarks_on_columns(schema)
    remarks += remarks_on_rows(schema, may_use_cv=settings.cv is None and test is None)
    with warnings_added_to(notes):
        if test is None:
            numbers = np.flatnonzero(present) + 1
            model, linear, report, more, tested = _fit_and_score(
                X, y, numbers, schema, settings, tell
            )
        else:
            check_target(schema, test)
            tell("training")
            model = _fit(X, y, schema, settings)
            tell("scoring")
            linear = _linear(model, X, y, schema, settings)
            tested = evaluate_table(model, schema, test, linear=linear, seed=settings.seed)
            report = report_of(tested.evaluation, how_on(test), len(y))
            notes += tested.notes
            assert tested.rows is not None
            more = remarks_on_duplicates((X, y), tested.rows)
    remarks += more
    if report.evaluation is not None:
        balanced = settings.class_weight is not None
        remarks += remarks_on_scores(report.evaluation, balanced=balanced)
    return Trained(model, schema, report, notes, most_important(remarks), tested, linear)


@contextmanager
def warnings_added_to(notes: list[str]) -> Iterator[None]:
    """Append the messages of user warnings to the notes, without duplicates."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    user_warnings = [one for one in caught if issubclass(one.category, UserWarning)]
    notes.extend(sorted({str(one.message) for one in user_warnings}))


def preprocessing(schema: Schema) -> list[Any]:
    """Return the unfitted preprocessing steps that precede the estimator.

    If all columns are numeric, the steps are affine, so that the model can be explained in the
    user's units. With many categories, the result is sparse, because its density is below 0.3.
    """
    number_steps = [SimpleImputer(strategy="mean", keep_empty_features=True), StandardScaler()]
    numbers = [column.name for column in schema.columns if column.kind != "category"]
    categories = [column.name for column in schema.columns if column.kind == "category"]
    if not categories:
        return number_steps
    encode = make_pipeline(
        SimpleImputer(missing_values=None, strategy="constant", fill_value=MISSING_CATEGORY),
        OneHotEncoder(handle_unknown="ignore"),
    )
    parts = [("numbers", make_pipeline(*number_steps), numbers), ("categories", encode, categories)]
    return [ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)]


def make_estimator(schema: Schema, settings: Settings, **options: Any) -> Any:
    """Return a classifier or regressor, which can be explained if it has no hidden layers."""
    shape: dict[str, Any] = {}
    if not settings.is_auto:
        hidden = settings.hidden or ()
        kinds = ["linear"] * len(hidden) + [settings.kind or "quadratic"]
        shape = {"hidden_layer_sizes": hidden, "layer_kinds": kinds}
    make = QuadraticClassifier if schema.task == "classification" else QuadraticRegressor
    chosen: dict[str, Any] = {"alpha": settings.alpha, "max_iter": settings.max_iter}
    if settings.class_weight is not None and not schema.classes:
        raise TableError("--class-weight needs a classifier, but this model predicts numbers.")
    if schema.classes:
        chosen["class_weight"] = settings.class_weight
    options = {name: value for name, value in chosen.items() if value is not None} | options
    return make(random_state=settings.seed, **shape, **options)


def how_on(test: Source) -> str:
    """Describe the rows of a test table."""
    return f"the rows of {test.path.name}, which the saved model was not trained on"


def how_on_held_out(count: int) -> str:
    """Describe the held-out rows."""
    return f"{counted(count, 'held-out row')}, which the saved model was not trained on"


@contextmanager
def memory_limit_as_table_error() -> Iterator[None]:
    """Convert a MemoryLimitError to a TableError whose advice refers to command-line options."""
    try:
        yield
    except MemoryLimitError as error:
        raise TableError(
            f"{error.fact} Use --kind reduced, --hidden 30, or fewer columns (--drop)."
        ) from None


def _fit_and_score(
    X: pl.DataFrame,
    y: Array,
    numbers: Array,
    schema: Schema,
    settings: Settings,
    tell: Callable[[str], None],
) -> tuple[Pipeline, LinearBaseline, Report, list[Remark], TestTable | None]:
    """Fit and score the model; `numbers` are the rows' numbers in the table, counted from 1."""
    scores, cv = Scores(schema, settings.seed), settings.cv
    remarks = []
    for k, (rows, held) in enumerate(_splits(y, schema, settings), start=1):
        tell("training" if cv is None else f"fold {k} of {cv}")
        model = _fit(X[rows], y[rows], schema, settings)
        linear = _linear(model, X[rows], y[rows], schema, settings)
        if len(held):
            tell("scoring")
            Z = model[:-1].transform(X[held])
            trivial = _trivial(y[rows], schema)
            ours, theirs = outputs(model[-1], Z), linear.outputs(Z)
            scores.add(k, numbers[held], y[held], ours, trivial, theirs)
            if k == 1:  # the other folds would give similar remarks
                remarks = remarks_on_duplicates((X[rows], y[rows]), (X[held], y[held]))
    if cv is None:
        how = how_on_held_out(len(held))
        report = scores.report(how, len(rows), len(held))
        if settings.hidden == () and len(held) and not math.isnan(report.scores[MODEL]):
            tell("comparing with other shapes")
            other = _fit(X[rows], y[rows], schema, replace(settings, hidden=None, kind=None))
            score = other.score(X[held], y[held])
            remarks.append(remark_on_shape(other[-1], score, report))
        return model, linear, report, remarks, _tested(report, scores)
    tell("training")
    how = f"{cv}-fold cross-validation; the saved model is trained on all rows"
    model = _fit(X, y, schema, settings)
    linear = _linear(model, X, y, schema, settings)
    report = scores.report(how, len(y), 0)
    return model, linear, report, remarks, _tested(report, scores)


def _tested(report: Report, scores: Scores) -> TestTable | None:
    """Return the predictions for the held-out rows; None if there are none."""
    if report.evaluation is None:
        return None
    numbers, truth, predicted, *_ = scores.sample.arrays()
    return TestTable(report.evaluation, numbers, truth, predicted)


def _splits(y: Array, schema: Schema, settings: Settings) -> list[tuple[Array, Array]]:
    """Return pairs of training rows and held-out rows, stratified by class."""
    count = settings.cv
    if count is None:
        return [_holdout(y, schema, settings)]
    if schema.classes:
        fewest, rarest = min(zip(schema.class_counts, schema.classes, strict=True))
        there_are = f" of every class; {rarest!r} has {fewest}"
    else:
        fewest, there_are = len(y), f"; there are {len(y)}"
    if fewest < count:
        raise TableError(f"--cv {count} needs at least {count} rows{there_are}.")
    make = StratifiedKFold if schema.classes else KFold
    folds = make(count, shuffle=True, random_state=settings.seed)
    return list(folds.split(np.zeros(len(y)), y))


def _holdout(y: Array, schema: Schema, settings: Settings) -> tuple[Array, Array]:
    """Return training rows and held-out rows, with at least one training row per class."""
    rng = np.random.default_rng(settings.seed)
    groups = [np.flatnonzero(y == label) for label in schema.classes] or [np.arange(len(y))]
    counts = [min(round(settings.test_size * len(group)), len(group) - 1) for group in groups]
    held = [rng.permutation(group)[:count] for group, count in zip(groups, counts, strict=True)]
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(y)), out), out


def _fit(X: pl.DataFrame, y: Array, schema: Schema, settings: Settings) -> Pipeline:
    estimator = make_estimator(schema, settings, verbose=settings.verbose)
    with memory_limit_as_table_error():
        return make_pipeline(*preprocessing(schema), estimator).fit(X, y)


def _linear(
    model: Pipeline, X: pl.DataFrame, y: Array, schema: Schema, settings: Settings
) -> LinearBaseline:
    """Fit the linear baseline to the rows that the model was fitted to."""
    return LinearBaseline.fit(model[:-1].transform(X), y, schema, settings.class_weight)


def _trivial(y: Array, schema: Schema) -> Any:
    """Return the shares of the classes, or the mean of the target."""
    return np.unique(y, return_counts=True)[1] / len(y) if schema.classes else y.mean()
