"""Predictions for a table, made in batches, written to a file and scored.

Every row of the table gets one prediction, in the same order. The file is never left incomplete.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from quadric.apps.shell.tables._evaluation import NumberMetrics, number_scores
from quadric.apps.shell.tables._options import (
    PARQUET,
    TAB_SEPARATED,
    WRITTEN,
    applying,
    check_columns,
    first_line,
    refuse,
)
from quadric.apps.shell.tables._saved_model import TableNetwork
from quadric.apps.shell.tables._schema import (
    Schema,
    check_inputs,
    features,
    labels,
    predictable_rows,
)
from quadric.apps.shell.tables._source import ROWS_AT_ONCE, Source
from quadric.apps.shell.tables._threshold import Threshold
from quadric.checks import Array
from quadric.errors import TableError
from quadric.models import ModelView, classes_of
from quadric.utils import counted, listed, replacing, rounded, visible

NUMBERS_AT_ONCE = 2**24  # maximum number of entries in the dense input matrix of one batch
TEXTS: dict[str, Callable[[float], str]] = {
    "accuracy": "accuracy {:.3f}".format,
    "R²": "R² {:.3f}".format,
    "mean_absolute_error": lambda error: f"mean absolute error {rounded(error)}",
}
OUTSIDE = "outside_range"  # column with the names of inputs outside the range in training
FORMULA = r"\A[=+\-@\t\r\n]"
NUMBER = r"\A[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\z"
UNKNOWN = {  # how an unknown category is encoded
    "category": "encoded as none of the known categories",
    "ordinal": "imputed with the mean rank",
    "target-encoded": "encoded as the mean of the target",
}


@dataclass
class Predicted:
    """Counts and scores for a table of predictions.

    Attributes
    ----------
    schema : Schema
    rows, empty : int
        The number of rows, and the number of rows without a prediction.
    imputes : bool
        Whether the model imputes missing values.
    formulas : int
        The number of strings prefixed with an apostrophe; see `safe_for_spreadsheets`.
    unused : list of str
        Columns that the model does not use, except the target and those that are kept.
    missing, unknown : Counter
        The number of missing values and of unknown categories in each column.
    scored : int
        The number of rows with a prediction and a target.
    sums : array
        Over these rows: the number of correct classes, or the sums of `NumberMetrics.parts`.
    center : float
        A typical target, for these sums.
    problem : str
        Why the target cannot be used; empty if it can.
    threshold : Threshold or None
        The threshold that chooses one of two classes.
    outside : Counter
        The number of rows in which each input is outside the range of the training table.
    rows_outside : int
        The number of rows with such an input.
    """

    schema: Schema
    rows: int = 0
    empty: int = 0
    imputes: bool = True
    formulas: int = 0
    unused: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    scored: int = 0
    sums: Array = field(default_factory=lambda: np.zeros(1))
    center: float = 0.0
    problem: str = ""
    threshold: Threshold | None = None
    outside: Counter[str] = field(default_factory=Counter)
    rows_outside: int = 0

    def count(self, X: pl.DataFrame) -> pl.Series:
        """Count the rows, missing values, unknown categories and inputs outside their range.

        Returns for each row the names of the inputs that are outside their range, or null.
        """
        self.rows += len(X)
        masks = {}
        for column in self.schema.columns:
            values = X[column.name].drop_nulls()
            self.missing[column.name] += len(X) - len(values)
            if column.categories:
                self.unknown[column.name] += int((~values.is_in(column.categories)).sum())
            elif (mask := column.outside(X[column.name])).any():
                masks[column.name] = mask
                self.outside[column.name] += int(mask.sum())
        texts: list[str | None] = [None] * len(X)
        for row in np.flatnonzero(np.any([np.zeros(len(X), bool), *masks.values()], axis=0)):
            self.rows_outside += 1
            texts[row] = ", ".join(name for name, mask in masks.items() if mask[row])
        return pl.Series(OUTSIDE, texts, pl.String)

    def score(self, frame: pl.DataFrame, predicted: pl.DataFrame, kept: Array, start: int) -> None:
        """Add the targets of a batch; `kept` is a mask of the rows with a prediction."""
        if self.problem or self.schema.target not in predicted.columns:
            return
        try:
            y, present = labels(self.schema, frame, start)
        except TableError as error:
            self.problem = str(error)
            return
        y, ours = y[kept[present]], predicted[self.schema.target].to_numpy()[kept & present]
        if len(y) and not self.scored and not self.schema.classes:
            self.center = float(y.mean())
        parts = NumberMetrics(y, ours).parts(self.center) if not self.schema.classes else y == ours
        self.sums = self.sums + parts.sum(axis=0)
        self.scored += len(y)

    @property
    def scores(self) -> dict[str, Any]:
        """The scores as JSON values; empty if no row has a target."""
        if self.problem or not self.scored:
            return {}
        means = self.sums / self.scored
        if self.schema.classes:
            return {"rows": self.scored, "accuracy": float(means[0])}
        scores = number_scores(*means)
        defined = {} if np.isnan(scores["R²"]) else {"R²": float(scores["R²"])}
        return {"rows": self.scored, **defined, "mean_absolute_error": float(scores["MAE"])}

    def notes(self) -> list[str]:
        """Return the counts and the scores as sentences."""
        missing = [f"{name!r} ({count})" for name, count in (+self.missing).items()]
        reason = "without any value" if self.imputes else "with a missing number"
        notes = applying(
            {
                f"Columns that the model does not use: {listed(map(repr, self.unused))}.": (
                    self.unused
                ),
                **{
                    f"Category not seen in training: {counted(self.unknown[one.name], 'value')} of "
                    f"{one.name!r}, {UNKNOWN[one.kind]}.": self.unknown[one.name]
                    for one in self.schema.of_kind(*UNKNOWN)
                },
                f"Imputed missing values in {listed(missing, 8)}.": self.imputes and missing,
                self._outside_sentence(): self.outside,
                self.threshold.sentence if self.threshold else "": self.threshold,
                f"Made no prediction for {counted(self.empty, 'row')} {reason}.": self.empty,
                f"Added an apostrophe in front of {counted(self.formulas, 'string')} that a "
                "spreadsheet would evaluate as a formula; --raw-csv turns this off.": self.formulas,
                f"The predictions are not scored: {self.problem}": self.problem,
            }
        )
        if scores := self.scores:
            rows, target = counted(self.scored, "row"), self.schema.target
            texts = [text(scores[name]) for name, text in TEXTS.items() if name in scores]
            notes.append(f"Scores on {rows} with a value for {target!r}: {', '.join(texts)}.")
        return notes

    def _outside_sentence(self) -> str:
        ranges = {column.name: column.range_in_words for column in self.schema.columns}
        each = [
            f"{name!r} ({counted(count, 'row')}{ranges[name]})"
            for name, count in self.outside.most_common()
        ]
        return (
            f"{counted(self.rows_outside, 'row')} with inputs outside the range of the training "
            f"table, where the model extrapolates: {listed(each, 5)}. With --keep, the column "
            f"{OUTSIDE!r} names them."
        )


def predict(
    model: Any,
    schema: Schema,
    source: Source,
    path: Path | None,
    *,
    proba: bool = False,
    keep: Sequence[str] = (),
    labeled: bool = True,
    raw_csv: bool = False,
    threshold: str | None = None,
) -> Predicted:
    """Write predictions for every row of a table, and score them if it contains the target.

    Predictions are written to a column named after the target. If a network predicts several
    numbers, the columns are numbered: 'output 0', 'output 1' and so on. The prediction is empty
    for a row in which all values are missing. A network does not impute values, so its prediction
    is also empty for a row with a missing number.

    Parameters
    ----------
    model : estimator
        A pipeline or a `TableNetwork`.
    schema : Schema
        The columns that the model uses.
    source : Source
        The table; see `open_table`.
    path : Path or None
        The file to write; its format follows from its name, see `write_batches`. None writes CSV
        to stdout.
    proba : bool
        Whether to add a column 'probability of ...' for each class.
    keep : sequence of str
        Columns of the table to copy to the output, in front of the predictions. Then the last
        column, 'outside_range', names the inputs that are outside the range of the training table.
    labeled : bool
        Whether a column with the target's name contains the true values.
    raw_csv : bool
        Whether to write text to CSV unchanged instead of applying `safe_for_spreadsheets`.
    threshold : str, optional
        The probability from which the second class is predicted, such as '0.2', or another one:
        'no=0.2'. By default, the class with the largest probability is predicted.

    Returns
    -------
    Predicted

    Raises
    ------
    TableError
        If the table cannot be read or lacks a column.
    OSError
        If the output cannot be written.
    """
    if proba and schema.task == "regression":
        raise TableError("--proba needs a classifier, but this model predicts numbers.")
    check_columns(keep, source.columns)
    check_inputs(schema, source.columns)
    refuse(
        {
            f"--keep adds a column {OUTSIDE!r}, but the target has this name. Predict without "
            "--keep.": keep and schema.target == OUTSIDE
        }
    )
    used = {*schema.names, schema.target, *keep}
    done = Predicted(
        schema,
        imputes=not isinstance(model, TableNetwork),
        unused=[name for name in source.columns if name not in used],
        threshold=None if threshold is None else Threshold.parse(threshold, schema.classes),
    )
    rows = max(1, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // ModelView.of(model).network.n_inputs))

    def frames() -> Iterator[pl.DataFrame]:
        for frame in source.batches(rows):
            X = features(schema, frame, done.rows)
            kept = predictable_rows(X, imputes=done.imputes)
            outside = done.count(X)
            done.empty += int((~kept).sum())
            try:
                predicted = _predictions(model, schema, X, proba, done.threshold)
            except ValueError as error:  # numbers too large for the model
                raise TableError(" ".join(str(error).split())) from None
            if labeled and schema.target in source.columns:
                done.score(frame, predicted, kept, done.rows - len(X))
            predicted = predicted.with_columns(pl.when(pl.lit(pl.Series(kept))).then(pl.all()))
            if keep:
                predicted = predicted.hstack([outside])
            refuse(
                {
                    f"--keep {name!r} has the same name as a column of predictions. Rename it in "
                    "the table.": name in predicted.columns
                    for name in keep
                }
            )
            yield frame.select(keep).hstack(predicted) if keep else predicted
        if not done.rows:
            raise TableError(f"{source.path} has column names but no rows.")

    done.formulas = write_batches(path, frames(), raw_csv=raw_csv)
    return done


def _predictions(
    model: Any, schema: Schema, X: pl.DataFrame, proba: bool, threshold: Threshold | None
) -> pl.DataFrame:
    P: Any = model.predict_proba(X) if proba or threshold else None
    Y = np.asarray(model.predict(X)) if threshold is None else np.array(threshold.predict(P))
    if not proba:
        if Y.ndim == 1:
            return pl.DataFrame({schema.target: Y})
        return pl.DataFrame({f"{schema.target} {k}": column for k, column in enumerate(Y.T)})
    names = [schema.target, *(f"probability of {label}" for label in classes_of(model).tolist())]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise TableError(
            f"there would be two columns named {name!r}, because the target has this name or two "
            "classes look the same. Predict without --proba."
        )
    # not the largest probability: several may be equal after rounding
    return pl.DataFrame(dict(zip(names, [Y, *P.T], strict=True)))


# ------------------------------------------------------------------------------- certificates


# ------------------------------------------------------------------------------- writing


def write_batches(
    path: Path | None, frames: Iterable[pl.DataFrame], *, raw_csv: bool = False
) -> int:
    """Write frames to a file whose format follows from its name.

    Names that end with .parquet or .pq stand for Parquet, and .tsv or .tab for fields separated by
    tabs. Names that end with .csv or .txt, and names without a suffix, stand for CSV.

    The frames are written to a temporary file next to `path`, which is renamed at the end, so an
    existing file is left unchanged if anything fails. Raises OSError if the file cannot be written,
    and TableError for another format.

    Parameters
    ----------
    path : Path or None
        None writes CSV to stdout.
    frames : iterable of DataFrame
    raw_csv : bool
        Whether to write text to CSV unchanged instead of applying `safe_for_spreadsheets`.

    Returns
    -------
    int
        The number of strings that were changed in a CSV file.
    """
    if path is None:
        return _write_csv(_print, frames, raw_csv, ",")
    suffix = path.suffix.lower()
    if suffix not in WRITTEN:
        raise TableError(f"tables are written as .csv, .tsv or .parquet files. Got {path.name!r}.")
    with replacing(path) as stream:
        if suffix in PARQUET:
            _write_parquet(Path(stream.name), frames)
            return 0
        separator = "\t" if suffix in TAB_SEPARATED else ","
        return _write_csv(lambda text: stream.write(text.encode()), frames, raw_csv, separator)


def write_rows(path: Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write dictionaries with the same keys as a table; None writes CSV to stdout."""
    write_batches(path, [pl.DataFrame(rows, infer_schema_length=None)])


