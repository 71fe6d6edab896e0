"""The quadratic form z_k = x'Q_k x of a batch and its gradients, from packed Q.

There are two implementations, which agree up to rounding:

- compiled loops, for real tensors on the CPU. They need no full matrices and save no intermediates.
  They are the loops of `quadric.kernels`, which access memory by address. Eager code calls them
  directly. Compilers, exporters and dispatch modes get the operators of `_operators`, which take 50
  to 200 µs longer.
- torch operations on unpacked matrices, for other devices, for second derivatives, and under
  torch.func, torch.jit.trace and forward-mode differentiation, and in ONNX files.

Half precision is computed in float32 by the loops, and rounded once.
"""

import ctypes
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import Parameter

from quadric import kernels
from quadric.torch import _internals as internals

_TYPES = {Tensor, Parameter}
_DTYPES = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}
_HALF = {torch.float16, torch.bfloat16}
MOST_NUMBERS = 2**24  # of V in torch operations, outside of transforms
MOST_KEPT = 2**9  # inputs; larger index tensors are not kept between calls


def quadratic_form(x: Tensor, P: Tensor) -> Tensor:
    """x'Q_k x, shape (B, m), for x of shape (B, n) and Q packed as P, shape (n(n+1)/2, m).

    The caller must have checked that shapes, dtypes and devices match.
    """
    if is_transformed():
        return torch.ops.quadric.quadratic_form(x, P) if takes_operator(x, P) else _values(x, P)
    if not torch.is_grad_enabled():
        return forward(x, P)
    return _apply(x, P)


class _QuadraticForm(Function):
    """The form with its gradients; only x and P are saved, whatever the implementation.

    Checkpointing compares what its two passes save, and a dispatch mode may be active in only one
    of them.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, P: Tensor) -> Tensor:
        ctx.save_for_backward(x, P)
        return forward(x, P)

    @staticmethod
    def backward(ctx: Any, dz: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, P = ctx.saved_tensors
        return backward(x, P, dz, *ctx.needs_input_grad)


# Function.apply only adds support for torch.func, which `is_transformed` has excluded
_apply: Any = internals.direct_apply(_QuadraticForm)


def forward(x: Tensor, P: Tensor) -> Tensor:
    """z, shape (B, m), for x of shape (B, n) and P of shape (n(n+1)/2, m)."""
    given = for_loops(x, P)
    if given is not None:
        return values_by_loops(x, *given)
    if takes_operator(x, P):
        return torch.ops.quadric.quadratic_form(x, P)
    rows = _rows_at_once(x, P)
    if rows < x.shape[0]:
        return torch.cat([_values(part, P) for part in torch.split(x, rows)])
    return _values(x, P)


def values_by_loops(like: Tensor, tensors: list[Tensor], addresses: list[int]) -> Tensor:
    """z, in the dtype of `like`, from the result of `_for_loops`."""
    x, P = tensors
    (B, n), m = x.shape, P.shape[1]
    z = x.new_empty(B, m)
    addresses += z.data_ptr(), 0, 0
    _run(kernels.values, x.dtype, (B, n, m, n), addresses)
    return z if like.dtype == x.dtype else z.to(like.dtype)


def backward(
    x: Tensor, P: Tensor, dz: Tensor, wants_dx: bool = True, wants_dP: bool = True
) -> tuple[Tensor | None, Tensor | None]:
    """dL/dx, shape (B, n), and dL/dP, shape (n(n+1)/2, m), each None unless wanted."""
    differentiable = torch.is_grad_enabled() or is_transformed()
    given = None if differentiable else for_loops(x, P, dz)
    if given is not None:
        return gradients_by_loops(x, *given, wants_dx, wants_dP)
    if not differentiable and takes_operator(x, P):
        dx, dP = torch.ops.quadric.quadratic_form_gradients(x, P, dz, wants_dx, wants_dP)
        return dx if wants_dx else None, dP if wants_dP else None
    rows = x.shape[0] if differentiable else _rows_at_once(x, P)
    if rows >= x.shape[0]:
        dx = _input_gradient(x, P, dz) if wants_dx else None
        return dx, _packed_gradient(x, dz) if wants_dP else None
    parts = list(zip(torch.split(x, rows), torch.split(dz, rows), strict=True))
    dx = torch.cat([_input_gradient(a, P, d) for a, d in parts]) if wants_dx else None
    dP = None
    for a, d in parts if wants_dP else ():
        part = _packed_gradient(a, d)
        dP = part if dP is None else dP.add_(part)
    return dx, dP


def gradients_by_loops(
    like: Tensor, tensors: list[Tensor], addresses: list[int], wants_dx: bool, wants_dP: bool
) -> tuple[Tensor | None, Tensor | None]:
    """dL/dx and dL/dP, in the dtype of `like`, from the result of `_for_loops`."""
    x, P, dz = tensors
    (B, n), (pairs, m), dtype = x.shape, P.shape, x.dtype
    if dz.shape != (B, m) or 2 * pairs != n * (n + 1) or not P.dtype == dz.dtype == dtype:
        _check("P", P, (n * (n + 1) // 2, m), dtype)  # hooks may replace saved tensors
        _check("dz", dz, (B, m), dtype)
    dx = x.new_empty(B, n) if wants_dx else None
    dP = x.new_empty(pairs, m) if wants_dP else None
    addresses.append(0 if dx is None else dx.data_ptr())
    addresses.append(0 if dP is None else dP.data_ptr())
    _run(kernels.gradients, dtype, (B, n, m, n), addresses)
    if like.dtype == dtype:
        return dx, dP
    return (
        None if dx is None else dx.to(like.dtype),
        None if dP is None else dP.to(like.dtype),
    )


def _rows_at_once(x: Tensor, P: Tensor) -> int:
    """How many rows torch operations process at once, so that V has at most MOST_NUMBERS."""
    return max(1, MOST_NUMBERS // max(1, x.shape[1] * P.shape[1]))


def _values(x: Tensor, P: Tensor) -> Tensor:
    """Compute z with torch operations: V_k = Q_k x for all neurons, then x'V_k."""
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
    if x.is_complex():
        raise TypeError(f"x must be real. Got {x.dtype}: quadratic layers have real numbers only.")
    (B, n), m = x.shape, P.shape[1]
    Q = P.index_select(0, places(n, x.device)).reshape(n, n * m)
    return (x @ Q).reshape(B, n, m)


