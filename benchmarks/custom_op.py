"""Time the torch layer as a `torch.library.custom_op`: `python -m benchmarks.custom_op`.

The same compiled loops are called from an autograd Function, as in `quadric.torch`, and from two
custom operators with registered fake and autograd functions, with one thread and in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.timing import best_seconds
from quadric.torch import _quadratic_form as loops
from quadric.torch._quadratic_form import quadratic_form

SHAPES = [(8, 4, 2), (128, 32, 10), (1024, 64, 10)]  # B, n, m


@torch.library.custom_op("quadric_benchmark::form", mutates_args=())
def form(x: Tensor, P: Tensor) -> Tensor:
    return loops.forward(x, P)


@torch.library.custom_op("quadric_benchmark::gradients", mutates_args=())
def gradients(x: Tensor, P: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
    return loops.backward(x, P, dz)


form.register_fake(lambda x, P: x.new_empty(x.shape[0], P.shape[1]))
gradients.register_fake(lambda x, P, dz: (torch.empty_like(x), torch.empty_like(P)))
form.register_autograd(
    lambda ctx, dz: gradients(*ctx.saved_tensors, dz),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


def main() -> None:
    torch.set_num_threads(1)
    print("µs for forward + backward, and forward alone\n(B, n, m)          Function   custom_op")
    for B, n, m in SHAPES:
        x, P = torch.randn(B, n).requires_grad_(), torch.randn(n * (n + 1) // 2, m).requires_grad_()
        dz = torch.randn(B, m)
        torch.testing.assert_close(form(x, P), quadratic_form(x, P))

        def step(f, x=x, P=P, dz=dz):
            x.grad = P.grad = None
            f(x, P).backward(dz)

        def forward(f, x=x, P=P):
            with torch.no_grad():
                f(x, P)

        for name, run in (("step", step), ("forward", forward)):
            contenders = {
                "Function": lambda run=run: run(quadratic_form),
                "custom_op": lambda run=run: run(form),
            }
            best = best_seconds(contenders, rounds=2000 if B < 1000 else 300)
            cells = "".join(f"{1e6 * seconds:11.0f}" for seconds in best.values())
            print(f"{(B, n, m)!s:<16}{name:<8}{cells}")


if __name__ == "__main__":
    main()
