"""The layers as functions of their inputs and parameters, and the packed form of Q.

A packed Q is one tensor of shape (n(n+1)/2, m). Its row p holds the entries q_ij of m symmetric
matrices for the p-th pair i <= j, row by row, as in `Quadratic.packed`.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import linear
from torch.overrides import handle_torch_function, has_torch_function_variadic

from quadric.core import n_inputs
from quadric.torch import _internals as internals
from quadric.torch._quadratic_form import places, quadratic_form

__all__ = ["pack", "quadratic", "reduced", "unpack"]

WITHOUT_AUTOCAST = ("lazy", "meta", "vulkan")  # torch's query raises an error for these

P = ParamSpec("P")
R = TypeVar("R")


def overridable(function: Callable[P, R]) -> Callable[P, R]:
    """Let the arguments handle the call if they define __torch_function__, as torch's own do.

    For example, `torch.fx.symbolic_trace` passes proxies, which record the call.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if has_torch_function_variadic(*args, *kwargs.values()):
            return handle_torch_function(call, (*args, *kwargs.values()), *args, **kwargs)
        return function(*args, **kwargs)

    return call


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
        The inputs.
    packed : Tensor of shape (n(n+1)/2, m)
        The matrices Q_k in packed form, as returned by `pack`.
    W : Tensor of shape (m, n), default=None
        The linear weights.
    b : Tensor of shape (m,), default=None
        The biases.

    Returns
    -------
    Tensor of shape (..., m)
        The values z.

    Examples
    --------
    >>> quadratic(torch.tensor([2.0, 3.0]), pack(torch.eye(2)[None]))
    tensor([13.])
    """
    if has_torch_function_variadic(x, packed, W, b):  # as `overridable`, but faster
        return handle_torch_function(quadratic, (x, packed, W, b), x, packed, W, b)
    if not isinstance(x, Tensor) or internals.is_autocast_active():
        x, packed, W, b = _prepared(x, packed, W, b)
    is_flat = x.ndim == 2
    if not is_flat and x.is_nested:
        return _of_nested(quadratic, x, packed, W, b)
    n, m = _sizes(x, packed)
    if W is not None:
        _check("W", W, (m, n), x)
    if b is not None:
        _check("b", b, (m,), x)
    z = quadratic_form(x if is_flat else x.reshape(-1, n), packed)
    if not is_flat:  # before the sums, so that the result is not a view (FSDP warns about views)
        z = z.reshape(*x.shape[:-1], m)
    if W is not None:
        z = z + linear(x, W, b)  # if Q is 0, this is bit-identical to torch.nn.Linear
    elif b is not None:
        z = z + b
    return z


@overridable
def reduced(x: Tensor, W: Tensor, b: Tensor | None, U: Tensor, c: Tensor | None) -> Tensor:
    """z = (W x + b)(U x + c), elementwise.

    Parameters
    ----------
    x : Tensor of shape (..., n)
        The inputs.
    W, b : Tensors of shapes (m, n) and (m,)
        The weights and biases of the first factor; b may be None.
    U, c : Tensors of shapes (m, n) and (m,)
        The weights and biases of the second factor; c may be None.

    Returns
    -------
    Tensor of shape (..., m)
        The products of the two factors.

    Examples
    --------
    >>> W, U = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> reduced(torch.tensor([2.0, 3.0]), W, None, U, torch.ones(1))
    tensor([8.])
    """
    if isinstance(x, Tensor) and x.is_nested:
        return _of_nested(reduced, x, W, b, U, c)
    x, W, b, U, c = _prepared(x, W, b, U, c)
    m, n = W.shape
    _check_input(x, n)
    _check("W", W, (m, n), x)
    _check("b", b, (m,), x)
    _check("U", U, (m, n), x)
    _check("c", c, (m,), x)
    return linear(x, W, b) * linear(x, U, c)


@overridable
def pack(Q: Tensor) -> Tensor:
    """Pack matrices into their upper triangles.

    Nonsymmetric matrices are replaced by (Q + Q')/2, which defines the same quadratic form.

    Parameters
    ----------
    Q : Tensor of shape (m, n, n)
        The matrices.

    Returns
    -------
    Tensor of shape (n(n+1)/2, m)
        The entries q_ij, i <= j, row by row; a differentiable function of Q.

    Examples
    --------
    >>> pack(torch.tensor([[[1.0, 4.0], [0.0, 3.0]]])).T
    tensor([[1., 2., 3.]])
    """
    rows, columns = torch.triu_indices(Q.shape[1], Q.shape[1], device=Q.device).unbind()
    return ((Q[:, rows, columns] + Q[:, columns, rows]) / 2).t().contiguous()


@overridable
def unpack(packed: Tensor) -> Tensor:
    """Build the symmetric matrices from their packed form.

    Parameters
    ----------
    packed : Tensor of shape (n(n+1)/2, m)
        The entries q_ij, i <= j, row by row.

    Returns
    -------
    Tensor of shape (m, n, n)
        The matrices, a differentiable function of `packed`.

    Examples
    --------
    >>> unpack(torch.tensor([[1.0], [2.0], [3.0]]))
    tensor([[[1., 2.],
             [2., 3.]]])
    """
    n = n_inputs(packed.shape[0])
    return packed.t().index_select(1, places(n, packed.device)).reshape(-1, n, n)


def _of_nested(function: Callable[..., Tensor], x: Any, *parameters: Tensor | None) -> Tensor:
    """Return the function of each row of a jagged nested tensor."""
    if x.layout != torch.jagged:
        raise TypeError("x must have the layout torch.jagged if it is nested.")
    z = function(x.values(), *parameters)
    return torch.nested.nested_tensor_from_jagged(z, x.offsets(), x.lengths())


def _prepared(*tensors: Any) -> tuple[Any, ...]:
    """Convert x and the parameters to the dtype of the autocast region, if there is one."""
    x = tensors[0]
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a torch.Tensor. Got {type(x).__name__} instead.")
    if not internals.is_autocast_active():
        return tensors
    device = x.device.type
    if device in WITHOUT_AUTOCAST or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(
        t.to(dtype) if t is not None and t.is_floating_point() and t.dtype != torch.float64 else t
        for t in tensors
    )


def _sizes(x: Tensor, packed: Tensor) -> tuple[int, int]:
    """Return n and m; raise RuntimeError, as torch does, if x and packed do not match."""
    shape, sizes = x.shape, packed.shape
    if len(sizes) != 2:
        raise RuntimeError(f"expected packed of shape (n(n+1)/2, m). Got {tuple(sizes)} instead.")
    pairs, m = sizes
    n = shape[-1] if shape else None
    if (
        n is None
        or 2 * pairs != n * (n + 1)
        or packed.dtype != x.dtype
        or not ((x.is_cpu and packed.is_cpu) or packed.device == x.device)
    ):
        n = int((2 * pairs) ** 0.5)
        _check_input(x, n)
        _check("packed", packed, (n * (n + 1) // 2, m), x)
    return n, m


def _check_input(x: Tensor, n: int) -> None:
    """Raise RuntimeError, as torch does, if the last dimension of x is not n."""
    if x.ndim == 0 or x.shape[-1] != n:
        raise RuntimeError(
            f"expected an input of shape (..., {n}), where {n} is the layer's in_features. "
            f"Got {tuple(x.shape)} instead."
        )


def _check(name: str, parameter: Tensor | None, shape: tuple[int, ...], x: Tensor) -> None:
    """Raise RuntimeError, as torch does, for a wrong shape, or another dtype or device than x's."""
    if parameter is None:
        return
    if parameter.shape != shape:
        raise RuntimeError(f"expected {name} of shape {shape}. Got {tuple(parameter.shape)}.")
    if parameter.dtype != x.dtype:
        raise RuntimeError(
            f"expected input and {name} of the same dtype. Got {x.dtype} and {parameter.dtype}: "
            f"convert one with x.to({parameter.dtype}), or use torch.autocast."
        )
    if parameter.device != x.device:
        raise RuntimeError(
            f"expected input and {name} on the same device. Got {x.device} and {parameter.device}."
        )
