"""Train on a wide and on a long table in two checkouts: `python -m benchmarks.large_tables`.

The wide table has 60 rows and 2000 columns, the long one a million rows and 20 columns. Prints the
time, the CPU time and the scores of `quadric train`; with `--against PATH`, also of the command of
another checkout.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.two_checkouts import HERE, header, parse_arguments


def write_wide(path: Path) -> None:
    """Write a table whose first 25 columns tell about the target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2000))
    y = X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=60) > 0
    X[:, :20] += 0.8 * y[:, None]
    write(path, X, y)


def write_long(path: Path) -> None:
    """Write a table whose target depends on a product and a square."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 20))
    score = X[:, 0] * X[:, 1] + X[:, 2] ** 2 - 1 + 0.5 * X[:, 3]
    write(path, X, score + 0.7 * rng.normal(size=len(X)) > 0)


def write(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    columns = {f"x{j}": column for j, column in enumerate(np.round(X, 4).T)}
    pl.DataFrame(columns | {"y": np.where(y, "yes", "no")}).write_csv(path)


def train(source: Path, table: Path, threads: int | None) -> list[str]:
    """Run `quadric train` with the sources of a checkout; return the cells of a row."""
    environment = dict(os.environ, PYTHONPATH=str(source / "src"))
    if threads is not None:
        environment |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "quadric", "train", table, "--target", "y", "--json"]
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [*command, "--output", table.with_suffix(".quadric")],
        env=environment,
        capture_output=True,
        check=True,
    )
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    scores = json.loads(run.stdout)["evaluation"]["scores"]
    shown = [f"{scores[name]['value']:.3f}" for name in ("accuracy", "log-loss")]
    return [f"{seconds:.1f}", f"{used:.1f}", *shown]


def main() -> None:
    options = parse_arguments(__doc__.partition(":")[0], threads=None)
    paths = [HERE] if options.against is None else [HERE, options.against]
    print(header(options.threads, *paths), flush=True)
    print("| table | checkout | seconds | CPU seconds | accuracy | log-loss |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for name, create in {"60 x 2000": write_wide, "1 000 000 x 20": write_long}.items():
            table = Path(place, "table.csv")
            create(table)
            for _ in range(options.rounds or 1):
                for path, where in zip(paths, ("here", "there"), strict=False):
                    cells = [name, where, *train(path, table, options.threads)]
                    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
