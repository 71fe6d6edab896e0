"""Predictions for a table, made in batches and written to a file that is never left incomplete.

Every row of the table gets one prediction, in the same order.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source
from sklearn.pipeline import Pipeline

from quadric._utils.text import counted, listed, visible
from quadric._utils.whole_files import replacing
from quadric.errors import TableError
from quadric.tables._features import complete_rows, empty_rows, features, unused_columns
from quadric.tables._schema import Schema
from quadric.tables._source import Source
from quadric.tables._table_network import TableNetwork

ROWS_AT_ONCE = 20_000
FORMULA = r"\A[=+\-@\t\r\n]"
NUMBER = r"\A[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\z"
NUMBERS_AT_ONCE = 2**24  # maximum number of entries in the dense input matrix of one batch


@dataclass
class Predicted:
    """Counts for a table of predictions.

    Attributes
    ----------
    rows, empty : int
        The number of rows, and the number of rows without a prediction.
    imputes : bool
        Whether the model imputes missing values.
    formulas : int
        The number of strings prefixed with an apostrophe; see `safe_for_spreadsheets`.
    unused : list of str
        Columns that the model does not use, except the target.
    missing, unknown : Counter
        The number of missing values and of unknown categories in each column.
    """

    rows: int = 0
    empty: int = 0
    imputes: bool = True
    formulas: int = 0
    unused: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def count(self, schema: Schema, X: pl.DataFrame) -> None:
        """Count the rows, missing values and unknown categories of a batch."""
        self.rows += len(X)
        for column in schema.columns:
            values = X[column.name].drop_nulls()
            self.missing[column.name] += len(X) - len(values)
            if column.kind == "category":
                self.unknown[column.name] += int((~values.is_in(column.categories)).sum())

    def notes(self) -> list[str]:
        """Return the counts as sentences."""
        missing = [f"{name!r} ({count})" for name, count in (+self.missing).items()]
        reason = "without any value" if self.imputes else "with a missing number"
        sentences = {
            f"Columns that the model does not use: {listed(map(repr, self.unused))}.": self.unused,
            **{
                f"Category not seen in training: {counted(count, 'value')} of {name!r}, encoded "
                "as none of the known categories.": count
                for name, count in self.unknown.items()
            },
            f"Imputed missing values in {listed(missing, 8)}.": self.imputes and missing,
            f"Made no prediction for {counted(self.empty, 'row')} {reason}.": self.empty,
            f"Added an apostrophe in front of {counted(self.formulas, 'string')} that a "
            "spreadsheet would evaluate as a formula; --raw-csv turns this off.": self.formulas,
        }
        return [sentence for sentence, applies in sentences.items() if applies]


def predict(
    model: Any,
    schema: Schema,
    source: Source,
    path: Path | None,
    *,
    proba: bool = False,
    raw_csv: bool = False,
) -> Predicted:
    """Write predictions for every row of a table.

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
        The file to write: Parquet if its name ends with .parquet or .pq, otherwise CSV. None
        writes CSV to stdout.
    proba : bool
        Whether to add a column 'probability of ...' for each class.
    raw_csv : bool
        Whether to write text to CSV unchanged instead of applying `safe_for_spreadsheets`.

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
    unused = [name for name in unused_columns(schema, source.columns) if name != schema.target]
    done = Predicted(unused=unused, imputes=not isinstance(model, TableNetwork))
    last = model[-1] if isinstance(model, Pipeline) else model
    rows = max(1, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // last.n_features_in_))

    def frames() -> Iterator[pl.DataFrame]:
        for frame in source.batches(rows):
            X = features(schema, frame, done.rows)
            empty = empty_rows(X) if done.imputes else ~complete_rows(X)
            done.count(schema, X)
            done.empty += int(empty.sum())
            try:
                found = _predictions(model, schema, X, proba)
            except ValueError as error:  # numbers too large for the model
                raise TableError(" ".join(str(error).split())) from None
            yield found.with_columns(pl.when(pl.lit(pl.Series(~empty))).then(pl.all()))
        if not done.rows:
            raise TableError(f"{source.path} has column names but no rows.")

    done.formulas = write_batches(path, frames(), raw_csv=raw_csv)
    return done


def _predictions(model: Any, schema: Schema, X: pl.DataFrame, proba: bool) -> pl.DataFrame:
    if not proba:
        Y = np.asarray(model.predict(X))
        if Y.ndim == 1:
            return pl.DataFrame({schema.target: Y})
        return pl.DataFrame({f"{schema.target} {k}": column for k, column in enumerate(Y.T)})
    P = model.predict_proba(X)
    names = [schema.target, *(f"probability of {label}" for label in model.classes_.tolist())]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise TableError(
            f"there would be two columns named {name!r}, because the target has this name or two "
            "classes look the same. Predict without --proba."
        )
    return pl.DataFrame(dict(zip(names, [model.classes_[P.argmax(axis=1)], *P.T], strict=True)))


def write_batches(
    path: Path | None, frames: Iterable[pl.DataFrame], *, raw_csv: bool = False
) -> int:
    """Write frames as CSV or, if the name ends with .parquet or .pq, as Parquet.

    The frames are written to a temporary file next to `path`, which is renamed at the end, so an
    existing file is left unchanged if anything fails. Raises OSError if the file cannot be written.

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
        return _write_csv(_print, frames, raw_csv)
    with replacing(path) as stream:
        if path.suffix.lower() in (".parquet", ".pq"):
            _write_parquet(Path(stream.name), frames)
            return 0
        return _write_csv(lambda text: stream.write(text.encode()), frames, raw_csv)


def safe_for_spreadsheets(texts: pl.Series) -> tuple[pl.Series, int]:
    """Put an apostrophe in front of text that a spreadsheet would evaluate, such as '=1+1'.

    This is text that begins with =, +, -, @, a tab or a line break, except numbers such as -1.
    Also returns the number of strings that were changed.
    """
    formulas = texts.str.contains(FORMULA) & ~texts.str.contains(NUMBER)
    safe = texts.to_frame().select(pl.when(formulas).then("'" + pl.first()).otherwise(pl.first()))
    return safe.to_series().alias(texts.name), int(formulas.sum())


def _write_csv(write: Callable[[str], object], frames: Iterable[pl.DataFrame], raw: bool) -> int:
    changed = 0
    for i, frame in enumerate(frames):
        if not raw:
            names, count = safe_for_spreadsheets(pl.Series(frame.columns, dtype=pl.String))
            changed += count if i == 0 else 0
            for name in frame.select(pl.col(pl.String)).columns:
                column, count = safe_for_spreadsheets(frame[name])
                frame = frame.with_columns(column)
                changed += count
            frame = frame.rename(dict(zip(frame.columns, names, strict=True)))
        write(frame.write_csv(include_header=i == 0))
    return changed


def _print(text: str) -> None:
    """Write to stdout, escaping control characters if it is a terminal."""
    if _is_terminal():
        text = "\n".join(map(visible, text.split("\n")))
    sys.stdout.write(text)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


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
            raise OSError(0, str(error).splitlines()[0]) from None
        raise
