"""Tables out, batch by batch; the file is there whole at the end, or not at all."""

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
    """Write frames as CSV, or as Parquet where the name ends so; None is CSV to stdout.

    The frames go to a temporary file beside the path, renamed at the end: whatever happens, an
    older file is not touched before. OSError where that is not possible.

    Returns
    -------
    int
        How many texts of a CSV file have got an apostrophe in front, see `safe_for_spreadsheets`;
        with `raw_csv` none.
    """
    if path is None:
        return _write_csv(_print, frames, raw_csv)
    with replacing(path) as stream:
        if path.suffix.lower() in (".parquet", ".pq"):
            _write_parquet(Path(stream.name), frames)
            return 0
        return _write_csv(lambda text: stream.write(text.encode()), frames, raw_csv)


def safe_for_spreadsheets(texts: pl.Series) -> tuple[pl.Series, int]:
    """Texts that a spreadsheet would compute, '=1+1', as texts that it shows, "'=1+1".

    These begin with =, +, -, @, a tab or a line end; a number such as -1 is left alone. Also
    returns how many texts were changed.
    """
    formulas = texts.str.contains(FORMULA) & ~texts.str.contains(NUMBER)
    safe = texts.to_frame().select(pl.when(formulas).then("'" + pl.first()).otherwise(pl.first()))
    return safe.to_series().alias(texts.name), int(formulas.sum())


def _write_csv(write: Callable[[str], object], frames: Iterable[pl.DataFrame], raw: bool) -> int:
    changed = 0
    for i, frame in enumerate(frames):
        if not raw:
            columns = []
            for column in frame:
                if column.dtype == pl.String:
                    column, count = safe_for_spreadsheets(column)
                    changed += count
                columns.append(column)
            names, count = safe_for_spreadsheets(pl.Series(frame.columns, dtype=pl.String))
            changed += count if i == 0 else 0
            frame = pl.DataFrame(columns).rename(dict(zip(frame.columns, names, strict=True)))
        write(frame.write_csv(include_header=i == 0))
    return changed


def _print(text: str) -> None:
    """Control characters are shown on a terminal; in a pipe they are data."""
    if _is_terminal():
        text = "\n".join(map(visible, text.split("\n")))
    sys.stdout.write(text)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _write_parquet(path: Path, frames: Iterable[pl.DataFrame]) -> None:
    """Through Polars' own writer of streams, which asks for one frame after the other."""
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
