"""Compare the torch layers with einsum and nn.Bilinear: `python -m benchmarks.torch_layers`.

The benchmark first checks that all implementations compute the same numbers. It then times a
quadratic layer, einsum, `torch.nn.Bilinear(x, x)` and one plain product of the same size, for
forward + backward and forward alone, in float32, with one and two threads. It also times a reduced
layer and the product of two `torch.nn.Linear` layers, and measures the peak memory of a forward and
backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.shapes import BILINEAR_LIMIT, SHAPES
from benchmarks.timing import best_seconds
from quadric.torch import Quadratic, Reduced


def inputs(B: int, n: int, m: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(B, n, generator=generator).requires_grad_()
    return x, torch.randn(B, m, generator=generator)


def contenders(B: int, n: int, m: int) -> dict[str, tuple[Callable[[Tensor], Tensor], Tensor]]:
    """Return, for each implementation, a function of x and the parameter of this function."""
    layer = Quadratic(n, m, bias=False, linear=False)
    Q = layer.Q.detach().requires_grad_()
    bilinear = torch.nn.Bilinear(n, n, m, bias=False)
    with torch.no_grad():
        bilinear.weight.copy_(Q)
    return {
        "quadric": (layer, layer.packed),
        "einsum": (lambda x: torch.einsum("bi,kij,bj->bk", x, Q, x), Q),
        "nn.Bilinear": (lambda x: bilinear(x, x), bilinear.weight),
    }


def step(f: Callable[[Tensor], Tensor], parameter: Tensor, x: Tensor, dz: Tensor) -> Tensor:
    """Run forward and backward; the parameter keeps its gradient, as in training."""
    x.grad = parameter.grad = None
    z = f(x)
    z.backward(dz)
    return z


def forward(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with torch.no_grad():
        return f(x)


def check_equal(B: int, n: int, m: int) -> None:
    x, dz = inputs(B, n, m)
    results = {}
    for name, (f, parameter) in contenders(B, n, m).items():
        if name == "nn.Bilinear" and B * n * n * m > BILINEAR_LIMIT:
            continue
        z = step(f, parameter, x, dz).detach()
        results[name] = (z, x.grad)
    for name, found in results.items():
        for ours, theirs in zip(results["quadric"], found, strict=True):
            tolerance = 1e-4 * theirs.abs().max().item()
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=tolerance, msg=name)


def twice(run: Callable[[], object]) -> Callable[[], object]:
    """Return a function that calls `run` twice; in training, caches hold the layer's data."""
    return lambda: (run(), run())


def time_quadratic(B: int, n: int, m: int, threads: int) -> float:
    torch.set_num_threads(threads)
    x, dz = inputs(B, n, m)
    held = contenders(B, n, m)
    W, plain_x = torch.randn(n, m * n), x.detach()
    bilinear, weight = held.pop("nn.Bilinear")
    runs = {"plain": twice(lambda: plain_x @ W)}
    for name, (f, p) in held.items():
        runs[name] = twice(lambda f=f, p=p: step(f, p, x, dz))
        runs[f"{name} forward"] = twice(lambda f=f: forward(f, x))
    best = best_seconds(runs, rounds=max(7, min(300, int(1e10 / (B * n * n * m)))))
    best = {name: seconds / 2 for name, seconds in best.items()}
    ours, slower = best["quadric"], "         -"
    if B * n * n * m <= BILINEAR_LIMIT:
        run = {"nn.Bilinear": lambda: step(bilinear, weight, x, dz)}
        slower = f"{best_seconds(run, rounds=5)['nn.Bilinear'] / ours:9.1f}x"
    print(
        f"{(B, n, m)!s:<17}{ours * 1e3:10.3f} ms{ours / best['plain']:9.2f}"
        f"{best['einsum'] / ours:9.2f}x{slower}"
        f"{best['einsum forward'] / best['quadric forward']:10.2f}x",
        flush=True,
    )
    return best["einsum"] / ours


def time_reduced(B: int, n: int, m: int, threads: int) -> None:
    torch.set_num_threads(threads)
    x, dz = inputs(B, n, m)
    ours, one, two = Reduced(n, m), torch.nn.Linear(n, m), torch.nn.Linear(n, m)
    with torch.no_grad():
        for name, value in zip("WbUc", (one.weight, one.bias, two.weight, two.bias), strict=True):
            getattr(ours, name).copy_(value)

    def run(f: Callable[[Tensor], Tensor], *modules: torch.nn.Module) -> Callable[[], Tensor]:
        def once() -> Tensor:
            for module in modules:
                module.zero_grad()
            return step(f, next(modules[0].parameters()), x, dz)

        return once

    runs = {"reduced": run(ours, ours), "two linear": run(lambda x: one(x) * two(x), one, two)}
    torch.testing.assert_close(runs["reduced"](), runs["two linear"]())
    best = best_seconds(runs, rounds=max(20, min(1000, int(1e9 / (B * n * m)))))
    print(
        f"{(B, n, m)!s:<17}{best['reduced'] * 1e3:10.3f} ms"
        f"{best['reduced'] / best['two linear']:9.2f}"
    )


def peak_megabytes(B: int, n: int, m: int, name: str) -> float:
    """Return the peak memory of the tensors of one forward + backward pass, as torch counts it."""
    x, dz = inputs(B, n, m)
    f, parameter = contenders(B, n, m)[name]
    step(f, parameter, x, dz)  # so that one-time allocations are not counted
    x.grad = parameter.grad = None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step(f, parameter, x, dz)
    events = [e for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]
    used = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        used += event.nbytes()
        peak = max(peak, used)
    return peak / 1e6


def main() -> None:
    for shape in SHAPES:
        check_equal(*shape)
    for threads in (1, 2):
        print(f"quadratic layer, forward + backward, float32, {threads} thread(s)")
        print("(B, n, m)              quadric   products   einsum  nn.Bilinear   einsum forward")
        ratios = [time_quadratic(*shape, threads) for shape in SHAPES]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean of einsum / quadric: {mean:.2f}, minimum {min(ratios):.2f}\n")
    print("reduced layer compared with two nn.Linear and a product, forward + backward")
    for threads in (1, 2):
        for shape in ((128, 64, 64), (256, 256, 256), (64, 784, 10)):
            time_reduced(*shape, threads)
    torch.set_num_threads(1)
    print("\npeak memory of one forward + backward, MB beyond inputs and parameters")
    print("(B, n, m)           quadric    einsum")
    for shape in SHAPES:
        ours, theirs = (peak_megabytes(*shape, name) for name in ("quadric", "einsum"))
        print(f"{shape!s:<17}{ours:10.2f}{theirs:10.2f}", flush=True)


if __name__ == "__main__":
    main()
