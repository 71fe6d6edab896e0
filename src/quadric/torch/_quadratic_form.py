"""The quadratic form z_k = x'Q_k x of a batch and its gradients, from packed Q.

There are two implementations, which agree up to rounding:

- compiled loops, which need no full matrices and save no intermediates: for ordinary tensors on
  the CPU;
- torch operations on unpacked matrices: for other devices and dtypes, for second derivatives, and
  under torch.func, compilers, tracers, dispatch modes and forward-mode differentiation.
"""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from quadric.torch import _compiled


def quadratic_form(x: Tensor, P: Tensor) -> Tensor:
    """x'Q_k x, shape (B, m), for x of shape (B, n) and Q packed as P, shape (n(n+1)/2, m)."""
    if _compiled.is_transformed():
        return _values(x, P)
    if not torch.is_grad_enabled():
        return _compute(x, P)
    z: Tensor = _QuadraticForm.apply(x, P)  # type: ignore[no-untyped-call]
    return z


class _QuadraticForm(Function):
    """The form with its gradients; only x and P are saved, whatever the implementation.

    A checkpoint compares what its two passes save, and a dispatch mode may be active in only one.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, P: Tensor) -> Tensor:
        ctx.save_for_backward(x, P)
        return _compute(x, P)

    @staticmethod
    def backward(ctx: Any, dz: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, P = ctx.saved_tensors
        wants_dx, wants_dP = ctx.needs_input_grad
        input_gradient, packed_gradient = _input_gradient, _packed_gradient
        if not torch.is_grad_enabled() and _compiled.can_take(x, P, dz):
            input_gradient, packed_gradient = _compiled.backward_x, _compiled.backward_P
        return (
            input_gradient(x, P, dz) if wants_dx else None,
            packed_gradient(x, dz) if wants_dP else None,
        )


def _compute(x: Tensor, P: Tensor) -> Tensor:
    return _compiled.forward(x, P) if _compiled.can_take(x, P) else _values(x, P)


def _values(x: Tensor, P: Tensor) -> Tensor:
    """z by torch operations: V_k = Q_k x for all neurons, then x'V_k."""
    return torch.bmm(x[:, None, :], _V(x, P)).squeeze(1)


def _input_gradient(x: Tensor, P: Tensor, dz: Tensor) -> Tensor:
    """dL/dx = 2 sum_k dz_k V_k."""
    return 2 * torch.bmm(_V(x, P), dz[:, :, None]).squeeze(2)


def _packed_gradient(x: Tensor, dz: Tensor) -> Tensor:
    """dL/dP: sum over the batch of dz_k x_i x_j, twice that off the diagonal."""
    (B, n), m = x.shape, dz.shape[1]
    D = (x[:, :, None] * dz[:, None, :]).reshape(B, n * m)
    outer = (x.t() @ D).reshape(n * n, m)
    rows, columns = torch.triu_indices(n, n, device=x.device).unbind()
    twice = (1 + (rows != columns).to(x.dtype))[:, None]
    return outer.index_select(0, rows * n + columns) * twice


def _V(x: Tensor, P: Tensor) -> Tensor:
    """V = Q x, shape (B, n, m)."""
    (B, n), m = x.shape, P.shape[1]
    Q = P.index_select(0, places(n, x.device)).reshape(n, n * m)
    return (x @ Q).reshape(B, n, m)


def places(n: int, device: torch.device) -> Tensor:
    """The packed row of each of the n * n entries of a matrix, row by row."""
    # A traced graph must not contain a tensor from outside, so tracers get a new one.
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
        return _places(n, device)
    return _kept_places(n, device)


def _places(n: int, device: torch.device) -> Tensor:
    i = torch.arange(n, device=device)
    low, high = torch.minimum(i[:, None], i), torch.maximum(i[:, None], i)
    return (low * (2 * n - low - 1) // 2 + high).reshape(-1)


@lru_cache(maxsize=16)
def _kept_places(n: int, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return _places(n, device)