def safe_for_spreadsheets(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Put an apostrophe in front of text that a spreadsheet would evaluate, such as '=1+1'.

    This is text that begins with =, +, -, @, a tab or a line break, except numbers such as -1.
    Also returns the number of strings that were changed.
    """
    text = pl.col(pl.String)
    formulas = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    safe = pl.when(formulas).then(("'" + text).name.keep()).otherwise(text)
    return frame.with_columns(safe), sum(int(column.sum()) for column in frame.select(formulas))


def _write_csv(
    write: Callable[[str], object], frames: Iterable[pl.DataFrame], raw: bool, separator: str
) -> int:
    changed = 0
    for i, frame in enumerate(frames):
        if not raw:
            header, in_header = safe_for_spreadsheets(pl.DataFrame({"name": frame.columns}))
            frame, in_rows = safe_for_spreadsheets(frame)
            frame.columns = header["name"].to_list()
            changed += in_rows + (in_header if i == 0 else 0)
        try:
            write(frame.write_csv(include_header=i == 0, separator=separator))
        except pl.exceptions.PolarsError as error:  # lists, for instance
            raise TableError(
                f"{first_line(error)}. Write a Parquet file instead: -o out.parquet."
            ) from None
    return changed


def _print(text: str) -> None:
    """Write to stdout, escaping control characters if it is a terminal."""
    if sys.stdout.isatty():
        text = "\n".join(map(visible, text.split("\n")))
    sys.stdout.write(text)


def _write_parquet(path: Path, frames: Iterable[pl.DataFrame]) -> None:
    """Write with Polars' streaming engine, which requests one frame at a time."""
    iterator = iter(frames)
    first = next(iterator)
    failures: list[BaseException] = []

    def source(*_: object) -> Iterator[pl.DataFrame]:
        try:
            yield first
            yield from iterator
        except BaseException as error:
            failures.append(error)  # kept because Polars wraps it in another error
            raise

    try:
        register_io_source(source, schema=first.schema).sink_parquet(path)
    except Exception as error:
        if failures:
            raise failures[0] from None
        if isinstance(error, pl.exceptions.PolarsError):
            raise OSError(0, str(error).splitlines()[0], str(path)) from None
        raise
