"""The compiled loops as operators of torch, for compilers, exporters and dispatch modes.

`quadric::quadratic_form` and `quadric::quadratic_form_gradients` run the loops that eager code
calls directly. Compilers see one node each, whose results they know from the fake functions.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from quadric.torch import _quadratic_form as form

VALUES = "quadric::quadratic_form"
GRADIENTS = "quadric::quadratic_form_gradients"

torch.library.define(VALUES, "(Tensor x, Tensor P) -> Tensor")
torch.library.define(
    GRADIENTS, "(Tensor x, Tensor P, Tensor dz, bool wants_dx, bool wants_dP) -> (Tensor, Tensor)"
)


@torch.library.impl(VALUES, "CPU")
def _values(x: Tensor, P: Tensor) -> Tensor:
    given = form.for_loops(x.resolve_neg(), P.resolve_neg())
    return form._values(x, P) if given is None else form.values_by_loops(x, *given)


@torch.library.impl(GRADIENTS, "CPU")
def _gradients(
    x: Tensor, P: Tensor, dz: Tensor, wants_dx: bool, wants_dP: bool
) -> tuple[Tensor, Tensor]:
    given = form.for_loops(x.resolve_neg(), P.resolve_neg(), dz.resolve_neg())
    if given is None:
        return form._input_gradient(x, P, dz), form._packed_gradient(x, dz)
    dx, dP = form.gradients_by_loops(x, *given, wants_dx, wants_dP)
    return x.new_empty(0) if dx is None else dx, x.new_empty(0) if dP is None else dP


@torch.library.register_fake(VALUES)
def _fake_values(x: Tensor, P: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], P.shape[1])


@torch.library.register_fake(GRADIENTS)
def _fake_gradients(
    x: Tensor, P: Tensor, dz: Tensor, wants_dx: bool, wants_dP: bool
) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape if wants_dx else 0), x.new_empty(P.shape if wants_dP else 0)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, dz: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, P = ctx.saved_tensors
    wanted = ctx.needs_input_grad
    dx, dP = torch.ops.quadric.quadratic_form_gradients(x, P, dz, *wanted)
    return dx if wanted[0] else None, dP if wanted[1] else None


torch.library.register_autograd(VALUES, _backward, setup_context=_save)


@torch.library.register_vmap(VALUES)
def _vmapped_values(info: Any, dims: tuple[Any, Any], x: Tensor, P: Tensor) -> tuple[Tensor, int]:
    values = torch.ops.quadric.quadratic_form
    if dims[1] is None:  # the rows of all samples in one call
        x = x.movedim(dims[0], 0)
        return values(x.reshape(-1, x.shape[-1]), P).reshape(*x.shape[:2], -1), 0
    each_x = [x] * info.batch_size if dims[0] is None else x.unbind(dims[0])
    return torch.stack([values(a, p) for a, p in zip(each_x, P.unbind(dims[1]), strict=True)]), 0


# ---- operations, for torch.utils.flop_counter ----------------------------------------------


@register_flop_formula(torch.ops.quadric.quadratic_form)
def _value_flops(x: Any, P: Any, *others: Any, **options: Any) -> int:
    """Multiplications and additions for z, of which the loops perform one each per entry of Q."""
    return 2 * x[0] * P[0] * P[1]


@register_flop_formula(torch.ops.quadric.quadratic_form_gradients)
def _gradient_flops(
    x: Any, P: Any, dz: Any, wants_dx: bool, wants_dP: bool, *others: Any, **options: Any
) -> int:
    """Twice as many for dL/dx, whose sums read each entry twice, and as many for dL/dP."""
    return (2 * wants_dx + wants_dP) * _value_flops(x, P)
