"""A triangle unpacked to a full symmetric block S: two products over the whole block.

``V = x S``, ``z = x'V``; backwards ``dx = 2 V'dz`` and the triangle of ``x'D``, ``D = 2 x dz``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from quadric.torch.layout import Places

__all__ = ["backward_T", "backward_x", "forward", "product", "rows_by"]


def product(x: Tensor, T: Tensor, at: Places) -> Tensor:
    """V, shape (B, m k)."""
    return x @ _symmetric(T, at)


def forward(x: Tensor, V: Tensor, at: Places) -> Tensor:
    """z, shape (B, m)."""
    return rows_by(x, _by_neuron(V, at).transpose(1, 2))


def backward_x(T: Tensor, V: Tensor, dz_2: Tensor, dV: Tensor | None, at: Places) -> Tensor:
    """dL/dx from twice dL/dz and, in second derivatives, dL/dV."""
    dx = rows_by(dz_2, _by_neuron(V, at))
    return dx if dV is None else dx + dV @ _symmetric(T, at).t()


def backward_T(x: Tensor, dz_2: Tensor, dV: Tensor | None, at: Places) -> Tensor:
    """dL/dT; ``x'D`` is symmetric, so that its triangle is enough; ``x'dV`` is not."""
    D = (dz_2[:, :, None] * x[:, None, :]).reshape(x.shape[0], at.neurons * at.size)
    outer = (x.t() @ D).reshape(-1)
    del D  # not to be held while its triangle is taken
    gradient = outer.index_select(0, at.upper)
    if dV is not None:
        outer = (x.t() @ dV).reshape(-1)
        gradient = gradient + outer.index_select(0, at.upper) + outer.index_select(0, at.lower)
    return gradient.reshape(-1, at.neurons).mul_(at.share)


def _symmetric(T: Tensor, at: Places) -> Tensor:
    """The symmetric block of triangle T, as a matrix: a row for j, a column for neuron and i."""
    return T.reshape(-1).index_select(0, at.matrix).reshape(at.size, at.neurons * at.size)


def _by_neuron(V: Tensor, at: Places) -> Tensor:
    """The V of a triangle, shape (B, m, k)."""
    return V.reshape(V.shape[0], at.neurons, at.size)


def rows_by(rows: Tensor, matrices: Tensor) -> Tensor:
    """Each row times a matrix of its own.

    The row stands on the left: the other way round torch takes eight times as long. For small
    matrices its `bmm` has a loop that is slower still, unless they are transposed.
    """
    if matrices.is_contiguous() and matrices.shape[1] * matrices.shape[2] < 400:
        return (rows[:, :, None] * matrices).sum(1)
    return torch.bmm(rows[:, None, :], matrices).squeeze(1)
