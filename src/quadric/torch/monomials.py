"""A triangle as it stands, met by the monomials x_i x_j, i <= j: three products over half a block.

The work beside the products does not grow with the number of neurons.
"""

from __future__ import annotations

import torch
from torch import Tensor

from quadric.torch.layout import Places

__all__ = ["backward_x", "of"]

ROWS_AT_ONCE = 16


def of(X: Tensor, at: Places) -> Tensor:
    """The monomials x_i^2 and 2 x_i x_j, i < j; a row for each, shape (k(k+1)/2, B)."""
    x = X.t().contiguous()
    return torch.cat([x, 2 * x]).index_select(0, at.twice).mul_(x.index_select(0, at.columns))


def backward_x(X: Tensor, T: Tensor, dz_2: Tensor, at: Places) -> Tensor:
    """dL/dx from twice dL/dz."""
    slopes = T @ dz_2.t()  # twice the derivatives by x_i x_j, shape (k(k+1)/2, B)
    x, dx = X.t().contiguous(), []
    for mirrored in at.mirrored.split(ROWS_AT_ONCE):  # so that what is made stays in the cache
        shape = mirrored.shape[0], at.size, X.shape[0]
        matrix = slopes.index_select(0, mirrored.reshape(-1)).reshape(shape)
        dx.append((matrix * x).sum(1))
    return (dx[0] if len(dx) == 1 else torch.cat(dx)).t()