def places(n: int, device: torch.device) -> Tensor:
    """The packed row of each of the n * n entries of a matrix, row by row."""
    # A traced graph must not contain a tensor from outside the graph, so tracers get a new tensor.
    if n > MOST_KEPT or torch.compiler.is_compiling() or internals.count_dispatch_modes() > 0:
        return _places(n, device)
    return _kept_places(n, device)


def _places(n: int, device: torch.device) -> Tensor:
    i = torch.arange(n, device=device)
    low, high = torch.minimum(i[:, None], i), torch.maximum(i[:, None], i)
    return (low * (2 * n - low - 1) // 2 + high).reshape(-1)


@lru_cache(maxsize=16)
def _kept_places(n: int, device: torch.device) -> Tensor:
    # The kept tensor must not belong to inference mode or a transform that is active now.
    with torch.inference_mode(False), internals.without_transforms():
        return _places(n, device)


# ---- the compiled loops ----


def is_transformed() -> bool:
    """Whether a compiler, tracer, transform of torch.func or forward mode is active.

    These need torch operations without a custom autograd function around them.
    """
    return (
        torch.compiler.is_compiling()
        or internals.is_tracing()
        or internals.are_transforms_active()
        or internals.is_forward_mode()
    )


def takes_operator(x: Tensor, P: Tensor) -> bool:
    """Whether the operators can take the place of the loops: under compilers and dispatch modes."""
    return (
        (torch.compiler.is_compiling() or internals.count_dispatch_modes() > 0)
        and (x.dtype in _DTYPES or x.dtype in _HALF)
        and x.device.type == P.device.type == "cpu"
        and kernels.JIT_ALLOWED
        and not torch.onnx.is_in_onnx_export()
        and not internals.is_tracing_for_compilers()
        and not internals.are_transforms_active()
        and not internals.is_forward_mode()
    )


def for_loops(*tensors: Tensor) -> tuple[list[Tensor], list[int]] | None:
    """The tensors, made contiguous, and their addresses, or None if the loops cannot take them.

    The caller checks that the dtypes agree.
    """
    is_half = tensors[0].dtype not in _DTYPES
    if (is_half and tensors[0].dtype not in _HALF) or internals.count_dispatch_modes() > 0:
        return None
    for tensor in tensors:
        # is_neg: a lazily negated view
        if type(tensor) not in _TYPES or not tensor.is_cpu or tensor.is_neg():
            return None
    try:
        if is_half:
            tensors = tuple([tensor.float() for tensor in tensors])
        contiguous = [tensor.contiguous() for tensor in tensors]
        addresses = [tensor.data_ptr() for tensor in contiguous]
    except RuntimeError:  # tensors of vmap and sparse tensors have no address
        return None
    if 0 in addresses or not kernels.JIT_ALLOWED:  # empty tensors have the address 0
        return None
    return contiguous, addresses


def _check(name: str, tensor: Tensor, shape: tuple[int, int], dtype: torch.dtype) -> None:
    """Raise RuntimeError for a wrong shape or dtype."""
    if tensor.shape != shape or tensor.dtype != dtype:
        raise RuntimeError(
            f"expected {name} of shape {shape} and the dtype of x, {dtype}. "
            f"Got shape {tuple(tensor.shape)} and {tensor.dtype}."
        )


def _run(loop: Any, dtype: torch.dtype, sizes: tuple[int, ...], addresses: list[int]) -> None:
    kernels.run_quadratic_form(loop, _team(), _DTYPES[dtype], sizes, addresses)


@cache
def _team() -> Any:
    """Return OpenMP's threads, or Python threads if torch does not use GNU OpenMP."""
    try:
        parallel = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):
        return kernels.PythonThreads(torch.get_num_threads)
    parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    parallel.restype = None
    return kernels.OpenMPThreads(parallel, torch.get_num_threads)
