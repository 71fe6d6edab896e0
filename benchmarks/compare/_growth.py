"""Growth: time and memory against the sizes of the problem, and what more threads bring."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.compare._peers import is_installed, skipped
from benchmarks.compare._tables import Table, number
from benchmarks.timing import best_seconds
from quadric import Network
from quadric.apps.paper.sweep import Recipe, Store, run_sweep, table_tasks
from quadric.datasets import ImageData

TITLE = "Growth: exponents of time and memory"
NOTES = (
    "An exponent is the slope of a line through the logarithms of the three largest points. "
    "Theory counts multiply-adds; a smaller exponent means that fixed costs still matter. "
    "Memory is the peak of NumPy's allocations beyond inputs and parameters. It does not grow with "
    "the samples, because gradients are sums over blocks of rows.",
    "The threads of batch gradients share the compiled loops of one call. In a sweep, each thread "
    "or worker trains another network. On a virtual machine, two cores can do less than twice the "
    "work of one.",
)


class Series(NamedTuple):
    """What grows, its values, how to prepare a call for each value, and the exponents in theory."""

    name: str
    values: tuple[int, ...]
    prepare: Callable[[int], Callable[[], object]]
    time: float
    memory: float | None = None


def gradients(*, n: int = 64, m: int = 10, samples: int = 512) -> Callable[[], object]:
    """Prepare the loss and gradients of one quadratic layer."""
    rng = np.random.default_rng(0)
    net = Network.create(n, [("quadratic", m, "softmax")], init="normal", scale=0.01, rng=0)
    X, Y = rng.normal(size=(samples, n)), np.eye(m)[rng.integers(m, size=samples)]
    return lambda: net.gradients(X, Y)


def epoch(
    *, n: int = 64, hidden: int = 30, samples: int = 1000, kind: str = "quadratic"
) -> Callable[[], object]:
    """Prepare an epoch of per-sample SGD for a network n - hidden - 10."""
    rng = np.random.default_rng(0)
    layers = [("linear", hidden, "logistic"), (kind, 10, "logistic")]
    net = Network.create(n, layers, init="normal", scale=0.01, rng=0, dtype="float32")
    X = rng.normal(size=(samples, n)).astype(np.float32)
    Y = np.eye(10, dtype=np.float32)[rng.integers(10, size=samples)]
    return lambda: net.fit(X, Y, learning_rate=1e-6, epochs=1)


SERIES = (
    Series(
        "batch gradients, inputs n",
        (64, 128, 256, 512, 1024),
        lambda n: gradients(n=n, samples=128),
        2,
        2,
    ),
    Series(
        "batch gradients, neurons m", (8, 16, 32, 64, 128), lambda m: gradients(m=m, n=128), 1, 1
    ),
    Series(
        "batch gradients, samples",
        (2048, 4096, 8192, 16_384),
        lambda samples: gradients(samples=samples),
        1,
        0,  # blocks of rows
    ),
    Series(
        "SGD epoch, inputs n",
        (512, 1024, 2048, 4096, 8192),
        lambda n: epoch(n=n, samples=300, kind="linear"),
        1,
    ),
    Series(
        "SGD epoch, hidden neurons h",
        (32, 64, 128, 256),
        lambda hidden: epoch(hidden=hidden, n=8),
        2,
    ),
    Series(
        "SGD epoch, samples",
        (1000, 4000, 16_000, 64_000),
        lambda samples: epoch(samples=samples),
        1,
    ),
)


def run(*, quick: bool) -> dict[str, Any]:
    found = []
    with threadpool_limits(1):
        for series in SERIES:
            points = [point(series, value, quick) for value in series.values]
            larger = points[-3:]
            exponents = {"time": slope((p["value"], p["seconds"]) for p in larger)}
            if series.memory is not None:
                exponents["memory"] = slope((p["value"], p["bytes"]) for p in larger)
            theory = {"time": series.time, "memory": series.memory}
            row = {"name": series.name, "points": points, "exponents": exponents, "theory": theory}
            found.append(row)
    scaling = [gradient_threads(quick), sweep_threads(quick)]
    if is_installed("Dask"):
        scaling.append(sweep_workers(quick))
    return {"series": found, "scaling": scaling, "skipped": skipped(["Dask"])}


def point(series: Series, value: int, quick: bool) -> dict[str, float]:
    call = series.prepare(value)
    seconds = best_seconds({"": call}, rounds=2 if quick else 9)[""]
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"value": value, "seconds": seconds, "bytes": peak}


def slope(points: Iterable[tuple[float, float]]) -> float:
    """The exponent e of y ~ x^e, by least squares on the logarithms."""
    x, y = np.log(np.array(list(points))).T
    return float(np.polyfit(x, y, 1)[0])


def gradient_threads(quick: bool) -> dict[str, Any]:
    """Batch gradients with one and two threads, in turns."""
    call = gradients(n=128, m=64, samples=2048)

    def limited(count: int) -> None:
        with threadpool_limits(count):
            call()

    best = best_seconds({k: partial(limited, k) for k in (1, 2)}, rounds=5 if quick else 15)
    return {"what": "batch gradients (2048, 128, 64), threads", "seconds": best}


def sweep_seconds(count: int, seeds: int, address: str | None = None) -> float:
    """Time a sweep of the paper's networks on random images: in threads, or on a Dask cluster."""
    rng = np.random.default_rng(0)
    images = (rng.random((6000, 784)) * (rng.random((6000, 784)) < 0.19) * 255).astype(np.uint8)
    labels = rng.integers(10, size=6000)
    data = ImageData("random", images, labels, images[:100], labels[:100], 255, (28, 28), "here")
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory) / "runs.sqlite")
        tasks = table_tasks(range(seeds), sizes=[6000])
        start = time.perf_counter()
        run_sweep(tasks, Recipe(), data, store, jobs=count, dask=address)
        return time.perf_counter() - start


