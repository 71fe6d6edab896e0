"""Script that reads Parquet files in its own process and discards the rows.

    python _parquet_probe.py BYTES FILE...

A damaged file can make the reader panic, lose rows silently, or abort the process. For each file,
the script prints a line of JSON: the columns and the number of rows, or the error. It limits its
memory to BYTES if the system supports this. It imports nothing from quadric, so that it starts
quickly.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors

ROWS_AT_ONCE = 20_000
RESERVED = 2**31  # bytes of address space that threads reserve but do not use
READ_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def read_batches(path: Path | str) -> Iterator[pl.DataFrame]:
    """Iterate over the rows in order."""
    return pl.scan_parquet(path, glob=False).collect_batches(
        chunk_size=ROWS_AT_ONCE, maintain_order=True, lazy=True
    )


def probe(path: str) -> dict[str, Any]:
    """Read all rows; return the columns and the number of rows, or the error."""
    try:
        scan = pl.scan_parquet(path, glob=False)
        columns = scan.collect_schema().names()
        expected = scan.select(pl.len()).collect().item()
        rows = sum(len(as_in_csv(frame)) for frame in read_batches(path))
    except READ_ERRORS as error:
        return {"error": str(error).strip() or type(error).__name__}
    if rows != expected:
        return {"error": f"it should have {expected} rows, but {rows} can be read"}
    return {"columns": columns, "rows": rows}


def as_in_csv(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert dates, times and categories to text, and floats to Float64.

    Integers and decimals are left unchanged, because a float cannot represent all of them.
    """
    return frame.with_columns(
        selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String),
        (selectors.date() | selectors.datetime()).cast(pl.String),
        selectors.time().dt.to_string("%H:%M:%S%.f"),
        selectors.float().cast(pl.Float64),
    )


def _limit_memory(most: int) -> None:
    if sys.platform == "win32":
        return  # no such limit: a damaged file may use all memory, but only in this process
    with suppress(OSError, ValueError):  # macOS has no /proc
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
        wanted = pages * resource.getpagesize() + RESERVED + most
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if soft == resource.RLIM_INFINITY or wanted < soft:
            resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


if __name__ == "__main__":
    _limit_memory(int(sys.argv[1]))
    for file in sys.argv[2:]:
        print(json.dumps(probe(file)), flush=True)  # so that a crash leaves the earlier lines
