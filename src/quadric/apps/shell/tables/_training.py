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
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.pipeline import Pipeline

from quadric.apps.shell.tables._column_profile import profile_batch
from quadric.apps.shell.tables._evaluation import (
    METRIC,
    MODEL,
    LinearBaseline,
    finite_or_none,
    shown,
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
    remarks_on_duplicates,
    remarks_on_scores,
    remarks_on_table,
)
from quadric.apps.shell.tables._latest_rows import (
    latest,
    limited_to,
    times_of,
    with_lasting_inputs,
)
from quadric.apps.shell.tables._options import ColumnOptions, Settings, check_columns, refuse
from quadric.apps.shell.tables._preprocessing import encoded_for_training, fitted_pipeline
from quadric.apps.shell.tables._schema import Schema, labeled_rows
from quadric.apps.shell.tables._schema_inference import (
    infer_schema,
    new_profiles,
    profile_again,
)
from quadric.apps.shell.tables._source import Source
from quadric.apps.shell.tables._suspicious_columns import with_suspicions
from quadric.apps.shell.tables._threshold import CheapestThreshold, parse_costs
from quadric.checks import Array
from quadric.errors import MemoryLimitError, TableError
from quadric.estimators import (
    QuadraticClassifier,
    QuadraticRegressor,
    SparseQuadraticClassifier,
    SparseQuadraticRegressor,
)
from quadric.utils import counted

FOLDS, REPETITIONS = 5, 2  # of the cross-validation that is used unless other scores are asked for
REPEATED_BELOW = 500  # rows
# The scores come from a cross-validation up to this product of rows, encoded columns and outputs.
# At products of 150 000 to 1 100 000, a fit took at most 13 µs times this product on two cores, so
# that five fits should take less than about 7 s, and the command about 10 s. A measured time would
# give different scores on different computers.
MOST_VALIDATED = 100_000
MOST_TERMS = 15  # of an equation with --readable
MOST_NEURONS = 64  # hidden neurons of the largest shape that is chosen; given shapes may be larger


