"""Other ways to write a quadratic layer in torch, in the few lines that an engineer would write.

Each rival is a function of x with its own parameter. All compute z_k = x'Q_k x for the same Q.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from quadric.torch import Quadratic

Rival = tuple[Callable[[Tensor], Tensor], Tensor]


class ByHand(torch.autograd.Function):
    """Two products: V = Q x for all neurons, saved for the backward pass; then x'V."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, Q: Tensor) -> Tensor:
        n, m = Q.shape[0], Q.shape[2]
        V = (x @ Q.view(n, n * m)).view(len(x), n, m)
        ctx.save_for_backward(x, V)
        return torch.bmm(x[:, None], V)[:, 0]

    @staticmethod
    def backward(ctx: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
        x, V = ctx.saved_tensors
        B, n, m = V.shape
        dx = 2 * torch.bmm(V, dz[:, :, None])[:, :, 0]
        D = (x[:, :, None] * dz[:, None]).view(B, n * m)
        return dx, (x.t() @ D).view(n, n, m)


def rivals(layer: Quadratic) -> dict[str, Rival]:
    """Return the rivals with the values of the layer, by name."""
    n, m = layer.in_features, layer.out_features
    Q = layer.Q.detach()
    by_neuron = Q.clone().requires_grad_()
    by_input = Q.permute(1, 2, 0).contiguous().requires_grad_()  # (n, n, m)
    products = Q.permute(1, 0, 2).contiguous().requires_grad_()  # (n, m, n)
    rows, columns = torch.triu_indices(n, n).unbind()
    weights = (layer.packed.detach() * (2 - (rows == columns).float())[:, None]).t().contiguous()
    weights.requires_grad_()
    bilinear = nn.Bilinear(n, n, m, bias=False)
    with torch.no_grad():
        bilinear.weight.copy_(Q)
    return {
        "einsum": (lambda x: torch.einsum("bi,kij,bj->bk", x, by_neuron, x), by_neuron),
        "products": (
            lambda x: ((x @ products.view(n, m * n)).view(-1, m, n) @ x[:, :, None])[:, :, 0],
            products,
        ),
        "by hand": (lambda x: ByHand.apply(x, by_input), by_input),
        "monomials": (lambda x: nn.functional.linear(x[:, rows] * x[:, columns], weights), weights),
        "nn.Bilinear": (lambda x: bilinear(x, x), bilinear.weight),
    }


def matrix(name: str, gradient: Tensor, n: int, m: int) -> Tensor:
    """The gradient of a rival's parameter as symmetric matrices of shape (m, n, n)."""
    if name == "monomials":
        rows, columns = torch.triu_indices(n, n).unbind()
        full = gradient.new_zeros(m, n, n)
        full[:, rows, columns] = gradient
    else:
        axes = {"by hand": (2, 0, 1), "products": (1, 0, 2)}.get(name, (0, 1, 2))
        full = gradient.permute(axes)
    return (full + full.transpose(1, 2)) / 2
