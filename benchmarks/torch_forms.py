"""Which form of a triangle is faster: `python -m benchmarks.torch_forms [threads]`.

For a single block (n <= 128 inputs) and batches of several sizes, forward + backward, float32: the
time of "monomials" over that of "unpacked", and of "compiled" over that of the better of these two.
`quadric.torch.choice` holds the outcome.
"""

from __future__ import annotations

import itertools
import sys

import torch

from benchmarks.timing import best_seconds
from quadric.torch.choice import COMPILED, MONOMIALS, UNPACKED, choose
from quadric.torch.operator import quadratic_form

INPUTS, NEURONS, BATCHES = (
    (2, 4, 8, 16, 32, 64, 128),
    (1, 2, 4, 10, 16, 24, 32, 48, 64, 128),
    (32, 256, 2048),
)


FORMS = (UNPACKED, MONOMIALS, COMPILED)


def seconds(B: int, n: int, m: int) -> dict[str, float]:
    """The time of each form; all give the same numbers, which is checked first."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(B, n, generator=generator, requires_grad=True)
    P = torch.randn(n * (n + 1) // 2, m, generator=generator, requires_grad=True)
    dz = torch.randn(B, m, generator=generator)

    def run(form: str) -> tuple[torch.Tensor, ...]:
        z = quadratic_form(x, P, form=form)
        return z.detach(), *torch.autograd.grad(z, (x, P), dz)

    for form in FORMS[1:]:
        for ours, theirs in zip(run(form), run(UNPACKED), strict=True):
            tolerance = 1e-3 * theirs.abs().max().item()
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=tolerance)
    return best_seconds(
        {form: lambda form=form: run(form) for form in FORMS},
        rounds=max(20, int(3e8 / (B * (n + 30) ** 2 * (m + 10)))),
    )


def print_table(title: str, cells: dict[tuple[int, int, int], str]) -> None:
    print(f"\n{title}")
    for B in BATCHES:
        print(f"\nB = {B:<5}" + "".join(f"  m = {m:<4}" for m in NEURONS))
        for n in INPUTS:
            print(f"n = {n:<5}" + "".join(cells[B, n, m] for m in NEURONS))


def main() -> None:
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    torch.set_num_threads(threads)
    print(f"forward + backward, float32, {threads} thread(s)")
    of_torch, of_compiled, worst = {}, {}, 1.0
    for shape in itertools.product(BATCHES, INPUTS, NEURONS):
        took = seconds(*shape)
        chosen = {ours: choose(*shape, torch.float32, compiled=ours) for ours in (False, True)}
        others = {form: took[form] for form in (UNPACKED, MONOMIALS)}
        worst = max(
            worst,
            took[chosen[False]] / min(others.values()),
            took[chosen[True]] / min(took.values()),
        )
        star = "*" if chosen[False] == MONOMIALS else " "
        of_torch[shape] = f"{took[MONOMIALS] / took[UNPACKED]:8.2f}{star}"
        star = "*" if chosen[True] == COMPILED else " "
        of_compiled[shape] = f"{took[COMPILED] / min(others.values()):8.2f}{star}"
    print_table("monomials / unpacked; * where we choose monomials", of_torch)
    print_table("compiled / the better of these two; * where we choose compiled", of_compiled)
    print(f"\nour choice is at worst {worst:.2f} times as slow as the best form")


if __name__ == "__main__":
    main()