def sweep_threads(quick: bool) -> dict[str, Any]:
    """A sweep with one and two threads."""
    sweep_seconds(2, seeds=1)  # compiles
    seconds = {count: sweep_seconds(count, seeds=1 if quick else 6) for count in (1, 2)}
    return {"what": "a sweep of the paper's networks, threads", "seconds": seconds}


def sweep_workers(quick: bool) -> dict[str, Any]:
    """A sweep with one and two Dask workers, without the time to start them."""
    from distributed import LocalCluster

    seconds = {}
    for count in (1, 2):
        options = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as cluster:
            address = cluster.scheduler_address
            sweep_seconds(count, seeds=1, address=address)  # imports and compiles
            seconds[count] = sweep_seconds(count, seeds=1 if quick else 6, address=address)
    return {"what": "the same, Dask workers", "seconds": seconds}


def tables(found: dict[str, Any]) -> list[Table]:
    rows = []
    for series in found["series"]:
        first, last = series["points"][0], series["points"][-1]
        exponents, theory = series["exponents"], series["theory"]
        memory = "–"
        if "memory" in exponents:
            memory = f"{exponents['memory']:.2f} ({theory['memory']})"
        rows.append(
            [
                series["name"],
                f"{first['value']} to {last['value']}",
                f"{number(first['seconds'] * 1e3)} to {number(last['seconds'] * 1e3)}",
                f"{exponents['time']:.2f} ({theory['time']})",
                memory,
            ]
        )
    columns = ["series", "range", "ms", "exponent of time (theory)", "of memory (theory)"]
    speedups = [
        [row["what"], *(number(s) for s in row["seconds"].values()), f"{_speedup(row):.2f}"]
        for row in found["scaling"]
    ]
    return [
        Table(TITLE, columns, rows),
        Table("Threads and workers", ["work", "one, s", "two, s", "speed-up (2 cores)"], speedups),
    ]


def rival(found: dict[str, Any]) -> str:
    """Name the series whose time grows most in excess of theory."""
    worst = max(found["series"], key=lambda one: one["exponents"]["time"] - one["theory"]["time"])
    return (
        f"The rival is theory. The largest excess is that of {worst['name']}: exponent "
        f"{worst['exponents']['time']:.2f} instead of {worst['theory']['time']}."
    )


def _speedup(row: dict[str, Any]) -> float:
    one, two = row["seconds"].values()
    return one / two
