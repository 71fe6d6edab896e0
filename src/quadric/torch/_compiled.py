"""The compiled loops of `quadric.kernels._quadratic_form` for torch tensors.

They read and write memory by its address, so they are for tensors that are numbers in main memory
and nothing else, while no transform, tracer or dispatch mode is active.
"""

import ctypes
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

_NAMES = {torch.float32: "float32", torch.float64: "float64"}


def is_transformed() -> bool:
    """Whether a compiler, tracer, transform of torch.func or forward mode is active.

    These need torch's own operations, without a custom autograd function around them.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    )


def can_take(*tensors: Tensor) -> bool:
    """Whether the loops can compute with these tensors."""
    if torch._C._len_torch_dispatch_stack() > 0 or is_transformed():
        return False
    try:
        for tensor in tensors:
            if type(tensor) is not Parameter and type(tensor) is not Tensor:
                return False
            if tensor.dtype not in _NAMES or not tensor.is_cpu:
                return False
            if tensor.data_ptr() == 0 and tensor.numel() > 0:
                return False
            if tensor.is_neg():  # numbers that are to be read with the other sign
                return False
    except RuntimeError:  # tensors of vmap have no address
        return False
    return _loops() is not None


def forward(x: Tensor, P: Tensor) -> Tensor:
    """z, shape (B, m), for x of shape (B, n) and P of shape (n(n+1)/2, m)."""
    x, P, z = _rows(x), P.contiguous(), x.new_empty(x.shape[0], P.shape[1])
    _check(x, P=P)
    _loops().forward(_batch(x, P.shape[1]), P.data_ptr(), z.data_ptr())
    return z


def backward_x(x: Tensor, P: Tensor, dz: Tensor) -> Tensor:
    """dL/dx, shape (B, n)."""
    x, P, dz, dx = _rows(x), P.contiguous(), dz.contiguous(), x.new_empty(x.shape)
    _check(x, P=P, dz=dz)
    batch = _batch(x, P.shape[1])
    _loops().backward_x(batch, P.data_ptr(), dz.data_ptr(), dx.data_ptr())
    return dx


def backward_P(x: Tensor, dz: Tensor) -> Tensor:
    """dL/dP, shape (n(n+1)/2, m)."""
    n, m = x.shape[1], dz.shape[1]
    if x.shape[0] == 0:
        return x.new_zeros(n * (n + 1) // 2, m)
    x, dz, dP = _rows(x), dz.contiguous(), x.new_empty(n * (n + 1) // 2, m)
    _check(x, dz=dz)
    _loops().backward_P(_batch(x, m), dz.data_ptr(), dP.data_ptr())
    return dP


def _rows(x: Tensor) -> Tensor:
    return x if x.stride(1) == 1 else x.contiguous()


def _batch(x: Tensor, m: int) -> Any:
    (B, n), team = x.shape, _team()
    threads = team.threads_for(B * n * (n + 1) // 2 * m)
    dtype, stride = _NAMES[x.dtype], x.stride(0)
    return _loops().Batch(dtype, B, n, m, x.data_ptr(), stride, threads, team.run)


def _check(x: Tensor, **tensors: Tensor) -> None:
    """Refuse to follow a wrong address: saved tensors may come back as others."""
    (B, n), m = x.shape, next(iter(tensors.values())).shape[1]
    for name, tensor in tensors.items():
        shape = (n * (n + 1) // 2, m) if name == "P" else (B, m)
        if tuple(tensor.shape) != shape or tensor.dtype != x.dtype:
            raise RuntimeError(
                f"expected {name} of shape {shape} and {x.dtype}, like x. "
                f"Got shape {tuple(tensor.shape)} and {tensor.dtype}."
            )


@cache
def _loops() -> Any:
    """The module of the loops; None where numba is told not to compile."""
    from quadric.kernels import _compiling, _quadratic_form  # numba: only when it is needed

    return _quadratic_form if _compiling.ALLOWED else None


class _OpenMP:
    """The threads that torch uses, by OpenMP's function that has them call another one.

    Others would not do: for a while after they have had work, OpenMP's threads keep their cores
    busy waiting for more. Nor would some of them: when their number changes, OpenMP ends threads
    and starts new ones. Those without a ticket return at once.
    """

    worth = 2**18  # multiplications, about 10 µs of them

    def __init__(self, parallel: Any) -> None:
        self.parallel = parallel

    def threads_for(self, work: int) -> int:
        """How many threads so many multiplications are worth."""
        return 1 if work < 2 * self.worth else min(torch.get_num_threads(), work // self.worth)

    def run(self, function: int, arguments: Any) -> None:
        self.parallel(function, arguments, 0, 0)


@cache
def _team() -> Any:
    """OpenMP's threads; Python's where torch has no OpenMP of GNU's kind."""
    try:
        parallel = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):
        from quadric.core._quadratic_form import PythonThreads

        return PythonThreads(torch.get_num_threads)
    parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    parallel.restype = None
    return _OpenMP(parallel)
