"""Compare the quadratic torch layer with its strongest rivals: `python -m benchmarks.torch_layers`.

The rivals are the lines that an engineer would write instead (`quadratic_rivals`), each also with
`torch.compile`. Each is first checked against the layer. Forward + backward and forward alone are
timed in float32, with one thread (time of the CPU) and two (wall time). All contenders take turns,
and the median over the rounds counts. A ratio is the time of the best rival in units of the
layer's. `--jax` times JAX beside the layer.

    python -m benchmarks.torch_layers [--threads 1] [--shapes 1,8,2 8,16,4] [--no-compile]
    python -m benchmarks.torch_layers --memory | --reduced | --jax
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.compare._layers import jax_pass
from benchmarks.quadratic_rivals import matrix, rivals
from benchmarks.shapes import BILINEAR_LIMIT, TORCH_SHAPES
from benchmarks.timing import best_seconds, seconds_by_round
from quadric.torch import Quadratic, Reduced

Function = Callable[[Tensor], Tensor]
MONOMIAL_LIMIT = 3e8  # numbers of monomials; more take gigabytes
COMPILED = ("einsum", "products", "by hand", "monomials")


def inputs(B: int, n: int, m: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(B, n, generator=generator).requires_grad_()
    return x, torch.randn(B, m, generator=generator)


def contenders(
    B: int, n: int, m: int, *, compiled: bool = False
) -> dict[str, tuple[Function, Tensor]]:
    """Return, for each implementation, a function of x and the parameter of this function."""
    layer = Quadratic(n, m, bias=False, linear=False)
    others = rivals(layer)
    if B * n * n * m > BILINEAR_LIMIT:
        del others["nn.Bilinear"]
    if B * n * n > MONOMIAL_LIMIT:
        del others["monomials"]
    if compiled:
        for name in COMPILED:
            if name in others:
                f, parameter = others[name]
                torch._dynamo.reset()
                others[f"{name}, compiled"] = torch.compile(f, dynamic=False), parameter
    return {"quadric": (layer, layer.packed), **others}


def step(f: Function, parameter: Tensor, x: Tensor, dz: Tensor) -> Tensor:
    """Run forward and backward; the parameter keeps its gradient, as in training."""
    x.grad = parameter.grad = None
    z = f(x)
    z.backward(dz)
    return z


def forward(f: Function, x: Tensor) -> Tensor:
    with torch.no_grad():
        return f(x)


def check_equal(found: dict[str, tuple[Function, Tensor]], B: int, n: int, m: int) -> None:
    """Check z and both gradients of each rival against the layer's."""
    x, dz = inputs(B, n, m)
    layer = found["quadric"][0]
    z = step(*found["quadric"], x, dz).detach()
    ours = [z, x.grad.clone(), layer.packed.grad]
    rows, columns = torch.triu_indices(n, n).unbind()
    once_or_twice = (2 - (rows == columns).float())[:, None]
    for name, (f, parameter) in found.items():
        if name == "quadric":
            continue
        z = step(f, parameter, x, dz).detach()
        full = matrix(name.partition(",")[0], parameter.grad, n, m)
        if not name.startswith("monomials"):
            packed = full[:, rows, columns].t() * once_or_twice
        else:
            packed = full[:, rows, columns].t() * once_or_twice**2
        for mine, theirs in zip(ours, (z, x.grad, packed), strict=True):
            tolerance = 1e-4 * theirs.abs().max().item()
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=tolerance, msg=name)


def time_shape(B: int, n: int, m: int, threads: int, *, compiled: bool, budget: float) -> list:
    """Print the ratios of all rivals, and return those of the best, with and without backward."""
    torch.set_num_threads(threads)
    x, dz = inputs(B, n, m)
    found = contenders(B, n, m, compiled=compiled)
    check_equal(found, B, n, m)
    clock = time.process_time if threads == 1 else time.perf_counter
    ratios = []
    for kind in ("both", "forward"):
        runs = {
            name: (lambda f=f, p=p: step(f, p, x, dz))
            if kind == "both"
            else lambda f=f: forward(f, x)
            for name, (f, p) in found.items()
        }
        turns = seconds_by_round(
            runs, rounds=41, at_least=2e-3, budget=budget, fewest=5, clock=clock
        )
        middle = {name: median(seconds) for name, seconds in turns.items()}
        ours = middle.pop("quadric")
        best = min(middle, key=middle.__getitem__)
        ratios.append(middle[best] / ours)
        listed = "".join(f"  {name} {seconds / ours:.2f}" for name, seconds in middle.items())
        print(
            f"{(B, n, m)!s:<16}{threads:2d} {kind:<8}{ours * 1e3:9.3f} ms  best {ratios[-1]:5.2f} "
            f"|{listed}",
            flush=True,
        )
    return ratios


