"""Where the entries of Q stand in memory: triangles on the diagonal, rectangles beside it.

A symmetric n x n matrix is cut into blocks of 128 rows. Of each block a triangle is kept, where it
meets the diagonal, and the rectangle to the right of it. For m neurons this is one tensor of shape
(n(n+1)/2, m), whose rectangles feed matrix products as they are: unpacking a row-major triangle
first costs half as much as the products themselves.

Outside memory (`state_dict`, files) Q is always its row-major triangle, shape (m, n(n+1)/2).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from quadric.torch.choice import COMPILED, MONOMIALS
from quadric.torch.plain import is_watched

__all__ = [
    "BLOCK",
    "Block",
    "Places",
    "blocks",
    "diagonal",
    "inputs_of",
    "pack",
    "places",
    "to_triangle",
    "unpack",
]

BLOCK = 128  # from measurement: benchmarks/README.md


class Block(NamedTuple):
    """Rows first:last of Q: their triangle and, from column `last` on, their rectangle."""

    first: int
    last: int
    triangle: slice  # of the packed tensor's rows
    rectangle: slice

    @property
    def size(self) -> int:
        return self.last - self.first


def blocks(n: int) -> Iterator[Block]:
    """The blocks of a matrix of n rows, in the order in which they are packed."""
    row = 0
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        k = last - first
        middle = row + k * (k + 1) // 2
        end = middle + k * (n - last)
        yield Block(first, last, slice(row, middle), slice(middle, end))
        row = end


class Places(NamedTuple):
    """Where things stand in the triangle of a k x k block; numbers of m neurons side by side.

    Only what the form of the triangle needs is there; the rest is None.
    """

    size: int  # k
    neurons: int  # m
    # for monomials
    columns: Any = None  # of each entry of the triangle its column,
    twice: Any = None  # and its row, or k + row where it is off the diagonal and so counts twice
    mirrored: Any = None  # of each entry of the matrix its place in the triangle; shape (k, k)
    # for unpacked triangles
    matrix: Any = None  # of each number of a matrix of shape (k, m, k) its place in the triangle
    upper: Any = None  # of each number of the triangle its place in that matrix,
    lower: Any = None  # and that of its mirror image
    share: Any = None  # 1/2 for the entries on the diagonal, else 1; a column


_cache: dict[tuple[Any, ...], Places] = {}


def places(k: int, m: int, form: str, device: torch.device, dtype: torch.dtype) -> Places:
    """The index tensors of a block: made once for each device, anew for who follows operations."""
    if torch.compiler.is_compiling() or is_watched():
        return _make_places(k, m, form, device, dtype)
    key = (k, m, form, device, dtype)
    if key not in _cache:
        with torch.inference_mode(False):
            _cache[key] = _make_places(k, m, form, device, dtype)
    return _cache[key]


def _make_places(k: int, m: int, form: str, device: torch.device, dtype: torch.dtype) -> Places:
    if form == COMPILED:
        return Places(k, m)
    rows, columns = torch.triu_indices(k, k, device=device).unbind()
    neuron, mirrored, off = torch.arange(m, device=device), _mirrored(k, device), rows != columns
    if form == MONOMIALS:
        return Places(k, m, columns=columns, twice=rows + k * off, mirrored=mirrored)
    return Places(
        k, m,
        matrix=(mirrored[:, None, :] * m + neuron[:, None]).reshape(-1),
        upper=((rows * m * k + columns)[:, None] + neuron * k).reshape(-1),
        lower=((columns * m * k + rows)[:, None] + neuron * k).reshape(-1),
        share=((1 + off.to(dtype)) / 2)[:, None],
    )  # fmt: skip


def _mirrored(k: int, device: torch.device) -> Tensor:
    """Of each entry of a symmetric matrix its place in the row-major triangle, shape (k, k)."""
    i = torch.arange(k, device=device)
    low, high = torch.minimum(i[:, None], i), torch.maximum(i[:, None], i)
    return low * (2 * k - low - 1) // 2 + high


def inputs_of(rows: int) -> int:
    """The n for which n(n+1)/2 = rows."""
    n = int((2 * rows) ** 0.5)
    if n * (n + 1) // 2 != rows:
        raise ValueError(f"packed Q must have n(n+1)/2 rows for some n. Got {rows} instead.")
    return n


@lru_cache(maxsize=8)
def _orders(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Which entry of the row-major triangle each packed row is, and the other way round."""
    entry = np.zeros((n, n), dtype=np.int64)
    rows, columns = np.triu_indices(n)
    entry[rows, columns] = np.arange(len(rows))
    parts = []
    for block in blocks(n):
        own = slice(block.first, block.last)
        parts.append(entry[own, own][np.triu_indices(block.size)])
        parts.append(entry[own, block.last :].T.reshape(-1))
    packed = np.concatenate(parts)
    return packed, np.argsort(packed)


def diagonal(n: int) -> Tensor:
    """The packed rows that are on the diagonal of Q."""
    k = np.arange(n)
    return torch.from_numpy(_orders(n)[1][k * n - k * (k - 1) // 2])


def pack(triangle: Tensor) -> Tensor:
    """Row-major triangles, shape (m, n(n+1)/2), as the layers hold them: (n(n+1)/2, m)."""
    order = _orders(inputs_of(triangle.shape[1]))[0]
    return triangle.t().index_select(0, torch.from_numpy(order).to(triangle.device))


def to_triangle(packed: Tensor) -> Tensor:
    """The row-major triangles, shape (m, n(n+1)/2), of packed ones."""
    order = _orders(inputs_of(packed.shape[0]))[1]
    return packed.index_select(0, torch.from_numpy(order).to(packed.device)).t().contiguous()


def unpack(packed: Tensor) -> Tensor:
    """The symmetric matrices Q, shape (m, n, n), of packed ones."""
    n = inputs_of(packed.shape[0])
    matrix = _mirrored(n, packed.device).reshape(-1)
    return to_triangle(packed).index_select(1, matrix).reshape(-1, n, n)
