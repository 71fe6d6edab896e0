"""What the three neurons cost: the paper's two tables, from formulas and from counting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from quadric.core._layers import LAYERS, Layer
from quadric.network import Network
from quadric.paper.experiments._outcome import Claim, Outcome, Progress, Table, silent
from quadric.reference import _as_printed as as_printed
from quadric.reference import _counts as counts
from quadric.reference._counted import count_layer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


KINDS = {"ann": "linear", "qnn": "quadratic", "rpqnn": "reduced"}
STEPS = ("forward", "backward", "update")
WHY = {
    ("ann", "update"): "b takes m products and eta meets the vector once more: mn + 2m",
    ("qnn", "forward"): "printed: a'Qa by the triangle, which does not produce V; counted: V, mn²",
    ("qnn", "update"): "M(a) is shared by all neurons: n² once, not mn",
    ("rpqnn", "update"): "printed 3mn; the two outer products take 2mn, of which mn is extra",
}


def printed(kind: str, step: str, m: int, n: int) -> int:
    """The printed count of a step, in all: the ANN's plus what is printed as extra."""
    total = as_printed.COUNTS["ann", step](m, n)
    if kind != "ann":
        total += as_printed.COUNTS[kind, f"extra {step}"](m, n)
    return int(total)


def multiplications(m: int, n: int) -> list[tuple[Any, ...]]:
    """One row for each kind and step: printed, formula, counted, difference, why."""
    rows: list[tuple[Any, ...]] = []
    for kind in KINDS:
        counted = count_layer(kind, m, n)
        for step in STEPS:
            paper = printed(kind, step, m, n)
            formula = counts.COUNTS[kind, step](m, n)
            difference = paper - counted[step]
            why = WHY.get((kind, step), "") if difference else ""
            rows.append((kind.upper(), step, paper, formula, counted[step], difference, why))
        if kind == "qnn":
            dense = counted["forward"] - m * n + counted["forward, by structural zeros"]
            rows.append((
                "QNN", "forward, V as a dense block product", None,
                counts.QNN_FORWARD_DENSE_BLOCKS(m, n), dense, None, "A's zeros multiplied too",
            ))  # fmt: skip
            rows.append((
                "QNN", "forward, a'Qa by the triangle", paper_extra(m, n),
                counts.QNN_FORWARD_TRIANGULAR(m, n), None, None, "without V: no cheap backward",
            ))  # fmt: skip
    return rows


def paper_extra(m: int, n: int) -> int:
    return int(as_printed.COUNTS["qnn", "extra forward"](m, n))


def held(m: int, n: int) -> list[tuple[Any, ...]]:
    """One row for each kind: numbers beyond the ANN's, printed and held, and bytes in float32."""
    rng = np.random.default_rng(0)
    rows = []
    for kind, name in KINDS.items():
        shapes = LAYERS[name].shapes(n, m)
        layer: Layer = LAYERS[name].of(
            **{field: np.zeros(shape, np.float32) for field, shape in shapes.items()}
        )
        parameters = sum(array.nbytes for array in layer.arrays().values())
        _, cache = layer.forward(rng.normal(size=(1, n)).astype(np.float32))
        kept = cache if isinstance(cache, tuple) else (cache,)
        cached = sum(array.nbytes for array in kept)
        own_cache = cached - kept[0].nbytes  # a is cached by all three
        extra = (parameters - 4 * m * (n + 1) + own_cache) // 4
        paper = None if kind == "ann" else int(as_printed.COUNTS[kind, "extra memory"](m, n))
        rows.append((kind.upper(), paper, extra, parameters, cached))
    return rows