@dataclass(frozen=True)
class Trained:
    """A trained model.

    Attributes
    ----------
    model : Pipeline
        Preprocessing followed by a `QuadraticClassifier` or `QuadraticRegressor`, or their sparse
        counterparts.
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
    restricted : str
        The option that restricted the shape to a single layer; empty if there is none.
    threshold : CheapestThreshold or None
        The cheapest threshold; None unless costs were given.
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
    restricted: str = ""
    threshold: CheapestThreshold | None = None

    @property
    def equation(self) -> dict[str, Any] | None:
        """What it costs that the model is one equation, or would cost if it has hidden neurons.

        "value" is the accuracy or R² of the equation, "network" that of the model with hidden
        neurons or, if the shape was restricted, of the model whose shape is chosen freely, and
        "cost" their difference; "saved" tells whether the saved model is the equation. Without
        a restriction, a chosen equation costs nothing. None if no row was scored.
        """
        if self.tested is None:
            return None
        metric = METRIC[self.schema.task]
        ours, rival = self.tested.evaluation.scores[metric].value, self.tested.rival
        saved = is_equation(self.model)
        value, network = (ours, rival) if saved else (rival, ours)
        cost = None if value is None or network is None else network - value
        if saved and not self.restricted:
            cost = 0.0
        found = {"metric": metric, "saved": saved, "value": value, "network": network}
        return found | {"cost": cost}

    @property
    def cost_of_equation(self) -> str:
        """A sentence about `equation`; empty if there is nothing to compare."""
        found = self.equation
        if found is None or found["value"] is None or found["network"] is None:
            return ""
        value, network, metric = shown(found["value"]), shown(found["network"]), found["metric"]
        what = f"As one equation: {value}"
        if hasattr(self.model[-1], "terms_"):
            most = int(np.count_nonzero(self.model[-1].coefficients_, axis=0).max(initial=0))
            what = f"With {counted(most, 'term')}: {value}"
        text = f"{what} instead of {network} ({metric})"
        if not found["saved"]:
            return f"{text}; --equation saves that model instead."
        if found["cost"] <= 0:
            return f"{text} for the best shape, which is not better."
        return f"{text} for the best shape, which is used without {self.restricted}."

    @property
    def selection(self) -> list[dict[str, Any]]:
        """The shapes that were compared, the best first; see `QuadraticClassifier.selection_`."""
        return getattr(self.model[-1], "selection_", [])

    @property
    def tails(self) -> dict[str, Any] | None:
        """The columns with long tails, and how they are treated; see `fit_tails`."""
        return getattr(self.model, "tails_", None)

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
            report["folds"] = len(folds) // evaluation.repetitions
            report["repetitions"] = evaluation.repetitions
        report["equation"] = self.equation
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
    profiles = new_profiles(options, source.columns, source.table_format)
    profile_batch(profiles, frame)
    if again := profile_again(profiles, options, source.table_format):
        profile_batch(profiles := again, frame)
    schema = infer_schema(profiles, options, source.unnamed)
    check_costs(schema, settings)
    X, y, present = labeled_rows(schema, frame)
    times = None
    if settings.time is not None:
        check_columns([settings.time], source.columns)
        refuse({"--time must not be the target.": settings.time == schema.target})
        times = times_of(frame[settings.time], source.table_format)[present]
    del frame
    schema = with_suspicions(schema, X, y)
    holds_out = settings.holdout or settings.test_size is not None or times is not None
    may_use_cv = holds_out and settings.cv is None and test is None
    at_random = times is None and test is None
    remarks = remarks_on_table(schema, may_use_cv=may_use_cv, at_random=at_random)
    run = _Run(X, y, np.flatnonzero(present) + 1, schema, settings, tell, remarks, times)
    with warnings.catch_warnings(record=True, action="always") as caught:
        if test is not None:
            trained = run.test_on(test)
        elif settings.cv is not None:
            trained = run.cross_validate(settings.cv)
        elif holds_out:
            trained = run.hold_out()
        else:
            trained = run.cross_validate_if_fast()
    return finished(trained, settings, caught, run.remarks)


def finished(
    trained: Trained,
    settings: Settings,
    caught: list[warnings.WarningMessage],
    remarks: list[Remark],
) -> Trained:
    """Add notes about the table and the training, and the most important remarks."""
    messages = {str(entry.message) for entry in caught if issubclass(entry.category, UserWarning)}
    notes, threshold = trained.schema.notes() + sorted(messages), None
    if trained.tested is not None:
        if settings.cost:
            threshold = trained.tested.cheapest_threshold(settings.cost)
        notes += trained.tested.notes
        remarks = remarks + remarks_on_scores(
            trained.tested.evaluation,
            balanced=settings.class_weight is not None,
            selection=trained.selection,
        )
    return replace(
        trained,
        notes=notes,
        remarks=most_important(remarks),
        restricted=restricted(settings),
        threshold=threshold,
    )


def check_costs(schema: Schema, settings: Settings) -> None:
    """Raise TableError, before training, if costs are given that do not suit the classes."""
    if settings.cost:
        parse_costs(settings.cost, schema.classes)


@dataclass
class _Run:
    """The rows that have a target, and three ways to train and test a model on them.

    `numbers` are the numbers of the rows in the table, counted from 1. If `times` are given, the
    latest rows are held out.
    """

    X: pl.DataFrame
    y: Array
    numbers: Array
    schema: Schema
    settings: Settings
    tell: Callable[[str], None]
    remarks: list[Remark]
    times: Array | None = None

    def test_on(self, test: Source) -> Trained:
        """Train on all rows and test on another table."""
        check_target(self.schema, test)
        self.tell("training")
        model, linear = self._fit(slice(None), saved=True)
        rival = self._rival(slice(None), model, model)
        self.tell("scoring")
        trained = tested_on(test, model, linear, self.schema, self.settings, rival)
        if trained.tested and trained.tested.rows:
            self.remarks += remarks_on_duplicates((self.X, self.y), trained.tested.rows)
        return trained

    def hold_out(self) -> Trained:
        """Train on some rows and test on the others; then train on all rows, unless told not to."""
        rows, held = self._split()
        if self.times is not None:
            self.tell("choosing inputs for later rows")
            self.schema = with_lasting_inputs(
                self.schema,
                self.X[rows],
                self.y[rows],
                self.times[rows],
                self.settings,
                _fitted,
            )
        if self.settings.holdout and self.times is not None:
            self.schema = limited_to(self.schema, self.X[rows])
        collected = ScoredRows(self.schema, self.settings.seed)
        self.tell("training")
        if self.settings.holdout or not len(held):
            model, linear = self._fit_and_predict(rows, held, collected)
            return tested_on_held_out(collected, model, linear, len(rows))
        model, linear = self._fit(slice(None), saved=True)
        self.tell("training without the held-out rows")
        self._fit_and_predict(rows, held, collected, saved=model)
        share = f"{len(held) / len(self.y):.0%} of the rows"
        how = f"{share} were held out for these scores"
        if self.times is not None:
            how = f"the latest {share} by {self.settings.time!r} were held out for these scores"
        return self._trained_on_all_rows(model, linear, collected.evaluate(), how)

    def _split(self) -> tuple[Array, Array]:
        """Return training rows and held-out rows."""
        if self.times is None:
            return _holdout(self.y, self.schema, self.settings)
        return latest(self.times, self.y, self.schema, self.settings)

    def cross_validate_if_fast(self) -> Trained:
        """Cross-validate if that is fast and every class has enough rows; else hold out rows."""
        fewest = min(self.schema.class_counts, default=len(self.y) // 2)
        outputs = len(self.schema.classes) if len(self.schema.classes) > 2 else 1
        wide = max(1, sum(self.settings.hidden or ()) / MOST_NEURONS) ** 2
        count = min(FOLDS, fewest)
        if count < 2 or len(self.y) * self.schema.width * outputs * wide > MOST_VALIDATED:
            return self.hold_out()
        return self.cross_validate(count, REPETITIONS if len(self.y) < REPEATED_BELOW else 1)

    def cross_validate(self, count: int, repetitions: int = 1) -> Trained:
        """Train the model on all rows, and test models of the same kind on each of several folds.

        Each repetition divides the rows into other folds.
        """
        self.tell("training")
        model, linear = self._fit(slice(None), saved=True)
        collected = ScoredRows(self.schema, self.settings.seed)
        folds = _folds(self.y, self.schema, count, repetitions, self.settings.seed)
        for fold, (rows, held) in enumerate(folds):
            self.tell(f"fold {fold + 1} of {len(folds)}")
            self._fit_and_predict(rows, held, collected, fold, saved=model)
        again = f", repeated {repetitions} times" if repetitions > 1 else ""
        how = f"{count}-fold cross-validation{again}"
        return self._trained_on_all_rows(model, linear, collected.evaluate(), how)

    def _trained_on_all_rows(
        self, model: Pipeline, linear: LinearBaseline, tested: TestTable | None, how: str
    ) -> Trained:
        how = f"{how}; the saved model is trained on all rows"
        return Trained(model, linear, self.schema, len(self.y), tested, how, held_out=0)

    def _rival(self, rows: Any, model: Pipeline, saved: Pipeline) -> Pipeline | None:
        """Fit the model that the one fitted to these rows is compared with; see `Trained.equation`.

        The rival is one equation if the saved model is not. If the shape was restricted to one
        equation, the shape of the rival is chosen freely. Otherwise, there is none.
        """
        single = is_equation(saved)
        if single and not restricted(self.settings):
            return None
        if not single and is_equation(model):
            return model
        self.tell("comparing with other shapes")
        other = replace(self.settings, hidden=None, kind=None, equation=not single, readable=False)
        if self.settings.readable:  # whose penalty is another one
            other = replace(other, alpha=None)
        X = self.X[rows]
        return _fitted(X, self.y[rows], self._schema_of(X), other)

    def _fit_and_predict(
        self,
        rows: Array,
        held: Array,
        collected: ScoredRows,
        fold: int = 0,
        saved: Pipeline | None = None,
    ) -> tuple[Pipeline, LinearBaseline]:
        """Fit the model and the linear baseline to `rows`, and predict the rows `held`.

        `saved` is the model that is saved, if that is another one.
        """
        model, linear = self._fit(rows, saved=saved is None)
        if len(held):
            rival = self._rival(rows, model, saved or model)
            self.tell("scoring")
            X, y = self.X[held], self.y[held]
            collected.constants.append(trivial_outputs(self.schema, collected.codes(self.y[rows])))
            outputs = outputs_of(model, self.schema, X, linear, rival)
            collected.add(self.numbers[held], collected.codes(y), outputs, fold)
            if fold == 0:  # the other folds would give similar remarks
                self.remarks += remarks_on_duplicates((self.X[rows], self.y[rows]), (X, y))
        return model, linear

    def _schema_of(self, X: pl.DataFrame) -> Schema:
        """Return the schema for these rows: later dates are like the last one, as in the future."""
        return self.schema if self.times is None else limited_to(self.schema, X)

    def _fit(self, rows: Any, *, saved: bool = False) -> tuple[Pipeline, LinearBaseline]:
        """Fit the model and the linear baseline; a saved sparse model has selection frequencies."""
        X, y = self.X[rows], self.y[rows]
        schema = self._schema_of(X)
        model = _fitted(X, y, schema, self.settings)
        Z = encoded_for_training(model, X, y, schema)
        if saved and self.settings.readable:
            self.tell("selecting terms on halves of the rows")
            model[-1].stability(Z, y)
        return model, LinearBaseline.fit(Z, y, self.schema, self.settings.class_weight)


def is_equation(model: Pipeline) -> bool:
    """Whether the network has a single layer, so that the model is one equation."""
    return len(model[-1].network_.layers) == 1


def restricted(settings: Settings) -> str:
    """Return the option that restricts the shape to a single layer; empty if there is none."""
    options = {
        "--readable": settings.readable,
        "--equation": settings.equation,
        "--hidden": settings.hidden == (),
        "--kind": settings.kind is not None and not settings.hidden,
    }
    return next((option for option, given in options.items() if given), "")


def tested_on(
    test: Source,
    model: Pipeline,
    linear: LinearBaseline,
    schema: Schema,
    settings: Settings,
    rival: Pipeline | None,
) -> Trained:
    """Score a model, which was trained on all rows that have a target, on another table."""
    tested = evaluate_table(model, schema, test, linear=linear, rival=rival, seed=settings.seed)
    return Trained(
        model,
        linear,
        schema,
        rows=schema.rows - schema.missing_targets,
        tested=tested,
        how=f"the rows of {test.path.name}, which the saved model was not trained on",
        held_out=tested.evaluation.rows,
    )


def tested_on_held_out(
    collected: ScoredRows, model: Pipeline, linear: LinearBaseline, rows: int
) -> Trained:
    """Score a model, which was trained on `rows` rows, on the others."""
    count = collected.seen
    return Trained(
        model,
        linear,
        collected.schema,
        rows=rows,
        tested=collected.evaluate() if count else None,
        how=f"{counted(count, 'held-out row')}, which the saved model was not trained on",
        held_out=count,
    )


def make_estimator(schema: Schema, settings: Settings, **options: Any) -> Any:
    """Return a classifier or regressor, which can be explained if it has no hidden layers."""
    if settings.class_weight is not None and not schema.classes:
        raise TableError("--class-weight needs a classifier, but this model predicts numbers.")
    if settings.readable:
        return _sparse_estimator(schema, settings)
    chosen: dict[str, Any] = {"hidden_layer_sizes": "single"} if settings.equation else {}
    if settings.hidden is not None or settings.kind is not None:
        hidden = settings.hidden or ()
        kinds = ["linear"] * len(hidden) + [settings.kind or "quadratic"]
        chosen = {"hidden_layer_sizes": hidden, "layer_kinds": kinds}
    make = QuadraticClassifier if schema.classes else QuadraticRegressor
    chosen |= {
        name: value
        for name, value in vars(settings).items()
        if name in ("alpha", "max_iter", "class_weight") and value is not None
    }
    return make(random_state=settings.seed, **(chosen | options))


def _sparse_estimator(schema: Schema, settings: Settings) -> Any:
    """Return the estimator of --readable."""
    chosen: dict[str, Any] = {
        "alpha": "auto" if settings.alpha is None else settings.alpha,
        "max_terms": settings.terms or MOST_TERMS,
        "hierarchy": settings.hierarchy or "none",
        "refit": True,
        "random_state": settings.seed,
    }
    if schema.classes:
        return SparseQuadraticClassifier(class_weight=settings.class_weight, **chosen)
    return SparseQuadraticRegressor(**chosen)


@contextmanager
def memory_limit_as_table_error() -> Iterator[None]:
    """Convert a MemoryLimitError to a TableError whose advice refers to command-line options."""
    try:
        yield
    except MemoryLimitError as error:
        raise TableError(
            f"{error.fact} Use --kind reduced, --hidden 30, or fewer columns (--drop)."
        ) from None


def _folds(
    y: Array, schema: Schema, count: int, repetitions: int, seed: int
) -> list[tuple[Array, Array]]:
    """Return pairs of training rows and held-out rows, stratified by class."""
    fewest, there_are = len(y), f"; there are {len(y)}"
    if schema.classes:
        fewest, rarest = min(zip(schema.class_counts, schema.classes, strict=True))
        there_are = f" of every class; {rarest!r} has {fewest}"
    if fewest < count:
        raise TableError(f"--cv {count} needs at least {count} rows{there_are}.")
    make = RepeatedStratifiedKFold if schema.classes else RepeatedKFold
    folds = make(n_splits=count, n_repeats=repetitions, random_state=seed)
    return list(folds.split(np.zeros(len(y)), y))


def _holdout(y: Array, schema: Schema, settings: Settings) -> tuple[Array, Array]:
    """Return training rows and held-out rows, with at least one training row per class."""
    rng = np.random.default_rng(settings.seed)
    groups = [np.flatnonzero(y == label) for label in schema.classes] or [np.arange(len(y))]
    counts = [min(round(settings.held_out_share * len(group)), len(group) - 1) for group in groups]
    held = [rng.permutation(group)[:count] for group, count in zip(groups, counts, strict=True)]
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(y)), out), out


def _fitted(X: pl.DataFrame, y: Array, schema: Schema, settings: Settings) -> Pipeline:
    estimator = make_estimator(schema, settings, verbose=settings.verbose)
    # a sparse equation is in the units of the columns, unless powers are asked for
    tails = "keep" if settings.readable and settings.tails == "auto" else settings.tails
    with memory_limit_as_table_error():
        return fitted_pipeline(X, y, schema, estimator, tails)
