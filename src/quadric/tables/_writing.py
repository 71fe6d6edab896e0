"""Writing tables in batches; the file appears complete or not at all."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from quadric._utils.text import visible
from quadric._utils.whole_files import replacing

FORMULA = r"\A[=+\-@\t\r\n]"
NUMBER = r"\A[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\z"


def write_batches(
    path: Path | None, frames: Iterable[pl.DataFrame], *, raw_csv: bool = False
) -> int:
    """Write frames as CSV or, if the name ends with .parquet or .pq, as Parquet.

    The frames go to a temporary file beside `path`, which is renamed at the end, so an older file
    stays as it is if anything fails. Raises OSError if the file cannot be written.

    Parameters
    ----------
    path : Path or None
        None writes CSV to stdout.
    frames : iterable of DataFrame
    raw_csv : bool
        Whether CSV contains text unchanged, see `safe_for_spreadsheets`.

    Returns
    -------
    int
        How many texts of a CSV file were changed.
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

    This is text that begins with =, +, -, @, a tab or a line end, except numbers such as -1. Also
    returns how many texts were changed.
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
    """Write to stdout; on a terminal, control characters are escaped."""
    if _is_terminal():
        text = "\n".join(map(visible, text.split("\n")))
    sys.stdout.write(text)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _write_parquet(path: Path, frames: Iterable[pl.DataFrame]) -> None:
    """Write with Polars' streaming engine, which asks for one frame at a time."""
    iterator = iter(frames)
    first = next(iterator)
    failures: list[BaseException] = []

    def source(*_: object) -> Iterator[pl.DataFrame]:
        try:
            yield first
            yield from iterator
        except BaseException as error:
            failures.append(error)  # Polars would wrap it
            raise

    try:
        register_io_source(source, schema=first.schema).sink_parquet(path)
    except Exception as error:
        if failures:
            raise failures[0] from None
        if isinstance(error, pl.exceptions.PolarsError):
            raise OSError(0, str(error).splitlines()[0]) from None
        raise
