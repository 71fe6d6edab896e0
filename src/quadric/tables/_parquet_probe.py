"""Reads a Parquet file and throws the rows away: run in a process of its own by `parquet`.

    python parquet_probe.py FILE BYTES

A damaged file can make the reader panic, lose rows in silence, or abort the process. Prints, as
JSON, the columns and the number of rows, or why the file cannot be read. At most BYTES of memory
are used, where the system can see to that. Imports nothing of quadric, to start fast.
"""

import json
import sys
from contextlib import suppress
from typing import Any

import polars as pl
from polars import selectors

BATCH = 20_000
SLACK = 2**31  # of addresses that threads reserve and do not use


def probe(path: str) -> dict[str, Any]:
    """The columns and the number of rows, all of which were read; or the error."""
    try:
        scan = pl.scan_parquet(path, glob=False)
        columns = scan.collect_schema().names()
        promised = scan.select(pl.len()).collect().item()
        rows = 0
        for frame in scan.collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True):
            rows += len(as_in_csv(frame))
        if rows != promised:
            return {"error": f"it promises {promised} rows, and {rows} can be read"}
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first = str(error).strip().splitlines()[:1]
        return {"error": first[0] if first else type(error).__name__}
    return {"columns": columns, "rows": rows}


def as_in_csv(frame: pl.DataFrame) -> pl.DataFrame:
    """Dates, times and categories as text, all floats as Float64.

    Integers and decimals are kept as they are: a float does not tell all of them apart.
    """
    return frame.with_columns(
        selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String),
        (selectors.date() | selectors.datetime()).cast(pl.String),
        selectors.time().dt.to_string("%H:%M:%S%.f"),
        selectors.float().cast(pl.Float64),
    )


def _limit_memory(most: int) -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        with open("/proc/self/statm") as stream:
            used = int(stream.read().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = used + SLACK + most
        if soft == resource.RLIM_INFINITY or wanted < soft:
            resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


if __name__ == "__main__":
    _limit_memory(int(sys.argv[2]))
    print(json.dumps(probe(sys.argv[1])))
