"""Which form of a triangle is faster: `python -m benchmarks.torch_forms [threads]`.

For a single block (n <= 64 inputs) and batches of several sizes, the time of "monomials" over that
of "unpacked", forward and backward, float32. `quadric.torch.choice` holds the outcome.
"""

from __future__ import annotations

import sys

import torch

from benchmarks.timing import best_seconds
from quadric.torch.choice import MONOMIALS, UNPACKED, choose
from quadric.torch.operator import quadratic_form

INPUTS, NEURONS, BATCHES = (
    (2, 4, 8, 16, 32, 64),
    (1, 4, 10, 16, 24, 32, 48, 64, 128),
    (32, 256, 2048),
)


def ratio(B: int, n: int, m: int) -> float:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(B, n, generator=generator, requires_grad=True)
    P = torch.randn(n * (n + 1) // 2, m, generator=generator, requires_grad=True)
    dz = torch.randn(B, m, generator=generator)

    def run(form: str) -> tuple[torch.Tensor, ...]:
        z = quadratic_form(x, P, form=form)
        return z.detach(), *torch.autograd.grad(z, (x, P), dz)

    for ours, theirs in zip(run(UNPACKED), run(MONOMIALS), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3 * theirs.abs().max().item())
    seconds = best_seconds(
        {form: lambda form=form: run(form) for form in (UNPACKED, MONOMIALS)},
        rounds=max(7, int(3e8 / (B * (n + 30) ** 2 * (m + 10)))) if B * n * n * m < 1e8 else 7,
    )
    return seconds[MONOMIALS] / seconds[UNPACKED]


def main() -> None:
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    torch.set_num_threads(threads)
    print(f"time of monomials / unpacked, forward + backward, {threads} thread(s); * is our choice")
    worst = 1.0
    for B in BATCHES:
        print(f"\nB = {B:<5}" + "".join(f"  m = {m:<4}" for m in NEURONS))
        for n in INPUTS:
            cells = []
            for m in NEURONS:
                r = ratio(B, n, m)
                chosen = choose(n, m)
                worst = max(worst, r if chosen == MONOMIALS else 1 / r)
                cells.append(f"{r:8.2f}{'*' if chosen == MONOMIALS else ' '}")
            print(f"n = {n:<5}" + "".join(cells), flush=True)
    print(f"\nthe choice is at worst {worst:.2f} times as slow as the better form")


if __name__ == "__main__":
    main()