def time_reduced(B: int, n: int, m: int, threads: int) -> None:
    torch.set_num_threads(threads)
    x, dz = inputs(B, n, m)
    ours, one, two = Reduced(n, m), torch.nn.Linear(n, m), torch.nn.Linear(n, m)
    with torch.no_grad():
        for name, value in zip("WbUc", (one.weight, one.bias, two.weight, two.bias), strict=True):
            getattr(ours, name).copy_(value)

    def run(f: Function, *modules: torch.nn.Module) -> Callable[[], Tensor]:
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


def peak_megabytes(f: Function, parameter: Tensor, B: int, n: int, m: int) -> float:
    """Return the peak memory of the tensors of one forward + backward pass, as torch counts it."""
    x, dz = inputs(B, n, m)
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


def report_memory(shapes: list[tuple[int, int, int]]) -> None:
    print("peak memory of one forward + backward, MB beyond inputs and parameters")
    for shape in shapes:
        found = {name: peak_megabytes(*held, *shape) for name, held in contenders(*shape).items()}
        listed = "".join(f"  {name} {megabytes:.3f}" for name, megabytes in found.items())
        print(f"{shape!s:<17}{listed}", flush=True)


def report_jax(shapes: list[tuple[int, int, int]]) -> None:
    """Forward + backward of JAX, whose calls need no autograd engine, on one core."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    torch.set_num_threads(1)
    print("forward + backward of JAX (einsum, compiled) in units of the layer's time, one core")
    for B, n, m in shapes:
        if B * n * n * m > BILINEAR_LIMIT:
            continue
        layer, (x, dz) = Quadratic(n, m, bias=False, linear=False), inputs(B, n, m)
        other = jax_pass(x.detach().numpy(), dz.numpy(), layer.Q.detach().numpy())
        runs = {
            "quadric": lambda f=layer, x=x, dz=dz: step(f, f.packed, x, dz),
            "JAX": other,
        }
        torch.testing.assert_close(runs["quadric"]().detach().numpy(), np.asarray(other()[0]))
        turns = seconds_by_round(runs, rounds=41, at_least=2e-3, budget=2.0, fewest=5)
        ours, theirs = (median(turns[name]) for name in runs)
        print(f"{(B, n, m)!s:<17}{theirs / ours:6.2f}", flush=True)


def report_reduced() -> None:
    print("reduced layer compared with two nn.Linear and a product, forward + backward")
    for threads in (1, 2):
        for shape in ((128, 64, 64), (256, 256, 256), (64, 784, 10)):
            time_reduced(*shape, threads)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--shapes", nargs="*", default=None)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--jax", action="store_true")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds per line")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", module="torch")
    shapes = TORCH_SHAPES
    if given.shapes:
        shapes = [tuple(map(int, text.split(","))) for text in given.shapes]
    if given.memory:
        return report_memory(shapes)
    if given.reduced:
        return report_reduced()
    if given.jax:
        return report_jax(shapes)
    for threads in given.threads:
        print(f"quadratic layer, float32, {threads} thread(s); times of rivals relative to quadric")
        cells: list[float] = []
        for shape in shapes:
            options = {"compiled": not given.no_compile, "budget": given.budget}
            cells += time_shape(*shape, threads, **options)
        mean = math.exp(sum(map(math.log, cells)) / len(cells))
        below = [sum(cell < limit for cell in cells) for limit in (0.9, 0.95)]
        print(
            f"best rival / quadric: geometric mean {mean:.2f}, least {min(cells):.2f}, below 0.90: "
            f"{below[0]}, below 0.95: {below[1]} of {len(cells)} cells\n"
        )
    return None


if __name__ == "__main__":
    main()
