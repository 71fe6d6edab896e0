"""Tables out, batch by batch; the file is there whole at the end, or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from quadric.text import visible
from quadric.whole_files import replacing

__all__ = ["write_batches"]


def write_batches(path: Path | None, frames: Iterable[pl.DataFrame]) -> None:
    """Write frames as CSV, or as Parquet where the name ends so; None is CSV to stdout.

    The frames go to a temporary file beside the path, renamed at the end: whatever happens, an
    older file is not touched before. OSError where that is not possible.
    """
    if path is None:
        for i, frame in enumerate(frames):
            text = frame.write_csv(include_header=i == 0)
            if _is_terminal():  # in a pipe it is data
                text = "\n".join(map(visible, text.split("\n")))
            sys.stdout.write(text)
        return
    with replacing(path) as stream:
        if path.suffix.lower() in (".parquet", ".pq"):
            _write_parquet(Path(stream.name), frames)
        else:
            for i, frame in enumerate(frames):
                stream.write(frame.write_csv(include_header=i == 0).encode())


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
