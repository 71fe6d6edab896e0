"""z_k = x'Q_k x for a batch, forwards and backwards, in half the multiplications.

Q is cut into blocks (see `layout`), and z is the sum of what their rectangles and triangles give.

A rectangle R joins the inputs x_I of its block with the inputs x_J to the right of it, and counts
twice: ``V = x_J R``, ``z = 2 x_I'V``. V is kept, and gives ``dx_I = 2 V'dz`` for next to nothing.
The rest of the backward pass is that of a linear layer: with ``D = 2 x_I dz``, ``dx_J = D R'`` and
``dR = x_J'D``. All in all three products over half of Q.

A triangle T, on the diagonal, has three forms (`choice` says which is taken where):

- "compiled": loops over T as it stands, which keep nothing and make nothing;
- "unpacked": a full symmetric block, two products over all of it;
- "monomials": T as it stands times x_i x_j, three products over half the block.

The last two are made of operations that torch itself can differentiate and batch, on any device:
second derivatives, vmap and compilers take these. There is no forward mode. Only where nothing of
that kind is going on, dL/dQ is written into place piece by piece.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from quadric.torch import compiled, monomials, unpacked
from quadric.torch.choice import COMPILED, MONOMIALS, UNPACKED, choose
from quadric.torch.gradient import Gradient
from quadric.torch.layout import BLOCK, Block, Places, blocks, places
from quadric.torch.plain import is_plain, is_tracing, is_watched
from quadric.torch.unpacked import rows_by

__all__ = ["quadratic_form"]


def quadratic_form(
    x: Tensor, P: Tensor, *, form: str | None = None, recompute: bool = False
) -> Tensor:
    """x'Q_k x, shape (B, m), for x of shape (B, n) and Q packed as P, shape (n(n+1)/2, m).

    `form` is that of the triangles: by default, and where the compiled one is not possible, it is
    chosen. With `recompute`, V is computed again in the backward pass instead of being kept for it.
    """
    plain = is_plain(x, P)
    if form is None or (form == COMPILED and not (plain and compiled.can_take(x, P))):
        form = _choose(x, P, plain)
    if not torch.is_grad_enabled() or is_tracing():  # torch.jit.trace cannot keep a Function
        return _forward(x, P, form, keep=False)[0]
    z: Tensor
    if plain:
        z = _Direct.apply(x, P, form, not recompute)  # type: ignore[no-untyped-call]
    else:
        z = _Transformable.apply(x, P, form, not recompute)[0]  # type: ignore[no-untyped-call]
    return z


class _Direct(Function):
    """For plain tensors: V is saved, and recomputed where the backward pass is differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, P: Tensor, form: str, keep: bool) -> Tensor:
        z, Vs = _forward(x, P, form, keep)
        ctx.save_for_backward(x, P, *Vs)
        ctx.form = form
        return z

    @staticmethod
    def backward(ctx: Any, dz: Tensor) -> tuple[Any, ...]:
        x, P, *Vs = ctx.saved_tensors
        form = ctx.form
        if torch.is_grad_enabled() or (form == COMPILED and not is_plain(x, P, dz, *Vs)):
            Vs = []  # not those of another form either
            form = _choose(x, P, False) if form == COMPILED else form
        none = (None,) * len(Vs)
        return *_backward(x, P, Vs, dz, none, form, *ctx.needs_input_grad[:2]), None, None


