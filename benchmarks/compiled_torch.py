"""Time quadratic layers in eager mode and compiled: `python -m benchmarks.compiled_torch`.

Forward + backward in float32, with one thread, for a layer and for a network of three layers.
Compiled with `fullgraph=True`, a layer is one operator, which runs the same loops. The time of
`torch.nn.Linear` in both modes shows what torch itself adds to a compiled call.
"""

from __future__ import annotations

import time
from statistics import median

import torch
from torch import nn

from benchmarks.timing import seconds_by_round
from quadric.torch import Quadratic

MODELS = {
    "Quadratic(64, 64)": (128, 64, lambda: Quadratic(64, 64)),
    "Quadratic(128, 128)": (256, 128, lambda: Quadratic(128, 128)),
    "Quadratic(784, 10)": (64, 784, lambda: Quadratic(784, 10)),
    "64-64-64-10, tanh": (
        256,
        64,
        lambda: nn.Sequential(
            *(Quadratic(64, 64), nn.Tanh(), Quadratic(64, 64), nn.Tanh(), Quadratic(64, 10))
        ),
    ),
    "Linear(64, 64)": (128, 64, lambda: nn.Linear(64, 64)),
}


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'model':<24}{'batch':>6}{'eager':>11}{'compiled':>11}{'ratio':>8}")
    for name, (B, n, make) in MODELS.items():
        torch._dynamo.reset()
        model = make()
        compiled = torch.compile(model, fullgraph=True)
        x = torch.randn(B, n, requires_grad=True)

        def step(f, x=x, model=model):
            x.grad = None
            model.zero_grad()
            f(x).sum().backward()

        runs = {"eager": lambda f=model: step(f), "compiled": lambda f=compiled: step(f)}
        turns = seconds_by_round(runs, rounds=31, at_least=5e-3, clock=time.process_time)
        eager, fast = (1e3 * median(turns[key]) for key in runs)
        print(f"{name:<24}{B:>6}{eager:>8.3f} ms{fast:>8.3f} ms{fast / eager:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
