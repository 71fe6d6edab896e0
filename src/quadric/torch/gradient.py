"""dL/dP, put together of pieces."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["Gradient"]


class Gradient:
    """dL/dP, piece by piece: written into place, or joined at the end where that cannot be done.

    That is under vmap, in a backward pass that is itself differentiated, and in a graph that is
    being compiled.
    """

    def __init__(self, P: Tensor, in_place: bool) -> None:
        self._pieces: list[Tensor] = []
        self._neurons = P.shape[1]
        self._whole = (
            torch.empty_like(P, memory_format=torch.contiguous_format) if in_place else None
        )

    def rows(self, rows: slice) -> Tensor:
        """These rows, to be written into."""
        assert self._whole is not None
        return self._whole if rows == slice(0, len(self._whole)) else self._whole[rows]

    def put(self, rows: slice, piece: Tensor) -> None:
        if self._whole is None:
            self._pieces.append(piece)
        else:
            self._whole[rows] = piece

    def put_product(self, rows: slice, A: Tensor, B: Tensor) -> None:
        if self._whole is None:
            count = A.shape[0] * B.shape[1] // self._neurons
            self._pieces.append((A @ B).reshape(count, self._neurons))
        else:
            torch.mm(A, B, out=self._whole[rows].view(A.shape[0], B.shape[1]))

    def whole(self) -> Tensor:
        if self._whole is not None:
            return self._whole
        return self._pieces[0] if len(self._pieces) == 1 else torch.cat(self._pieces)