class _Transformable(Function):
    """For torch.func, compilers and exporters: V is an output, so that it can be saved there too.

    It is a differentiable one: its gradient dV comes with second derivatives.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, P: Tensor, form: str, keep: bool) -> tuple[Tensor, ...]:
        z, Vs = _forward(x, P, form, keep)
        return z, *Vs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, P, ctx.form, _ = inputs
        ctx.save_for_backward(x, P, *output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, dz: Tensor | None, *dVs: Tensor | None) -> tuple[Any, ...]:
        x, P, *Vs = ctx.saved_tensors
        if dz is None:
            dz = x.new_zeros(x.shape[0], P.shape[1])
        return *_backward(x, P, Vs, dz, dVs, ctx.form, *ctx.needs_input_grad[:2]), None, None


def _choose(x: Tensor, P: Tensor, plain: bool) -> str:
    # Under a dispatch mode the form must save the same tensors as without it: a checkpoint may
    # meet the mode in only one of its two passes. Monomials save what the compiled form does.
    possible = (plain or is_watched()) and compiled.can_take(x, P)
    form = choose(x.shape[0], min(x.shape[1], BLOCK), P.shape[1], x.dtype, compiled=possible)
    return MONOMIALS if form == COMPILED and not plain else form


def _forward(x: Tensor, P: Tensor, form: str, keep: bool) -> tuple[Tensor, list[Tensor]]:
    m = P.shape[1]
    z, Vs = None, []
    for block in blocks(x.shape[1]):
        x_I, x_J, T, R = _operands(x, P, block)
        at = places(block.size, m, form, x.device, x.dtype)
        if form == UNPACKED:
            V = unpacked.product(x_I, T, at)
            Vs += [V] * keep
            z = _sum(z, unpacked.forward(x_I, V, at))
        elif form == MONOMIALS:
            z = _sum(z, monomials.of(x_I, at).t() @ T)
        else:
            z = _sum(z, compiled.forward(x_I, T))
        if x_J is not None:
            V = x_J @ R
            Vs += [V] * keep
            z = _sum(z, 2 * rows_by(x_I, _by_input(V, at)))
    assert z is not None
    return z, Vs


def _backward(
    x: Tensor,
    P: Tensor,
    Vs: list[Tensor],
    dz: Tensor,
    dVs: tuple[Tensor | None, ...],
    form: str,
    wants_dx: bool,
    wants_dP: bool,
) -> tuple[Tensor | None, Tensor | None]:
    """dL/dx and dL/dP, where they are wanted, from dL/dz and, in second derivatives, the dL/dV."""
    n, m = x.shape[1], P.shape[1]
    kept, nothing = zip(Vs, dVs, strict=True), (None, None)
    in_place = form == COMPILED or (
        n > BLOCK and not torch.is_grad_enabled() and is_plain(x, P, dz, *Vs, *dVs)
    )
    dP = Gradient(P, wants_dP and in_place)
    dz_2 = dz if form == COMPILED and n <= BLOCK else 2 * dz  # which that form does not need
    dx: list[Any] = []
    dx_J = None  # what the blocks so far give to those on their right
    for block in blocks(n):
        x_I, x_J, T, R = _operands(x, P, block)
        at = places(block.size, m, form, x.device, x.dtype)
        dx_I = None
        if dx_J is not None:
            dx_I, dx_J = dx_J.split_with_sizes([block.size, n - block.last], 1)
        if form == UNPACKED:
            V, dV = next(kept, nothing)
            if wants_dP:
                dP.put(block.triangle, unpacked.backward_T(x_I, dz_2, dV, at))
            if wants_dx:
                V = unpacked.product(x_I, T, at) if V is None else V
                dx_I = _sum(dx_I, unpacked.backward_x(T, V, dz_2, dV, at))
        elif form == MONOMIALS:
            if wants_dx:
                dx_I = _sum(dx_I, monomials.backward_x(x_I, T, dz_2, at))
            if wants_dP:
                dP.put_product(block.triangle, monomials.of(x_I, at), dz)
        else:
            if wants_dx:
                dx_I = _sum(dx_I, compiled.backward_x(x_I, T, dz))
            if wants_dP:
                compiled.backward_T(x_I, dz, dP.rows(block.triangle))
        if x_J is not None:
            V, dV = next(kept, nothing)
            D = (x_I[:, :, None] * dz_2[:, None, :]).reshape(x.shape[0], block.size * m)
            D = D if dV is None else D + dV
            if wants_dx:
                V = _by_input(x_J @ R if V is None else V, at)
                dx_I = _sum(dx_I, rows_by(dz_2, V.transpose(1, 2)))
                dx_J = D @ R.t() if dx_J is None else torch.addmm(dx_J, D, R.t())
            if wants_dP:
                dP.put_product(block.rectangle, x_J.t(), D)
        dx.append(dx_I)
    return (
        (dx[0] if len(dx) == 1 else torch.cat(dx, dim=1)) if wants_dx else None,
        dP.whole() if wants_dP else None,
    )


def _operands(x: Tensor, P: Tensor, block: Block) -> tuple[Tensor, Any, Tensor, Any]:
    """The inputs of the block and those to the right of it; the triangle and the rectangle."""
    n = x.shape[1]
    if block.size == n:
        return x, None, P, None
    x_I, T = x[:, block.first : block.last], P[block.triangle]
    if block.last == n:
        return x_I, None, T, None
    R = P[block.rectangle].reshape(n - block.last, block.size * P.shape[1])
    return x_I, x[:, block.last :], T, R


def _sum(total: Tensor | None, term: Tensor) -> Tensor:
    return term if total is None else total + term


def _by_input(V: Tensor, at: Places) -> Tensor:
    """The V of a rectangle, shape (B, k, m)."""
    return V.reshape(V.shape[0], at.size, at.neurons)
