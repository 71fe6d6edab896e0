"""Parquet files in batches of rows; another process reads each file first: it may be damaged."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from quadric._utils.memory import SHARE, available_bytes
from quadric.config import get_config
from quadric.errors import TableError
from quadric.tables._parquet_probe import BATCH, as_in_csv

PROBE = Path(__file__).with_name("_parquet_probe.py")
LONGEST_REASON = 200


def columns_and_rows(path: Path) -> tuple[tuple[str, ...], int]:
    """The columns and the number of rows of a file, all of which can be read; TableError if not."""
    if not sys.executable:
        raise TableError(f"cannot read {path}: this Python cannot start another to try it out.")
    limit = get_config()["max_memory"] or int(SHARE * available_bytes())
    try:
        # -P: the modules beside the probe are not to be found by the names of Python's own
        done = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", PROBE, os.path.abspath(path), str(limit)],
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
            env=os.environ | {"RUST_BACKTRACE": "0", "POLARS_MAX_THREADS": "2"},
        )  # fmt: skip
    except OSError as error:
        raise TableError(f"cannot start a process to read {path}: {error.strerror}.") from None
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise TableError(_why_it_ended(path, done)) from None
    if "error" in found or b"panicked at" in done.stderr:
        raise _damaged(path, found.get("error", "its reader panicked"))
    if not found["columns"]:
        raise TableError(f"{path} has no columns.")
    return tuple(found["columns"]), found["rows"]


def frames(path: Path, rows: int) -> Iterator[pl.DataFrame]:
    """The rows in batches, which must be so many in all; TableError if they are not."""
    read = 0
    try:
        batches = pl.scan_parquet(path, glob=False).collect_batches(
            chunk_size=BATCH, maintain_order=True, lazy=True
        )
        for frame in batches:
            read += len(frame)
            if len(frame):
                yield as_in_csv(frame)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _damaged(path, str(error)) from None
    if read != rows:
        raise _damaged(path, f"{read} of {rows} rows could be read")


def _damaged(path: Path, reason: str) -> TableError:
    first = (reason.strip().splitlines() or ["it cannot be read"])[0][:LONGEST_REASON]
    shown = "".join(sign if sign.isprintable() else "?" for sign in first).rstrip(".")
    return TableError(f"{path} is a damaged Parquet file: {shown}. Take another copy of it.")


def _why_it_ended(path: Path, done: subprocess.CompletedProcess[bytes]) -> str:
    """Of a process that died over a file: an allocation that fails ends it at once."""
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    if done.returncode > 0 and lines:  # a Python without Polars, and the like
        return f"cannot read {path}: {lines[-1][:LONGEST_REASON]}."
    return (
        f"{path} is a damaged Parquet file, or takes more memory than there is: the process that "
        f"tried to read it ended with code {done.returncode}. Take another copy of it."
    )
