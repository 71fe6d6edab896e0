"""Loss and gradients of one quadratic layer for a batch: `python -m benchmarks.batch_gradients`.

Times `Network.gradients` with a single quadratic softmax layer and cross-entropy, float64, one
thread, in units of one plain product `np.matmul(X, (n, m n), out=...)`. With `--against PATH`,
the runs alternate with those in another checkout, after a check that losses and gradients agree to
1e-10. Ratios are medians over the rounds. A round runs the product and the gradients in one
checkout, and then in the other.

Memory is the peak, excluding inputs and parameters but including gradients. tracemalloc is started
before the first call, so the peak includes buffers that are kept between calls. It includes NumPy's
allocations, but not those of compiled code or BLAS.
"""

from __future__ import annotations

import gc
import tracemalloc
from statistics import median
from typing import Any

import numpy as np

from benchmarks.timing import seconds_per_call
from benchmarks.two_checkouts import in_turns, median_ratio, parse_arguments, start

SHAPES = [(5000, 64, 10), (2000, 200, 3), (1000, 784, 10), (5000, 16, 10)]  # N, n, m
RUN_SECONDS = 0.02  # shorter calls are repeated until a timed run takes about this long
TOLERANCE = 1e-10


class Worker:
    """The process of one checkout. It holds the data and network of one shape at a time."""

    def prepare(self, N: int, n: int, m: int) -> dict[str, Any]:
        """Create data and network; return the peak memory, loss and gradients."""
        from quadric import Network  # the parent process does not need it

        rng = np.random.default_rng(0)
        layers = [("quadratic", m, "softmax")]
        Network.create(3, layers, rng=0).gradients(np.ones((2, 3)), np.eye(m)[[0, 1]])  # compile
        self.X = rng.normal(size=(N, n)) / np.sqrt(n)
        self.Y = np.eye(m)[rng.integers(m, size=N)]
        self.network = Network.create(n, layers, init="normal", scale=0.1, rng=0)
        self.B, self.out = rng.normal(size=(n, m * n)), np.empty((N, m * n))
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        self.gradients()
        self.gradients()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.repeats = {}
        for call in (self.gradients, self.product):
            shortest = min(seconds_per_call(call) for _ in range(3))
            self.repeats[call] = max(1, round(RUN_SECONDS / shortest))
        loss, (grad,) = self.gradients()
        return {
            "peak": (peak - before) / 1e6,
            "numbers": {"loss": loss, "W": grad.W, "b": grad.b, "Q": np.array(grad.Q)},
        }

    def gradients(self) -> tuple[float, list[Any]]:
        return self.network.gradients(self.X, self.Y)

    def product(self) -> None:
        np.matmul(self.X, self.B, out=self.out)

    def time_gradients(self) -> float:
        return seconds_per_call(self.gradients, self.repeats[self.gradients])

    def time_product(self) -> float:
        return seconds_per_call(self.product, self.repeats[self.product])


def check_equal(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """Return the largest difference, relative to the largest number in the same array.

    Exit if it is larger than TOLERANCE.
    """
    worst = 0.0
    for name, value in ours.items():
        difference = np.abs(value - theirs[name]).max() / np.abs(theirs[name]).max()
        if not difference <= TOLERANCE:
            raise SystemExit(f"{name} differs by {difference:.1e}, more than {TOLERANCE:g}")
        worst = max(worst, difference)
    return worst


def main() -> None:
    options = parse_arguments(__doc__.splitlines()[0], threads=1)
    checkouts = start("benchmarks.batch_gradients", options)
    single = len(checkouts) == 1
    columns = ["(N, n, m)", "product, ms", "products here", "peak MB here"]
    if not single:
        columns[3:] = [
            "products there",
            "time there / here",
            "peak MB here",
            "there",
            "here / there",
            "largest difference",
        ]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    for N, n, m in SHAPES:
        prepared = [checkout.ask("prepare", N, n, m) for checkout in checkouts]
        peaks = [found["peak"] for found in prepared]
        difference = check_equal(prepared[0]["numbers"], prepared[-1]["numbers"])
        rounds = options.rounds or max(11, min(41, int(5e10 / (N * n * n * m))))
        times = in_turns(checkouts, ("time_product", "time_gradients"), rounds)
        own = [found["time_gradients"] for found in times]
        products = [median_ratio(found["time_gradients"], found["time_product"]) for found in times]
        product = median(times[0]["time_product"])
        cells = [f"{product * 1e3:.2f}", f"{products[0]:.2f}", f"{peaks[0]:.2f}"]
        if not single:
            cells[2:] = [
                f"{products[1]:.2f}",
                f"{median_ratio(own[1], own[0]):.2f}",
                f"{peaks[0]:.2f}",
                f"{peaks[1]:.2f}",
                f"{peaks[0] / peaks[1]:.2f}",
                f"{difference:.1e}",
            ]
        print(f"| {(N, n, m)} | " + " | ".join(cells) + " |", flush=True)
    for checkout in checkouts:
        checkout.close()


if __name__ == "__main__":
    main()
