"""Triangles by the compiled loops of `quadric.kernels.triangles`: for numbers in main memory."""

from __future__ import annotations

import ctypes
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

__all__ = ["backward_T", "backward_x", "can_take", "forward"]

_NAMES = {torch.float32: "float32", torch.float64: "float64"}

# Multiplications, some 10 µs of them, below which a thread more takes longer than it saves.
WORTH_A_THREAD = 2**18


def can_take(x: Tensor, T: Tensor) -> bool:
    """Whether the loops can compute this, and torch's own operations not faster."""
    if not x.is_cpu or x.dtype not in _NAMES:
        return False
    threads = torch.get_num_threads()
    return _team is not None or threads == 1 or _multiplications(x, T.shape[1]) < WORTH_A_THREAD


def forward(x: Tensor, T: Tensor) -> Tensor:
    """z, shape (B, m), for x of shape (B, n) and a triangle T of shape (n(n+1)/2, m)."""
    (B, n), m, loops = x.shape, T.shape[1], _loops()
    z = x.new_empty(B, m)
    _run(loops.forward, loops.forward_memory(n, m, x.itemsize), x, T=T.contiguous(), z=z)
    return z


def backward_x(x: Tensor, T: Tensor, dz: Tensor) -> Tensor:
    """dL/dx, shape (B, n)."""
    (_, n), m, loops = x.shape, T.shape[1], _loops()
    dx, room = x.new_empty(x.shape), loops.backward_x_memory(n, m, x.itemsize)
    _run(loops.backward_x, room, x, T=T.contiguous(), dz=dz.contiguous(), dx=dx)
    return dx


def backward_T(x: Tensor, dz: Tensor, dT: Tensor) -> None:
    """dL/dT, into dT, which is contiguous."""
    (B, n), m, loops = x.shape, dz.shape[1], _loops()
    if B == 0:
        dT.zero_()
    else:
        _run(loops.backward_T, loops.backward_T_memory(n, m), x, dz=dz.contiguous(), dT=dT)


def _run(loop: Any, room: int, x: Tensor, **tensors: Tensor) -> None:
    """Run the loop, with `room` numbers for each of its tickets to work in."""
    B, n = x.shape
    m = next(iter(tensors.values())).shape[1]
    shapes = {"T": (n * (n + 1) // 2, m), "z": (B, m), "x": (B, n)}
    for name, tensor in tensors.items():
        if tensor.shape != shapes[name[-1]] or tensor.dtype != x.dtype or not tensor.is_cpu:
            raise RuntimeError(  # not to follow a wrong address
                f"expected {name} of shape {shapes[name[-1]]} and {x.dtype} on the CPU. "
                f"Got {tuple(tensor.shape)} and {tensor.dtype} on {tensor.device}."
            )
    x = x if x.stride(1) == 1 else x.contiguous()
    tickets = 1
    if _team is not None:
        worth = _multiplications(x, m) // WORTH_A_THREAD
        tickets = max(1, min(torch.get_num_threads(), worth))
    memory = x.new_empty(tickets * room)
    addresses = [tensor.data_ptr() for tensor in (x, *tensors.values(), memory)]
    loop(_NAMES[x.dtype], _team, tickets, B, n, m, x.stride(0), room, *addresses)


def _multiplications(x: Tensor, m: int) -> int:
    B, n = x.shape
    return B * n * (n + 1) // 2 * m


def _loops() -> ModuleType:
    from quadric.kernels import triangles  # numba, for which those who only import need not wait

    return triangles


def _find_team() -> Any:
    """OpenMP's function that has its threads call another one; None where there is none.

    These are the threads that torch uses. Others would not do: for a while after they have had
    work, OpenMP's keep their cores busy waiting for more.
    """
    try:
        team = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):
        return None
    team.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    team.restype = None
    return team


_team = _find_team()
