"""Distance from the limit: the share of the machine's peaks that the kernels reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.compare._layers import data, numpy_pass, torch_passes
from benchmarks.compare._peaks import peaks
from benchmarks.compare._peers import is_installed, skipped
from benchmarks.compare._result import OURS
from benchmarks.compare._tables import Table, number
from benchmarks.sgd_step import KINDS, RATE, SAMPLES, make_data, stepper
from benchmarks.shapes import SHAPES
from benchmarks.timing import best_seconds
from quadric.core import _quadratic_form as quadratic_form

TITLE = "Distance from the limit: shares of one core's peaks"
HIDDEN, OUTPUTS, PAD = 30, 10, 16  # neurons are stored in blocks of 16 float32 numbers
NOTES = (
    "Peaks are measured in the same run: multiply-adds in registers, and reading or updating "
    "numbers in the L1 cache (16 KiB), the L2 cache (160 KiB) and memory (256 MiB). A multiply-add "
    "counts as two operations.",
    "A step of the engine reads and then updates the rows of W that belong to inputs other than "
    "zero; W (98 KiB) is in L2. A quadratic output also reads Q (29 KiB, L1), updates V once for "
    "two rows of the triangle, and updates Q. The share of bandwidth is the time that these bytes "
    "need at the measured rates, divided by the time of a step. Each weight takes part in few "
    "operations, so a step is limited by moving the weights, and its share of the FLOP peak cannot "
    "be high. Ten neurons fill 10 of 16 places of a register; the bytes include all 16.",
    "Beyond these bytes, a step lists the inputs, computes 40 exponentials, and adds up 30 sums "
    "across registers for the delta of the hidden layer.",
    "The layers count n(n+1)/2 multiply-adds per sample, neuron and result. Their times at (1, 1, "
    "1) are those of Python and of torch's autograd, which are also a large part of the times at "
    "(128, 32, 10). At this shape, copying the columns of Q takes a sixth of the time of z. Blocks "
    "on the diagonal of a small triangle are half empty, so dQ uses only 69 % of its lanes.",
)


def run(*, quick: bool) -> dict[str, Any]:
    measured = peaks()
    rows = [*engine_rows(measured, quick), *form_rows(measured, quick)]
    return {"peaks": measured, "rows": rows, "skipped": skipped(["torch"])}


def engine_rows(measured: dict[str, float], quick: bool) -> list[dict[str, Any]]:
    """The compiled loop of per-sample SGD, on compressed rows."""
    X, Y = make_data()
    order = np.arange(SAMPLES)
    steppers = {kind: stepper(kind, X, Y) for kind in KINDS}
    runs = {kind: (lambda s=s: s.run_epoch(order, RATE)) for kind, s in steppers.items()}
    best = best_seconds(runs, rounds=9 if quick else 25)
    listed = X.nnz / SAMPLES
    pairs = HIDDEN * (HIDDEN + 1) // 2
    # multiply-adds of the output layer: forward, delta of the hidden layer, update
    output = {
        "linear": 3 * HIDDEN * OUTPUTS,
        "quadratic": (HIDDEN**2 + pairs + 4 * HIDDEN) * OUTPUTS,
        "reduced": 6 * HIDDEN * OUTPUTS,
    }
    rows = []
    for kind in KINDS:
        seconds = best[kind] / SAMPLES
        operations = 2 * (2 * listed * HIDDEN + output[kind])
        moving = seconds_to_move_W(listed, measured)
        if kind == "quadratic":
            moving += seconds_to_move_Q(measured)
        rows.append(
            {
                "what": f"engine, {kind} output, one step",
                "seconds": seconds,
                "flop_share": operations / seconds / measured["FLOP/s"],
                "bandwidth_share": moving / seconds,
            }
        )
    return rows


def seconds_to_move_W(listed: float, measured: dict[str, float]) -> float:
    """Seconds to read and update the rows of W of a sample, 30 neurons in 32 places."""
    size = listed * 2 * PAD * 4
    return size / measured["L2, read"] + 2 * size / measured["L2, update"]


def seconds_to_move_Q(measured: dict[str, float]) -> float:
    """Seconds to read Q, to update V once for two rows of the triangle, and to update Q."""
    size = HIDDEN * (HIDDEN + 1) // 2 * PAD * 4
    return size / measured["L1, read"] + (size + 2 * size) / measured["L1, update"]


def form_rows(measured: dict[str, float], quick: bool) -> list[dict[str, Any]]:
    """The quadratic form of a batch: each result in NumPy, and the torch operator."""
    rows = []
    for B, n, m in ((1, 1, 1), *SHAPES):
        x, dz, Q = data(B, n, m)
        P = quadratic_form.pack(Q)
        runs = {
            "z": lambda x=x, P=P: quadratic_form.values(x, P),
            "dQ": lambda x=x, P=P, dz=dz: quadratic_form.gradients(x, P, dz, inputs=False),
            "dx and dQ": lambda x=x, P=P, dz=dz: quadratic_form.gradients(x, P, dz),
            "all three": numpy_pass(x, dz, Q),
        }
        results = {"z": 1, "dQ": 1, "dx and dQ": 2, "all three": 3, "torch, all three": 3}
        if is_installed("torch"):
            runs["torch, all three"] = torch_passes(x, dz, Q)[OURS]
        best = best_seconds(runs, rounds=5 if quick else 25, at_least=2e-3)
        for what, seconds in best.items():
            operations = results[what] * B * m * n * (n + 1)
            share = operations / seconds / measured["FLOP/s"]
            name = f"({B}, {n}, {m}): {what}"
            rows.append({"what": name, "seconds": seconds, "flop_share": share})
    return rows


def tables(found: dict[str, Any]) -> list[Table]:
    rates = [[name, number(rate / 1e9) + " · 10⁹"] for name, rate in found["peaks"].items()]
    rows = [
        [
            row["what"],
            number(row["seconds"] * 1e6),
            f"{row['flop_share']:.0%}",
            f"{row['bandwidth_share']:.0%}" if "bandwidth_share" in row else "–",
        ]
        for row in found["rows"]
    ]
    columns = ["kernel", "µs", "share of FLOP peak", "share of bandwidth"]
    return [
        Table("Measured peaks of one core", ["peak", "per second"], rates),
        Table(TITLE, columns, rows),
    ]


def rival(found: dict[str, Any]) -> str:
    best = max(found["rows"], key=lambda row: row["flop_share"])
    return (
        f"The rival is the machine. The highest share of its FLOP peak is "
        f"{best['flop_share']:.0%}, "
        f"by {best['what']}."
    )