def growth(sizes: tuple[int, ...], timed: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Exponents of n for layers of n neurons with n inputs: counted, held, and timed."""
    rows = []
    for kind, name in KINDS.items():
        total = [sum(counts.COUNTS[kind, step](n, n) for step in STEPS) for n in sizes]
        memory = [counts.PARAMETERS[kind](n, n) for n in sizes]
        seconds = [_seconds_a_step(name, n) for n in timed]
        rows.append((
            kind.upper(), "n³" if kind == "qnn" else "n²",
            _slope(sizes, total), _slope(sizes, memory), _slope(timed, seconds),
            1e6 * seconds[-1],
        ))  # fmt: skip
    return rows


def _slope(sizes: tuple[int, ...], values: list[Any]) -> float:
    """The exponent between the two largest sizes, where lower powers weigh least."""
    return float(np.log(values[-1] / values[-2]) / np.log(sizes[-1] / sizes[-2]))


def _seconds_a_step(kind: str, n: int) -> float:
    """The best of three: one SGD step of n neurons with n inputs in the compiled loop."""
    rng = np.random.default_rng(0)
    samples = max(20, int(2e7 / n ** (3 if kind == "quadratic" else 2)))
    samples = min(samples, 20_000)
    X = rng.normal(size=(samples, n)).astype(np.float32)
    Y = rng.integers(0, 2, (samples, n)).astype(np.float32)
    net = Network.create(
        n, [(kind, n, "logistic")], scale=1e-3, init="normal", rng=0, dtype="float32"
    )
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        net.fit(X, Y, learning_rate=1e-6, epochs=1, rng=0)
        best = min(best, time.perf_counter() - start)
    return float(best) / samples


def run(*, full: bool = False, jobs: int = 1, progress: Progress = silent) -> Outcome:
    """The paper's last layer (m = 10, n = 30), and layers of growing size."""
    m, n = 10, 30
    progress(0, 3, "complexity: counting multiplications")
    counted = multiplications(m, n)
    progress(1, 3, "complexity: measuring memory")
    memory = held(m, n)
    progress(2, 3, "complexity: timing layers of growing size")
    exponents = growth((256, 512, 1024), (64, 128, 256) if full else (32, 64, 128))
    progress(3, 3, "complexity")
    if any(row[3] != row[4] for row in counted if row[4] is not None):
        raise AssertionError(f"formulas and counts disagree: {counted}")
    wrong = [f"{row[0]} {row[1]}" for row in counted if row[5]]
    by_kind = {row[0]: row for row in exponents}
    # 784-30-10: layer 1 has no delta below it to pass on, only its update
    dropped = counts.COUNTS["ann", "update"](30, 784)
    whole = (
        dropped + counts.COUNTS["ann", "update"](10, 30) + counts.COUNTS["ann", "backward"](10, 30)
    )
    claims = [
        Claim(
            "the printed counts of multiplications", "two tables",
            "counted otherwise: " + ", ".join(wrong), not wrong, erratum=True,
        ),
        Claim(
            "a QNN layer takes O(n³), ANN and RPQNN layers O(n²) multiplications",
            "from the printed counts",
            f"exponents {by_kind['QNN'][2]:.2f}, {by_kind['ANN'][2]:.2f}, "
            f"{by_kind['RPQNN'][2]:.2f}",
            abs(by_kind["QNN"][2] - 3) < 0.1 and abs(by_kind["RPQNN"][2] - 2) < 0.1,
        ),
        Claim(
            "a QNN layer takes O(n³), ANN and RPQNN layers O(n²) memory", "from the printed counts",
            f"exponents {by_kind['QNN'][3]:.2f}, {by_kind['ANN'][3]:.2f}, "
            f"{by_kind['RPQNN'][3]:.2f}",
            abs(by_kind["QNN"][3] - 3) < 0.1 and abs(by_kind["RPQNN"][3] - 2) < 0.1,
        ),
        Claim(
            "A_BP and R_BP, sums over the layers from l = 2, are the cost of an update", "printed",
            f"they drop layer 1's update: {dropped} of A_BP's {whole} for 784-30-10", dropped == 0,
            erratum=True,
        ),
    ]  # fmt: skip
    tables = [
        Table(
            "multiplications", f"Multiplications for one layer of m = {m} neurons, n = {n} inputs",
            ("model", "step", "printed", "formula", "counted", "printed - counted", "why"), counted,
            "Counted by running the reference on numbers that count their multiplications; g, g' "
            "and the loss left out.",
        ),
        Table(
            "memory", f"Memory for one layer of m = {m} neurons, n = {n} inputs, one sample",
            ("model", "extra numbers, printed", "extra numbers, held", "bytes of parameters",
             "bytes cached"), memory,
            "Extra: beyond the ANN's parameters and activations. Bytes in float32 as held by the "
            "layers, Q as its triangle. The printed 2mn for the QNN counts V twice; the layers "
            "compute from the triangle and keep no V.",
        ),
        Table(
            "growth", "Exponents of n, for n neurons with n inputs",
            ("model", "printed", "multiplications", "parameters", "time of an SGD step",
             "microseconds at the largest"), exponents,
            "Between the two largest sizes; the time is that of the compiled loop, dense inputs. "
            "The QNN's Q outgrows the processor's cache there, which adds to its exponent.",
            {"multiplications": ".2f", "parameters": ".2f", "time of an SGD step": ".2f",
             "microseconds at the largest": ".1f"},
        ),
    ]  # fmt: skip
    return Outcome(
        "complexity", "Multiplications and memory",
        "The paper's two tables, from its formulas, from corrected ones, and counted.",
        tables, claims, {"complexity": draw()}, {"m": m, "n": n},
    )  # fmt: skip


def draw() -> Figure:
    """Multiplications of a step against n."""
    from matplotlib.figure import Figure

    from quadric.plotting._style import color_of, marker_of

    figure = Figure(figsize=(5.4, 4), layout="constrained", dpi=150)
    ax = figure.subplots()
    sizes = np.array([2**k for k in range(2, 11)])
    for k, kind in enumerate(KINDS):
        counted = [sum(counts.COUNTS[kind, step](int(n), int(n)) for step in STEPS) for n in sizes]
        paper = [sum(printed(kind, step, int(n), int(n)) for step in STEPS) for n in sizes]
        ax.loglog(sizes, counted, marker=marker_of(k), color=color_of(k), label=f"{kind.upper()}")
        ax.loglog(sizes, paper, "--", color=color_of(k), linewidth=1)
    ax.plot([], [], "--", color="#444444", linewidth=1, label="as printed")
    ax.set_xlabel("n neurons with n inputs")
    ax.set_ylabel("multiplications for one sample")
    ax.legend(frameon=False)
    return figure
