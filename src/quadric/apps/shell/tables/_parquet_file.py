"""Parquet files, read in batches of rows.

A damaged file can crash the process that reads it, so each file is first read in another process.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from quadric.apps.shell.tables._parquet_probe import READ_ERRORS, as_in_csv, read_batches
from quadric.config import get_config
from quadric.errors import TableError
from quadric.utils import SHARE, available_bytes

PROBE = Path(__file__).with_name("_parquet_probe.py")
LONGEST_REASON = 200


def columns_and_rows(files: Mapping[Path, Path]) -> dict[Path, tuple[tuple[str, ...], int]]:
    """Read whole files in another process, and return the columns and number of rows of each.

    Parameters
    ----------
    files : mapping of Path to Path
        The files to read, and their names in error messages.

    Raises
    ------
    TableError
        If a file is damaged or cannot be read.
    """
    names = list(files.values())
    if not sys.executable:
        raise TableError(f"cannot read {names[0]}: the path of the Python interpreter is unknown.")
    limit = get_config()["max_memory"] or int(SHARE * available_bytes())
    try:
        done = subprocess.run(
            # -P: modules next to the probe must not shadow the standard library
            [sys.executable, "-P", "-W", "ignore", PROBE, str(limit), *map(os.path.abspath, files)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=os.environ | {"RUST_BACKTRACE": "0", "POLARS_MAX_THREADS": "2"},
        )
    except OSError as error:
        raise TableError(f"cannot start a process to read {names[0]}: {error.strerror}.") from None
    lines = done.stdout.splitlines()
    shapes: dict[Path, tuple[tuple[str, ...], int]] = {}
    for k, (file, name) in enumerate(files.items()):
        try:
            answer = json.loads(lines[k] if k < len(lines) else b"")
        except ValueError:
            raise _no_answer(name, done) from None
        if "error" in answer:
            raise _damaged(name, answer["error"])
        if not answer["columns"]:
            raise TableError(f"{name} has no columns.")
        shapes[file] = (tuple(answer["columns"]), answer["rows"])
    if b"panicked at" in done.stderr:
        which = names[0] if len(names) == 1 else f"one of {len(names)} parts"
        raise _damaged(which, "its reader panicked")
    return shapes


def frames(path: Path, file: Path, rows: int) -> Iterator[pl.DataFrame]:
    """Yield the rows of `file` in batches; raise TableError unless there are `rows` rows.

    The file is called `path` in error messages.
    """
    read = 0
    try:
        for frame in read_batches(file):
            read += len(frame)
            if len(frame):
                yield as_in_csv(frame)
    except READ_ERRORS as error:
        raise _damaged(path, str(error)) from None
    if read != rows:
        raise _damaged(path, f"only {read} of {rows} rows can be read")


def _damaged(path: Path | str, reason: str) -> TableError:
    first = (reason.strip().splitlines() or ["it cannot be read"])[0][:LONGEST_REASON]
    shown = "".join(sign if sign.isprintable() else "?" for sign in first).rstrip(".")
    return TableError(f"{path} is a damaged Parquet file: {shown}. Use another copy of it.")


def _no_answer(path: Path, done: subprocess.CompletedProcess[bytes]) -> TableError:
    """Return the error for a probe that crashed, for instance because an allocation failed."""
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    if done.returncode > 0 and lines:  # for instance, if Polars cannot be imported
        return TableError(f"cannot read {path}: {lines[-1][:LONGEST_REASON]}.")
    return TableError(
        f"{path} is a damaged Parquet file, or needs more memory than is available: the process "
        f"that read it ended with code {done.returncode}. Use another copy of it."
    )
