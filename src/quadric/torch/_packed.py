"""Symmetric matrices as packed triangles, as differentiable functions of tensors.

The layout is that of `quadric.core._triangle`: one tensor of shape (n(n+1)/2, m), whose row p
holds the entries q_ij of m matrices for the p-th pair i <= j, row by row.
"""

from functools import lru_cache

import torch
from torch import Tensor

from quadric.core._triangle import n_inputs


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


def diagonal(n: int) -> Tensor:
    """The packed rows of the entries on the diagonal."""
    i = torch.arange(n)
    return i * n - i * (i - 1) // 2


def places(n: int, device: torch.device) -> Tensor:
    """The packed row of each entry of a matrix, row by row; n * n of them."""
    # made anew for whoever follows operations: a tensor from outside has no place in a graph
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
        return _places(n, device)
    return _kept_places(n, device)


def _places(n: int, device: torch.device) -> Tensor:
    i = torch.arange(n, device=device)
    low, high = torch.minimum(i[:, None], i), torch.maximum(i[:, None], i)
    return (low * (2 * n - low - 1) // 2 + high).reshape(-1)


@lru_cache(maxsize=16)
def _kept_places(n: int, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return _places(n, device)
