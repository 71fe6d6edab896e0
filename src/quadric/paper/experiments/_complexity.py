"""The cost of the three neurons: the paper's two tables, from formulas and by counting.

`cost` also estimates the cost of any network before it is built.
"""

import timeit
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.network import Network
from quadric.paper.experiments._experiment import (
    MODELS,
    NAMES,
    Claim,
    Context,
    Outcome,
    Table,
    new_figure,
)
from quadric.plotting._style import color_of, marker_of
from quadric.reference import _as_printed, _counts

STEPS = ("forward", "backward", "update")
SAMPLES, INPUTS, NEURONS = 200, 64, 32  # of the layer that `cost` uses to measure speed

WHY = {
    ("ann", "update"): "b takes m products, and eta multiplies the vector once more: mn + 2m",
    ("qnn", "forward"): "printed: a'Qa from the triangle, without computing V; counted: V, mn²",
    ("qnn", "update"): "M(a) is shared by all neurons: n² once, not mn",
    ("rpqnn", "update"): "printed 3mn; the two outer products take 2mn, of which mn is extra",
}


def printed(model: str, step: str, m: int, n: int) -> int:
    """Return the printed total of a step: the ANN's count plus the printed extra."""
    extra = 0 if model == "ann" else _as_printed.COUNTS[model, f"extra {step}"](m, n)
    return int(_as_printed.COUNTS["ann", step](m, n) + extra)


def multiplications(m: int, n: int) -> list[tuple[Any, ...]]:
    """Return a row per model and step: printed, formula, counted, difference and reason."""
    counted = {model: _counts.count_layer(model, m, n) for model in MODELS}
    rows: list[tuple[Any, ...]] = []
    for (model, step), formula in _counts.COUNTS.items():
        paper, count = printed(model, step, m, n), counted[model][step]
        why = WHY[model, step] if paper != count else ""
        rows.append((model.upper(), step, paper, formula(m, n), count, paper - count, why))
    qnn = counted["qnn"]
    return [
        *rows,
        (
            "QNN",
            "forward, V as a dense block product",
            None,
            _counts.QNN_FORWARD_DENSE_BLOCKS(m, n),
            qnn["forward"] - m * n + qnn["forward, by structural zeros"],
            None,
            "includes the products with A's zeros",
        ),
        (
            "QNN",
            "forward, a'Qa from the triangle",
            int(_as_printed.COUNTS["qnn", "extra forward"](m, n)),
            _counts.QNN_FORWARD_TRIANGULAR(m, n),
            None,
            None,
            "does not compute V, which makes the backward pass cheap",
        ),
    ]


def held(m: int, n: int) -> list[tuple[Any, ...]]:
    """Return a row per model: extra numbers as printed and as stored, and bytes in float32."""
    rows = []
    for model, kind in MODELS.items():
        layer = Network.create(n, [(kind, m, "logistic")], rng=0, dtype="float32").layers[0]
        parameters = sum(array.nbytes for array in layer.arrays().values())
        _, cache = layer.forward(np.zeros((1, n), np.float32))
        kept = cache if isinstance(cache, tuple) else (cache,)
        cached = sum(array.nbytes for array in kept)
        # all three cache a, which is kept[0]
        extra = (parameters - 4 * m * (n + 1) + cached - kept[0].nbytes) // 4
        paper = None if model == "ann" else int(_as_printed.COUNTS[model, "extra memory"](m, n))
        rows.append((model.upper(), paper, extra, parameters, cached))
    return rows


