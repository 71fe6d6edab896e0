"""Triangles by the compiled loops of `quadric.kernels.triangles`: for numbers in main memory."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch
from torch import Tensor

__all__ = ["backward_T", "backward_x", "can_take", "forward"]

_NAMES = {torch.float32: "float32", torch.float64: "float64"}

# Multiplications, some 10 µs of them, below which a thread more takes longer than it saves.
WORTH_A_THREAD = 2**18


def can_take(x: Tensor, P: Tensor) -> bool:
    """Whether the loops can compute this, and with about as many threads as torch would."""
    if not x.is_cpu or x.dtype not in _NAMES:
        return False
    loops, threads = _loops(), torch.get_num_threads()
    if loops is None:
        return False
    parts = 1 if _team is None else _pieces(x.shape[0], loops.tile(x.itemsize))
    return threads <= 2 * parts or _multiplications(x, P.shape[1]) < threads * WORTH_A_THREAD


def forward(x: Tensor, T: Tensor) -> Tensor:
    """z, shape (B, m), for x of shape (B, n) and a triangle T of shape (n(n+1)/2, m)."""
    (B, n), m, loops = x.shape, T.shape[1], _loops()
    z, width = x.new_empty(B, m), loops.tile(x.itemsize)
    room, parts = loops.forward_room(n, m, width), _pieces(B, width)
    _run(loops.forward, parts, width, room, x, T=T.contiguous(), z=z)
    return z


def backward_x(x: Tensor, T: Tensor, dz: Tensor) -> Tensor:
    """dL/dx, shape (B, n)."""
    (B, n), m, loops = x.shape, T.shape[1], _loops()
    dx, width = x.new_empty(B, n), loops.tile(x.itemsize)
    room, parts = loops.backward_x_room(n, m, width), _pieces(B, width)
    _run(loops.backward_x, parts, width, room, x, T=T.contiguous(), dz=dz.contiguous(), dx=dx)
    return dx


def backward_T(x: Tensor, dz: Tensor, dT: Tensor) -> None:
    """dL/dT, into dT, which is contiguous."""
    (B, n), m, loops = x.shape, dz.shape[1], _loops()
    if B == 0:
        dT.zero_()
        return
    width = loops.backward_T_width(B, x.itemsize)
    room, parts = loops.backward_T_room(n, m, width), _pieces(dT.shape[0], loops.AT_ONCE)
    _run(loops.backward_T, parts, width, room, x, dz=dz.contiguous(), dT=dT)


def _run(loop: Any, parts: int, width: int, room: int, x: Tensor, **tensors: Tensor) -> None:
    """Run the loop, in at most as many `parts`; it takes the tensors in the order given."""
    B, n = x.shape
    m = next(iter(tensors.values())).shape[1]
    counts = {"x": B * n, "T": n * (n + 1) // 2 * m, "z": B * m}  # and of dx, dT, dz
    dtype = x.dtype
    for name, tensor in tensors.items():
        right = tensor.numel() == counts[name[-1]] and tensor.dtype == dtype and tensor.is_cpu
        if not right or not x.is_cpu:  # not to follow a wrong address
            raise RuntimeError(
                f"expected {name} with {counts[name[-1]]} numbers of {dtype} on the CPU, like x. "
                f"Got shape {tuple(tensor.shape)}, {tensor.dtype} on {tensor.device}; "
                f"x has shape {tuple(x.shape)} on {x.device}."
            )
    x = x if x.stride(1) == 1 else x.contiguous()
    tickets = 1
    if _team is not None:
        worth = B * counts["T"] // WORTH_A_THREAD
        tickets = max(1, min(torch.get_num_threads(), worth, parts))
    memory = x.new_empty(tickets * room)
    addresses = [tensor.data_ptr() for tensor in (x, *tensors.values(), memory)]
    loop(_NAMES[dtype], _team, tickets, B, n, m, x.stride(0), width, room, *addresses)


def _pieces(count: int, unit: int) -> int:
    return (count + unit - 1) // unit


def _multiplications(x: Tensor, m: int) -> int:
    B, n = x.shape
    return B * n * (n + 1) // 2 * m


@cache
def _loops() -> Any:
    """The module of the loops; None where numba is told not to compile."""
    from quadric.kernels import compiling, triangles  # numba: who only imports need not wait for it

    return triangles if compiling.ALLOWED else None


def _find_team() -> Any:
    """OpenMP's function that has its threads call another one; None where there is none.

    These are the threads that torch uses. Others would not do: for a while after they have had
    work, OpenMP's keep their cores busy waiting for more. Nor would some of them: whenever the
    number changes, OpenMP ends threads and starts others. Those without a ticket return at once.
    """
    try:
        team = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):
        return None
    team.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    team.restype = None
    return team


_team = _find_team()
