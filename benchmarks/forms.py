"""Measure the thresholds of `kernels/_forms.py` on this machine: `python -m benchmarks.forms`.

z, dL/dx and dL/dP are timed for each shape with neurons as lanes and in the other form, in float32
with one thread. A row shows the microseconds of both, and * where the table chooses the slower one.
The last lines give the time lost by the table, and the threshold for z and dL/dx with the least
time over all shapes.
"""

from __future__ import annotations

import time
from unittest.mock import patch

import numpy as np

from benchmarks.timing import seconds_by_round
from quadric.core import _quadratic_form as core
from quadric.kernels import _forms, _quadratic_form as loops

SIZES = [(8, 2), (8, 64), (16, 4), (16, 128), (32, 10), (64, 10), (64, 64)]  # n, m
SIZES += [(256, 10), (256, 256), (784, 1), (784, 10)]
SHAPES = [(B, n, m) for n, m in SIZES for B in (1, 2, 4, 8, 16, 64) if B * n * n * m < 1e8]
RESULTS = {"z": _forms.Z, "dx": _forms.DX, "dP": _forms.DP}
LANES = 16  # float32


def seconds(B: int, n: int, m: int, result: str, forms: int) -> float:
    rng = np.random.default_rng(0)
    shapes = (B, n), (n * (n + 1) // 2, m), (B, m)
    X, P, dz = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    z, dX, dP = np.empty_like(dz), np.empty_like(X), np.empty_like(P)
    loop, arrays = {
        "z": (loops.values, (z, None, None)),
        "dx": (loops.gradients, (dz, dX, None)),
        "dP": (loops.gradients, (dz, None, dP)),
    }[result]
    team = loops.PythonThreads(lambda: 1)
    addresses = [0 if array is None else array.ctypes.data for array in (X, P, *arrays)]
    with patch.object(_forms, "forms", lambda *shape: forms):
        loops._plan.cache_clear()
        run = {"": lambda: loops.run_quadratic_form(loop, team, X.dtype, (B, n, m, n), addresses)}
        turns = seconds_by_round(run, rounds=5, at_least=1e-3, clock=time.process_time)
    loops._plan.cache_clear()
    return min(turns[""])


def main() -> None:
    core.values(np.ones((1, 1)), np.ones((1, 1)))
    print(
        "µs with neurons as lanes / in the other form\n(B, n, m)"
        + "".join(f"{r:>22}" for r in RESULTS)
    )
    found: dict[str, list[tuple[float, float, float, bool]]] = {result: [] for result in RESULTS}
    for B, n, m in SHAPES:
        cells = ""
        for result, bit in RESULTS.items():
            neurons, other = (seconds(B, n, m, result, forms) for forms in (bit, 0))
            chosen = bool(_forms.forms(B, n, m, LANES) & bit)
            found[result].append((B * -(-m // LANES) / m, neurons, other, chosen))
            wrong = "*" if (neurons > other) == chosen else " "
            cells += f"{1e6 * neurons:11.1f} /{1e6 * other:8.1f}{wrong}"
        print(f"{(B, n, m)!s:<16}{cells}", flush=True)
    for result, rows in found.items():
        lost = np.mean([(a if chosen else b) / min(a, b) for _, a, b, chosen in rows]) - 1
        print(f"{result}: the table takes {lost:.1%} more than the better form of each shape")
        if result in ("z", "dx"):
            limits = sorted({ratio for ratio, *_ in rows})
            cost = {
                limit: np.mean([(a if r <= limit else b) / min(a, b) for r, a, b, _ in rows])
                for limit in limits
            }
            print(f"    best threshold {min(cost, key=cost.__getitem__):.2f}")


if __name__ == "__main__":
    main()
