"""Time torch layers and SGD in two checkouts: `python -m benchmarks.steps --against PATH`.

The first cases are a torch `Quadratic` layer without W and b, for forward + backward and forward
alone, at the shapes in `torch_layers.py` and with one and two neurons. The others are one epoch of
per-sample SGD for 784-30-10 networks, with 19 % of the inputs non-zero. All use float32. If
"there / here" is greater than 1, this checkout is faster. With `--against`, the checkouts
alternate, and a ratio is the median over the rounds.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.shapes import SHAPES
from benchmarks.two_checkouts import in_turns, median_ratio, parse_arguments, start

CASES = [*SHAPES, (1024, 64, 1), (1024, 64, 2)]
ROUNDS = 15
AT_LEAST = 0.02  # seconds; calls are repeated for this long


class Worker:
    """The process of one checkout. It holds one case at a time."""

    def set_threads(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)

    def prepare_layer(self, B: int, n: int, m: int) -> None:
        import torch

        from quadric.torch import Quadratic

        torch.manual_seed(0)
        self.layer = Quadratic(n, m, bias=False, linear=False)
        self.x, self.dz = torch.randn(B, n).requires_grad_(), torch.randn(B, m)

    def prepare_network(self, kind: str) -> None:
        from quadric import Network

        rng = np.random.default_rng(0)
        X = rng.random((2000, 784), dtype=np.float32) * (rng.random((2000, 784)) < 0.19)
        self.data = X, np.eye(10)[rng.integers(0, 10, 2000)]
        layers = [("linear", 30, "logistic"), (kind, 10, "logistic")]
        self.network = Network.create(784, layers, scale=0.005, rng=0, dtype="float32")

    def step(self) -> float:
        def run() -> None:
            self.x.grad = self.layer.packed.grad = None
            self.layer(self.x).backward(self.dz)

        return _seconds(run)

    def forward(self) -> float:
        import torch

        with torch.no_grad():
            return _seconds(lambda: self.layer(self.x))

    def epoch(self) -> float:
        history = self.network.fit(*self.data, learning_rate=1e-3, epochs=3)
        return min(history.seconds)


def _seconds(run: Any) -> float:
    """Return the shortest time of a call, repeated for about AT_LEAST seconds."""
    run()
    best, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < AT_LEAST:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return float(best)


def main() -> None:
    options = parse_arguments(__doc__.splitlines()[0], threads=1)
    checkouts = start("benchmarks.steps", options)
    places = ("here", "there")[: len(checkouts)]
    columns = ["case", *(f"ms {place}" for place in places)] + ["there / here"] * (len(places) - 1)
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    cases = [("prepare_layer", shape, ("step", "forward")) for shape in CASES]
    cases += [("prepare_network", (k,), ("epoch",)) for k in ("linear", "quadratic", "reduced")]
    for prepare, case, methods in cases:
        for checkout in checkouts:
            checkout.ask("set_threads", options.threads)
            checkout.ask(prepare, *case)
        times = in_turns(checkouts, methods, options.rounds or ROUNDS)
        for method in methods:
            cells = [f"{' '.join(map(str, case))}, {method}"]
            cells += [f"{1e3 * median(found[method]):.3f}" for found in times]
            if len(places) == 2:
                cells.append(f"{median_ratio(times[1][method], times[0][method]):.2f}")
            print("| " + " | ".join(cells) + " |", flush=True)
    for checkout in checkouts:
        checkout.close()


if __name__ == "__main__":
    main()
