"""Tables written in batches to a file that is never left incomplete."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from quadric.apps.shell.tables._table_format import PARQUET, TAB_SEPARATED, WRITTEN
from quadric.errors import TableError
from quadric.utils import replacing, visible

FORMULA = r"\A[=+\-@\t\r\n]"
NUMBER = r"\A[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\z"


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


def safe_for_spreadsheets(texts: pl.Series) -> tuple[pl.Series, int]:
    """Put an apostrophe in front of text that a spreadsheet would evaluate, such as '=1+1'.

    This is text that begins with =, +, -, @, a tab or a line break, except numbers such as -1.
    Also returns the number of strings that were changed.
    """
    formulas = texts.str.contains(FORMULA) & ~texts.str.contains(NUMBER)
    safe = texts.to_frame().select(pl.when(formulas).then("'" + pl.first()).otherwise(pl.first()))
    return safe.to_series().alias(texts.name), int(formulas.sum())


def _write_csv(
    write: Callable[[str], object], frames: Iterable[pl.DataFrame], raw: bool, separator: str
) -> int:
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
        try:
            text = frame.write_csv(include_header=i == 0, separator=separator)
        except pl.exceptions.PolarsError as error:  # lists, for instance
            reason = str(error).splitlines()[0].rstrip(".")
            raise TableError(f"{reason}. Write a Parquet file instead: -o out.parquet.") from None
        write(text)
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
            raise OSError(0, str(error).splitlines()[0], str(path)) from None
        raise
