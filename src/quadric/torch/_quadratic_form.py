"""The quadratic form z_k = x'Q_k x of a batch and its gradients, from packed Q.

There are two implementations, which agree up to rounding:

- compiled loops, for ordinary tensors on the CPU. They need no full matrices and save no
  intermediates. They are the loops of `quadric.kernels`, which access memory by address.
- torch operations on unpacked matrices, for other devices and dtypes, for second derivatives, and
  under torch.func, compilers, tracers, dispatch modes and forward-mode differentiation.
"""

import ctypes
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import Function, forward_ad
from torch.nn import Parameter

from quadric import kernels

_TYPES = {Tensor, Parameter}
_DTYPES = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}


def quadratic_form(x: Tensor, P: Tensor) -> Tensor:
    """x'Q_k x, shape (B, m), for x of shape (B, n) and Q packed as P, shape (n(n+1)/2, m).

    The caller must have checked that shapes, dtypes and devices match.
    """
    if is_transformed():
        return _values(x, P)
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
_apply: Any = super(Function, _QuadraticForm).apply


def forward(x: Tensor, P: Tensor) -> Tensor:
    """z, shape (B, m), for x of shape (B, n) and P of shape (n(n+1)/2, m)."""
    given = _for_loops(x, P)
    if given is None:
        return _values(x, P)
    (x, P), addresses = given
    (B, n), m = x.shape, P.shape[1]
    z = x.new_empty(B, m)
    addresses += z.data_ptr(), 0, 0
    _run(kernels.values, x.dtype, (B, n, m, n), addresses)
    return z


def backward(
    x: Tensor, P: Tensor, dz: Tensor, wants_dx: bool = True, wants_dP: bool = True
) -> tuple[Tensor | None, Tensor | None]:
    """dL/dx, shape (B, n), and dL/dP, shape (n(n+1)/2, m), each None unless wanted."""
    given = None if torch.is_grad_enabled() or is_transformed() else _for_loops(x, P, dz)
    if given is None:
        dx = _input_gradient(x, P, dz) if wants_dx else None
        return dx, _packed_gradient(x, dz) if wants_dP else None
    (x, P, dz), addresses = given
    (B, n), (pairs, m), dtype = x.shape, P.shape, x.dtype
    if dz.shape != (B, m) or 2 * pairs != n * (n + 1) or not P.dtype == dz.dtype == dtype:
        _check("P", P, (n * (n + 1) // 2, m), dtype)  # hooks may replace saved tensors
        _check("dz", dz, (B, m), dtype)
    dx = x.new_empty(B, n) if wants_dx else None
    dP = x.new_empty(pairs, m) if wants_dP else None
    addresses.append(0 if dx is None else dx.data_ptr())
    addresses.append(0 if dP is None else dP.data_ptr())
    _run(kernels.gradients, dtype, (B, n, m, n), addresses)
    return dx, dP


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
    (B, n), m = x.shape, P.shape[1]
    Q = P.index_select(0, places(n, x.device)).reshape(n, n * m)
    return (x @ Q).reshape(B, n, m)


def places(n: int, device: torch.device) -> Tensor:
    """The packed row of each of the n * n entries of a matrix, row by row."""
    # A traced graph must not contain a tensor from outside the graph, so tracers get a new tensor.
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
        return _places(n, device)
    return _kept_places(n, device)


def _places(n: int, device: torch.device) -> Tensor:
    i = torch.arange(n, device=device)
    low, high = torch.minimum(i[:, None], i), torch.maximum(i[:, None], i)
    return (low * (2 * n - low - 1) // 2 + high).reshape(-1)


@lru_cache(maxsize=16)
def _kept_places(n: int, device: torch.device) -> Tensor:
    # The kept tensor must not belong to inference mode or a transform that is active now.
    with torch.inference_mode(False), temporarily_clear_interpreter_stack():
        return _places(n, device)


# ---- the compiled loops ----


def is_transformed() -> bool:
    """Whether a compiler, tracer, transform of torch.func or forward mode is active.

    These need torch operations without a custom autograd function around them.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    )


def _for_loops(*tensors: Tensor) -> tuple[list[Tensor], list[int]] | None:
    """The tensors, made contiguous, and their addresses, or None if the loops cannot take them.

    The caller checks that the dtypes agree.
    """
    if tensors[0].dtype not in _DTYPES or torch._C._len_torch_dispatch_stack() > 0:
        return None
    for tensor in tensors:
        # is_neg: a lazily negated view
        if type(tensor) not in _TYPES or not tensor.is_cpu or tensor.is_neg():
            return None
    try:
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
