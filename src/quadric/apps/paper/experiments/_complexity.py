"""The cost of the three neurons: the paper's two tables, from formulas and by counting.

The tables are followed by the ratio of training times, 3.67, and the savings of the cached V, for
which `_forms` counts and times different ways to compute the same step.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.apps.paper.experiments import _forms
from quadric.apps.paper.experiments._complexity_claims import claims_of, printed
from quadric.apps.paper.experiments._experiment import MODELS, Context, Outcome, Table, new_figure
from quadric.apps.paper.experiments._network_cost import seconds_per_step
from quadric.network import Network
from quadric.plotting import color_of, marker_of
from quadric.reference import _as_printed, _counts

WHY = {
    ("ann", "update"): "not an error: mn + m + n if eta scales a, mn + 2m if it scales delta twice",
    ("qnn", "forward"): "printed: a'Qa from the triangle, without computing V; counted: V, mn²",
    ("qnn", "update"): "M(a) is shared by all neurons: n² once, not mn",
    ("rpqnn", "update"): "printed 3mn; the two outer products take 2mn, of which mn is extra",
}


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


def memory(m: int, n: int) -> list[tuple[Any, ...]]:
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
    rows: list[tuple[Any, ...]] = []
    for model, kind in MODELS.items():
        seconds = [seconds_per_step((n, n), (kind,)) for n in timed]
        exponents = (
            _exponent(sizes, [_counts.step_count(model, n, n) for n in sizes]),
            _exponent(sizes, [_counts.PARAMETERS[model](n, n) for n in sizes]),
            _exponent(timed, seconds),
        )
        rows.append(
            (model.upper(), "n³" if model == "qnn" else "n²", *exponents, 1e6 * seconds[-1])
        )
    block_product = next(form for form in _forms.FORMS if form.name == "QNN, block product A Q")
    exponent = _exponent(sizes, [block_product.count(n, n) for n in sizes])
    return [*rows, (block_product.name, "n³", exponent, rows[1][3], None, None)]


def _exponent(sizes: tuple[int, ...], values: list[Any]) -> float:
    """Return the exponent between the two largest sizes, where lower powers matter least."""
    return float(np.log(values[-1] / values[-2]) / np.log(sizes[-1] / sizes[-2]))


def run(context: Context) -> Outcome:
    """Count multiplications in the paper's last layer, and time layers of growing size."""
    m, n = 10, 30
    context.progress(0, 1, "complexity: counting, and timing layers of growing size")
    counted = multiplications(m, n)
    exponents = growth((256, 512, 1024), (64, 128, 256) if context.full else (32, 64, 128))
    forms = _forms.rows(rounds=100 if context.full else 20)
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
            memory(m, n),
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
        Table(
            "forms",
            "One step of 784-30-10 networks, computed in different ways",
            ("form", "last layer", "network", "network / ANN", "microseconds", "time / ANN"),
            forms,
            "Multiplications of the last layer and of the whole network, and the time of a step in "
            "NumPy. The triangle needs the fewest products for z but does not give V, which the "
            "backward pass needs.",
            dict.fromkeys(("network / ANN", "time / ANN"), ".2f") | {"microseconds": ".1f"},
        ),
    ]
    return Outcome(
        "complexity",
        "Multiplications and memory",
        "The paper's two tables, from its formulas, from corrected formulas, and by counting. The "
        "last table explains the ratio of training times, and what the cached V saves.",
        tables,
        claims_of(counted, exponents, {row[0]: row for row in forms}),
        {"complexity": draw()},
        {"m": m, "n": n},
        {
            "complexity": "Multiplications for one sample and one step in a layer of n neurons "
            "with n inputs, as counted and as printed. The QNN grows with n³, the other two "
            "with n²."
        },
    )


def draw() -> Figure:
    """Draw the multiplications of a step against n."""
    figure = new_figure(5.4, 4)
    ax = figure.subplots()
    sizes = [2**k for k in range(2, 11)]
    for k, model in enumerate(MODELS):
        counted = [_counts.step_count(model, n, n) for n in sizes]
        paper = [sum(printed(model, step, n, n) for step in _counts.STEPS) for n in sizes]
        ax.loglog(sizes, counted, marker=marker_of(k), color=color_of(k), label=model.upper())
        ax.loglog(sizes, paper, "--", color=color_of(k), linewidth=1)
    ax.plot([], [], "--", color="#444444", linewidth=1, label="as printed")
    ax.set(xlabel="n neurons with n inputs", ylabel="multiplications for one sample")
    ax.legend(frameon=False)
    return figure
