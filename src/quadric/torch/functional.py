"""The layers as functions of their inputs and parameters."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from quadric.core._triangle import n_inputs
from quadric.torch._quadratic_form import places, quadratic_form

__all__ = ["pack", "quadratic", "reduced", "unpack"]


def quadratic(
    x: Tensor,
    packed: Tensor,
    W: Tensor | None = None,
    b: Tensor | None = None,
) -> Tensor:
    """z_k = x'Q_k x + w_k'x + b_k.

    Parameters
    ----------
    x : Tensor of shape (..., n)
    packed : Tensor of shape (n(n+1)/2, m)
        The entries q_ij, i <= j, row by row, as in `Quadratic.packed`. ``pack(Q)`` makes it from
        matrices of shape (m, n, n).
    W, b : Tensors of shapes (m, n) and (m,), optional

    Returns
    -------
    Tensor of shape (..., m)
    """
    x, packed, W, b = _as_autocast(x, packed, W, b)
    n, m = int((2 * packed.shape[0]) ** 0.5), packed.shape[1]
    _check(x, n, packed=(packed, (n * (n + 1) // 2, m)), W=(W, (m, n)), b=(b, (m,)))
    rows = x if x.ndim == 2 else x.reshape(-1, n)
    z = quadratic_form(rows, packed)
    if x.ndim != 2:  # before the sums: what comes out is no view, which FSDP warns of
        z = z.reshape(*x.shape[:-1], m)
    if W is not None:
        z = z + linear(x, W, b)  # of x as it came: where Q is 0, torch.nn.Linear's very bits
    elif b is not None:
        z = z + b
    return z


def reduced(x: Tensor, W: Tensor, b: Tensor | None, U: Tensor, c: Tensor | None) -> Tensor:
    """z = (W x + b)(U x + c), elementwise; W and U of shape (m, n), b and c of shape (m,)."""
    x, W, b, U, c = _as_autocast(x, W, b, U, c)
    m, n = W.shape
    _check(x, n, W=(W, (m, n)), b=(b, (m,)), U=(U, (m, n)), c=(c, (m,)))
    return linear(x, W, b) * linear(x, U, c)


def _as_autocast(x: Tensor, *parameters: Tensor | None) -> tuple[Any, ...]:
    """All in the dtype of the autocast region, if there is one, before anything is computed."""
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a torch.Tensor. Got {type(x).__name__} instead.")
    device = x.device.type
    if not torch.amp.is_autocast_available(device) or not torch.is_autocast_enabled(device):
        return x, *parameters
    dtype = torch.get_autocast_dtype(device)
    return tuple(
        t.to(dtype) if t is not None and t.is_floating_point() and t.dtype != torch.float64 else t
        for t in (x, *parameters)
    )


def _check(x: Tensor, n: int, **parameters: tuple[Tensor | None, tuple[int, ...]]) -> None:
    if x.ndim == 0 or x.shape[-1] != n:
        raise RuntimeError(
            f"expected an input of shape (..., {n}), {n} being the layer's in_features. "
            f"Got {tuple(x.shape)} instead."
        )
    for name, (tensor, shape) in parameters.items():
        if tensor is None:
            continue
        if tuple(tensor.shape) != shape:
            raise RuntimeError(f"expected {name} of shape {shape}. Got {tuple(tensor.shape)}.")
        if tensor.dtype != x.dtype:
            raise RuntimeError(
                f"expected input and {name} of the same dtype. Got {x.dtype} and {tensor.dtype}: "
                f"convert one, x.to({tensor.dtype}), or use torch.autocast."
            )
        if tensor.device != x.device:
            raise RuntimeError(
                f"expected input and {name} on the same device. Got {x.device} and {tensor.device}."
            )


def pack(Q: Tensor) -> Tensor:
    """The packed form, shape (n(n+1)/2, m), of matrices of shape (m, n, n).

    Matrices that are not symmetric are replaced by (Q + Q')/2, which is the same quadratic form.
    """
    rows, columns = torch.triu_indices(Q.shape[1], Q.shape[1], device=Q.device).unbind()
    return ((Q[:, rows, columns] + Q[:, columns, rows]) / 2).t().contiguous()


def unpack(packed: Tensor) -> Tensor:
    """The symmetric matrices, shape (m, n, n), of packed ones."""
    n = n_inputs(packed.shape[0])
    return packed.t().index_select(1, places(n, packed.device)).reshape(-1, n, n)
