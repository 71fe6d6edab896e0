"""Fits on Dask workers, each a process on this machine: `python -m benchmarks.cluster PART`.

Parts: `scaling` (10 million rows x 10 columns in Parquet files, on 1 and 2 workers with one thread
each), `joined` (the same rows in memory), `one` (a million rows x 20 on one worker with two threads
and in memory), `overhead` (an evaluation without arithmetic), and `rivals` (dask-ml and
SGDClassifier on a million rows x 10). Needs PyArrow, and dask-ml for `rivals`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import quadric
from benchmarks.two_checkouts import HERE, header
from quadric import QuadraticLogisticRegression, cluster
from quadric.checks import Array

COLUMNS = [f"x{k}" for k in range(10)]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ROWS_OF_PART = 250_000


def drawn(rows: int, columns: int, seed: int) -> tuple[Array, Array]:
    """Rows whose class depends on a product, a square and a weight."""
    rng = np.random.default_rng([seed, columns])
    X = rng.normal(size=(rows, columns))
    score = X[:, 0] * X[:, 1] + 0.7 * X[:, 2] ** 2 - 0.7 + 0.5 * X[:, 3] - 0.3 * X[:, 4] * X[:, 5]
    return X, (score + rng.logistic(scale=0.4, size=rows) > 0).astype(np.int64)


def write_parts(directory: Path, rows: int) -> None:
    """Write Parquet files."""
    import pyarrow as pa
    from pyarrow import parquet

    for part in range(rows // ROWS_OF_PART):
        X, y = drawn(ROWS_OF_PART, len(COLUMNS), part)
        columns: dict[str, Any] = {name: X[:, k] for k, name in enumerate(COLUMNS)} | {"y": y}
        parquet.write_table(pa.table(columns), directory / f"part-{part:03}.parquet")


class Workers:
    """A scheduler and its workers; `peaks` are the largest sizes of the workers in memory."""

    def __init__(self, directory: Path, workers: int, threads: int) -> None:
        told = directory / f"scheduler-{time.time_ns()}.json"
        self._started: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", told)
        for _ in range(workers):
            options = ("--nthreads", threads, "--no-nanny", "--no-dashboard", "--memory-limit", "0")
            self._start(
                "worker", "--scheduler-file", told, *options, "--local-directory", directory
            )
        deadline = time.monotonic() + 60
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.address = json.loads(told.read_text(encoding="utf-8"))["address"]
        self.count = workers

    def _start(self, part: str, *options: object) -> None:
        command = [sys.executable, "-m", f"distributed.cli.dask_{part}", "--host", "127.0.0.1"]
        environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(HERE / "src")}
        self._started.append(
            subprocess.Popen(
                [*command, *map(str, options)],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    @property
    def peaks(self) -> list[float]:
        """The largest resident size of each worker, in GB."""
        texts = [
            Path(f"/proc/{one.pid}/status").read_text(encoding="utf-8") for one in self._started[1:]
        ]
        return [int(re.findall(r"VmHWM:\s+(\d+)", text)[0]) * 1024 / 1e9 for text in texts]

    @property
    def busy(self) -> float:
        """The CPU seconds of the busiest worker since it started."""
        texts = [
            Path(f"/proc/{one.pid}/stat").read_text(encoding="utf-8") for one in self._started[1:]
        ]
        ticks = [text.rpartition(")")[2].split()[11:13] for text in texts]
        return max(int(user) + int(system) for user, system in ticks) / os.sysconf("SC_CLK_TCK")

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        with cluster.connected(self.address, default=True) as client:
            client.wait_for_workers(self.count, timeout=60)
            yield client

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()


@contextlib.contextmanager
def workers(count: int, threads: int = 1) -> Iterator[Workers]:
    with tempfile.TemporaryDirectory() as directory:
        started = Workers(Path(directory), count, threads)
        try:
            yield started
        finally:
            started.close()


def seconds_of(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def digest(model: Any, directory: Path) -> str:
    import hashlib

    quadric.save(model, directory / "m.quadric")
    return hashlib.sha256((directory / "m.quadric").read_bytes()).hexdigest()[:12]


def scaling(rows: int) -> None:
    """The same files on one and on two workers with one thread each."""
    import dask.dataframe as dd

    test = drawn(200_000, len(COLUMNS), 10**6)
    print(
        "| workers | seconds | CPU seconds: busiest worker | client | iterations | accuracy "
        "| log-loss | GB per worker | file |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as place:
        write_parts(Path(place), rows)
        for count in (1, 2, 1, 2):
            with workers(count) as started, started.connected():
                frame = dd.read_parquet(place)
                model = QuadraticLogisticRegression()
                before, own = started.busy, time.process_time()
                seconds, _ = seconds_of(lambda f=frame, m=model: m.fit(f[COLUMNS], f["y"]))
                busy, own = started.busy - before, time.process_time() - own
                peaks = ", ".join(f"{peak:.2f}" for peak in started.peaks)
            print(
                f"| {count} | {seconds:.1f} | {busy:.1f} | {own:.1f} | {model.n_iter_[0]} "
                f"| {scores(model, *test)} | {peaks} | {digest(model, Path(place))} |",
                flush=True,
            )


def scores(model: Any, X: Array, y: Array) -> str:
    import pandas as pd

    named = hasattr(model, "feature_names_in_")
    P = model.predict_proba(pd.DataFrame(X, columns=COLUMNS) if named else X)
    loss = -np.log(np.maximum(P[np.arange(len(y)), y], 1e-15)).mean()
    return f"{(P.argmax(axis=1) == y).mean():.4f} | {loss:.5f}"


def joined(rows: int) -> None:
    """All rows in memory."""
    parts = [drawn(ROWS_OF_PART, len(COLUMNS), k) for k in range(rows // ROWS_OF_PART)]
    X, y = (np.concatenate([part[k] for part in parts]) for k in range(2))
    del parts
    seconds, model = seconds_of(lambda: QuadraticLogisticRegression().fit(X, y))
    test = drawn(200_000, len(COLUMNS), 10**6)
    print(f"in memory: {seconds:.1f} s, {model.n_iter_[0]} iterations, {scores(model, *test)}")


def read_lazily(path: Path, like: Array) -> Any:
    """Return a stored array as a Dask array, whose ten chunks are read by the workers."""
    import dask
    import dask.array as da

    ends = np.linspace(0, len(like), 11, dtype=int)
    parts = [
        da.from_delayed(
            dask.delayed(rows_of_file)(path, start, stop),
            (stop - start, *like.shape[1:]),
            like.dtype,
        )
        for start, stop in pairwise(ends.tolist())
    ]
    return da.concatenate(parts)


def rows_of_file(path: Path, start: int, stop: int) -> Array:
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def one(rows: int) -> None:
    """A million rows x 20: one worker with two threads, and in memory."""
    X, y = drawn(rows, 20, 0)
    with tempfile.TemporaryDirectory() as place, workers(1, 2) as started:
        np.save(Path(place, "X.npy"), X)
        np.save(Path(place, "y.npy"), y)
        for _ in range(3):
            inside, alone = seconds_of(lambda: QuadraticLogisticRegression().fit(X, y))
            with started.connected():
                lazy = [read_lazily(Path(place, f"{k}.npy"), a) for k, a in (("X", X), ("y", y))]
                outside, there = seconds_of(lambda g=lazy: QuadraticLogisticRegression().fit(*g))
            gap = abs(alone.loss_ - there.loss_) if hasattr(alone, "loss_") else float("nan")
            print(
                f"in memory {inside:.2f} s ({alone.n_iter_[0]} iterations), on a worker "
                f"{outside:.2f} s ({there.n_iter_[0]}), ratio {outside / inside:.2f} {gap:.0e}",
                flush=True,
            )


def overhead(rows: int) -> None:
    """An evaluation with 2000 parameters: in a task, and the same arithmetic by itself."""
    import dask.array as da
    from threadpoolctl import threadpool_limits

    from quadric.cluster import Rows
    from quadric.core import Stack, draw_layers
    from quadric.training import BlockSamples, Encoding

    for size in (2000, 50_000):
        n = 10
        m = max(1, size // (n * (n + 1) // 2 + n + 1))
        X = np.random.default_rng(0).normal(size=(2 * 4096, n))
        y = np.random.default_rng(0).integers(m, size=len(X))
        layers = draw_layers(
            n, [("quadratic", m)], rng=np.random.default_rng(0), dtype=np.dtype(float)
        )
        stack, encoding = Stack(layers, ["softmax"]), Encoding(np.dtype(float), m, m)
        found = {}
        for count in (0, 1, 2):
            with contextlib.ExitStack() as inside:
                if count:
                    inside.enter_context(inside.enter_context(workers(count)).connected())
                else:  # one thread, as on the workers
                    inside.enter_context(threadpool_limits(1))
                held = Rows(da.from_array(X, chunks=1000), da.from_array(y), classify=True)
                samples = BlockSamples(held.n_rows, n, held.total, encoding)
                times = [
                    seconds_of(lambda s=samples, k=stack: s.mean_and_gradient(k, 1.0))[0]
                    for _ in range(60)
                ]
                found[count] = np.array([np.median(times[10:]), min(times)])
        for count in (1, 2):
            arithmetic = found[0] / count
            beyond = (found[count] - arithmetic) * 1e3
            print(
                f"{stack.n_parameters} parameters, {count} workers: median {beyond[0]:.1f} ms, "
                f"minimum {beyond[1]:.1f} ms beyond the arithmetic of {arithmetic[0] * 1e3:.1f} ms",
                flush=True,
            )


def rivals(rows: int) -> None:
    """dask-ml on the expanded features, and SGDClassifier batch by batch."""
    import dask.array as da
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import PolynomialFeatures

    X, y = drawn(rows, len(COLUMNS), 0)
    test_X, test_y = drawn(200_000, len(COLUMNS), 10**6)
    expand = PolynomialFeatures(2, include_bias=False).fit(X[:1])
    width, chunks = expand.n_output_features_, rows // 10
    with workers(2) as started, started.connected() as client:
        lazy = da.from_array(X, chunks=(chunks, -1)).persist()
        targets = da.from_array(y, chunks=chunks).persist()
        seconds, model = seconds_of(lambda: QuadraticLogisticRegression().fit(lazy, targets))
        print(f"quadric, 2 workers: {seconds:.1f} s, {scores(model, test_X, test_y)}", flush=True)
        with contextlib.suppress(ImportError):
            from dask_ml.linear_model import LogisticRegression

            chunks_of_features = (lazy.chunks[0], (width,))
            expanded = lazy.map_blocks(expand.transform, dtype=float, chunks=chunks_of_features)
            expanded = client.persist(expanded)
            for solver in ("lbfgs", "admm"):
                rival = LogisticRegression(solver=solver, C=1.0)
                try:
                    seconds, _ = seconds_of(lambda r=rival: r.fit(expanded, targets))
                    P = 1 / (1 + np.exp(-expand.transform(test_X) @ rival.coef_ - rival.intercept_))
                    P = np.column_stack([1 - P.ravel(), P.ravel()])
                    print(f"dask-ml {solver}: {seconds:.1f} s, {_of(P, test_y)}", flush=True)
                except Exception as error:
                    print(f"dask-ml {solver}: {type(error).__name__}: {str(error)[:200]}")
    sgd = SGDClassifier(loss="log_loss", random_state=0)

    def stream() -> None:
        for _ in range(3):
            for start in range(0, rows, chunks):
                batch = slice(start, start + chunks)
                sgd.partial_fit(expand.transform(X[batch]), y[batch], classes=[0, 1])

    seconds, _ = seconds_of(stream)
    P = sgd.predict_proba(expand.transform(test_X))
    print(f"SGDClassifier, partial_fit, 3 passes, 1 process: {seconds:.1f} s, {_of(P, test_y)}")


def _of(P: Array, y: Array) -> str:
    loss = -np.log(np.maximum(P[np.arange(len(y)), y], 1e-15)).mean()
    return f"{(P.argmax(axis=1) == y).mean():.4f} | {loss:.5f}"


PARTS = {
    "scaling": (scaling, 10_000_000),
    "joined": (joined, 10_000_000),
    "one": (one, 1_000_000),
    "overhead": (overhead, 0),
    "rivals": (rivals, 1_000_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--rows", type=int, help="instead of the usual number")
    options = parser.parse_args()
    run, rows = PARTS[options.part]
    warnings.simplefilter("ignore")
    print(header(None, HERE), flush=True)
    run(options.rows or rows)


if __name__ == "__main__":
    main()