def growth(sizes: tuple[int, ...], timed: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Return the exponents of n with which counts, memory and time grow (n neurons, n inputs)."""
    rows = []
    for model, kind in MODELS.items():
        seconds = [_seconds_per_step(kind, n) for n in timed]
        exponents = (
            _exponent(sizes, [step_count(model, n, n) for n in sizes]),
            _exponent(sizes, [_counts.PARAMETERS[model](n, n) for n in sizes]),
            _exponent(timed, seconds),
        )
        rows.append(
            (model.upper(), "n³" if model == "qnn" else "n²", *exponents, 1e6 * seconds[-1])
        )
    return rows


def _exponent(sizes: tuple[int, ...], values: list[Any]) -> float:
    """Return the exponent between the two largest sizes, where lower powers matter least."""
    return float(np.log(values[-1] / values[-2]) / np.log(sizes[-1] / sizes[-2]))


def _seconds_per_step(kind: str, n: int) -> float:
    """Return the time of one SGD step of n neurons with n inputs, in the compiled loop.

    It is the best of three measurements.
    """
    rng = np.random.default_rng(0)
    samples = min(20_000, max(20, int(2e7 / n ** (3 if kind == "quadratic" else 2))))
    X = rng.normal(size=(samples, n)).astype(np.float32)
    Y = rng.integers(0, 2, (samples, n)).astype(np.float32)
    net = Network.create(
        n, [(kind, n, "logistic")], scale=1e-3, init="normal", rng=0, dtype="float32"
    )

    def epoch() -> None:
        net.fit(X, Y, learning_rate=1e-6, epochs=1, rng=0)

    return min(timeit.repeat(epoch, number=1, repeat=3)) / samples


def run(context: Context) -> Outcome:
    """Count multiplications in the paper's last layer, and time layers of growing size."""
    m, n = 10, 30
    context.progress(0, 1, "complexity: counting, and timing layers of growing size")
    counted = multiplications(m, n)
    exponents = growth((256, 512, 1024), (64, 128, 256) if context.full else (32, 64, 128))
    wrong = [f"{row[0]} {row[1]}" for row in counted if row[5]]
    # 784-30-10: layer 1 does not pass delta to another layer, so its only cost here is the update
    dropped = _counts.COUNTS["ann", "update"](30, 784)
    whole = dropped + sum(_counts.COUNTS["ann", step](10, 30) for step in ("update", "backward"))
    claims = [
        Claim(
            "the printed counts of multiplications are correct",
            "two tables",
            "the counts differ for: " + ", ".join(wrong),
            not wrong,
            erratum=True,
        ),
        _growth_claim("multiplications", {row[0]: row[2] for row in exponents}),
        _growth_claim("memory", {row[0]: row[3] for row in exponents}),
        Claim(
            "A_BP and R_BP, sums over the layers from l = 2, are the cost of an update",
            "printed",
            f"they omit the update of layer 1: {dropped} of A_BP's {whole} for 784-30-10",
            dropped == 0,
            erratum=True,
        ),
    ]
    timed = ("time of an SGD step", "microseconds at the largest")
    tables = [
        Table(
            "multiplications",
            f"Multiplications for one layer of m = {m} neurons with n = {n} inputs",
            ("model", "step", "printed", "formula", "counted", "printed - counted", "why"),
            counted,
            "Counted by running the reference on numbers that count their multiplications; g, g' "
            "and the loss are not counted.",
        ),
        Table(
            "memory",
            f"Memory for one layer of m = {m} neurons with n = {n} inputs, for one sample",
            (
                "model",
                "extra numbers, printed",
                "extra numbers, held",
                "bytes of parameters",
                "bytes cached",
            ),
            held(m, n),
            "Extra numbers are those beyond the ANN's parameters and activations. Bytes are those "
            "that the layers hold in float32, with Q stored as its triangle. The printed 2mn for "
            "the QNN counts V twice; the layers compute from the triangle and do not keep V.",
        ),
        Table(
            "growth",
            "Exponents of n, for n neurons with n inputs",
            ("model", "printed", "multiplications", "parameters", *timed),
            exponents,
            "Exponents are computed from the two largest sizes. The time is that of the compiled "
            "loop on dense inputs. At these sizes, the QNN's Q outgrows the processor's cache, "
            "which increases its exponent.",
            dict.fromkeys(("multiplications", "parameters", timed[0]), ".2f") | {timed[1]: ".1f"},
        ),
    ]
    return Outcome(
        "complexity",
        "Multiplications and memory",
        "The paper's two tables, from its formulas, from corrected formulas, and by counting.",
        tables,
        claims,
        {"complexity": draw()},
        {"m": m, "n": n},
    )


def _growth_claim(what: str, exponents: dict[str, float]) -> Claim:
    return Claim(
        f"a QNN layer takes O(n³), ANN and RPQNN layers O(n²) {what}",
        "from the printed counts",
        "exponents " + ", ".join(f"{exponents[name]:.2f}" for name in ("QNN", "ANN", "RPQNN")),
        abs(exponents["QNN"] - 3) < 0.1 and abs(exponents["RPQNN"] - 2) < 0.1,
    )


def draw() -> Figure:
    """Draw the multiplications of a step against n."""
    figure = new_figure(5.4, 4)
    ax = figure.subplots()
    sizes = [2**k for k in range(2, 11)]
    for k, model in enumerate(MODELS):
        counted = [step_count(model, n, n) for n in sizes]
        paper = [sum(printed(model, step, n, n) for step in STEPS) for n in sizes]
        ax.loglog(sizes, counted, marker=marker_of(k), color=color_of(k), label=model.upper())
        ax.loglog(sizes, paper, "--", color=color_of(k), linewidth=1)
    ax.plot([], [], "--", color="#444444", linewidth=1, label="as printed")
    ax.set(xlabel="n neurons with n inputs", ylabel="multiplications for one sample")
    ax.legend(frameon=False)
    return figure


@dataclass(frozen=True)
class LayerCost:
    """The cost of one layer; multiplications and seconds are for a training step of one sample."""

    kind: str
    inputs: int
    neurons: int
    parameters: int
    forward: int
    multiplications: int
    seconds: float


def cost(sizes: Sequence[int], kinds: Sequence[str]) -> list[LayerCost]:
    """Return the cost of each layer of a network.

    `sizes` starts with the number of inputs, and `kinds` has one kind per layer. The time is an
    estimate: multiplications divided by the rate at which this machine trains a small layer of the
    same kind in mini-batches.
    """
    rows = []
    for (n, m), kind in zip(pairwise(sizes), kinds, strict=True):
        total = step_count(NAMES[kind], m, n)
        rows.append(
            LayerCost(
                kind,
                inputs=n,
                neurons=m,
                parameters=_counts.PARAMETERS[NAMES[kind]](m, n),
                forward=_counts.COUNTS[NAMES[kind], "forward"](m, n),
                multiplications=total,
                seconds=total / _rate(kind),
            )
        )
    return rows


def step_count(model: str, m: int, n: int) -> int:
    """Count the multiplications of a training step of m neurons with n inputs."""
    return sum(_counts.COUNTS[model, step](m, n) for step in STEPS)


@cache
def _rate(kind: str) -> float:
    """Measure multiplications per second: the best of five steps of a small layer."""
    rng = np.random.default_rng(0)
    net = Network.create(INPUTS, [(kind, NEURONS, "logistic")], rng=0)
    X = rng.normal(size=(SAMPLES, INPUTS))
    Y = rng.integers(0, 2, (SAMPLES, NEURONS)).astype(float)
    best = min(timeit.repeat(lambda: net.gradients(X, Y), number=1, repeat=5))
    return step_count(NAMES[kind], NEURONS, INPUTS) * SAMPLES / best
