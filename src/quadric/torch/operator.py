"""z_k = x'Q_k x for a batch, forwards and backwards, in half the multiplications.

Q is cut into blocks (see `layout`), and z is the sum of what their rectangles and triangles give.

A rectangle R joins the inputs x_I of its block with the inputs x_J to the right of it, and counts
twice: ``V = x_J R``, ``z = 2 x_I'V``. V is kept, and gives ``dx_I = 2 V'dz`` for next to nothing.
The rest of the backward pass is that of a linear layer: with ``D = 2 x_I dz``, ``dx_J = D R'`` and
``dR = x_J'D``. All in all three products over half of Q.

A triangle T, on the diagonal, has three forms (`choice` says which is taken where):

- "compiled": loops over T as it is, which keep nothing and make nothing (`compiled`). For plain
  tensors in main memory.
- "unpacked", as a full symmetric block S: ``V = x_I S``, ``z = x_I'V``, ``dx_I = 2 V'dz``. Two
  products over the whole block.
- "monomials": x_i x_j, i <= j, times the entries of T as they are. Three products over half the
  block, and work beside them that does not grow with the number of neurons.

The last two are made of operations that torch itself can differentiate and batch, on any device:
second derivatives, vmap and compilers take these. There is no forward mode. Only where nothing of
that kind is going on, dL/dQ is written into place piece by piece.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.nn import Parameter

from quadric.torch import compiled
from quadric.torch.choice import COMPILED, MONOMIALS, UNPACKED, choose
from quadric.torch.layout import BLOCK, Block, Places, blocks, places

__all__ = ["quadratic_form"]

# Until it has once seen a large block freed, glibc returns the memory of every large tensor to the
# system and fetches it back, page by page, for the next: a tenth of a large layer's time. A block
# just below its limit of 32 MB, never touched, teaches it to keep what it has.
torch.empty(2**25 - 2**16, dtype=torch.uint8)

ROWS_AT_ONCE = 16


def quadratic_form(
    x: Tensor, P: Tensor, *, form: str | None = None, recompute: bool = False
) -> Tensor:
    """x'Q_k x, shape (B, m), for x of shape (B, n) and Q packed as P, shape (n(n+1)/2, m).

    `form` is that of the triangles: by default, and where the compiled one is not possible, it is
    chosen. With `recompute`, V is computed again in the backward pass instead of being kept for it.
    """
    plain = _plain(x, P)
    possible = plain and compiled.can_take(x, P)
    if form is None or (form == COMPILED and not possible):
        form = _choose(x, P, possible)
    if not torch.is_grad_enabled() or _is_tracing():  # torch.jit.trace cannot keep a Function
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
        if torch.is_grad_enabled() or (form == COMPILED and not _plain(dz)):
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


def _choose(x: Tensor, P: Tensor, possible: bool) -> str:
    B, n = x.shape
    return choose(B, min(n, BLOCK), P.shape[1], x.dtype, compiled=possible)


def _forward(x: Tensor, P: Tensor, form: str, keep: bool) -> tuple[Tensor, list[Tensor]]:
    m = P.shape[1]
    z, Vs = None, []
    for block in blocks(x.shape[1]):
        x_I, x_J, T, R = _operands(x, P, block)
        at = places(block.size, m, form, x.device, x.dtype)
        if form == UNPACKED:
            V = x_I @ _symmetric(T, at)
            Vs += [V] * keep
            z = _sum(z, _rows_by(x_I, _by_neuron(V, at).transpose(1, 2)))
        elif form == MONOMIALS:
            z = _sum(z, _monomials(x_I, at).t() @ T)
        else:
            z = _sum(z, compiled.forward(x_I, T))
        if x_J is not None:
            V = x_J @ R
            Vs += [V] * keep
            z = _sum(z, 2 * _rows_by(x_I, _by_input(V, at)))
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
        n > BLOCK and not torch.is_grad_enabled() and _plain(x, P, dz, *Vs, *dVs)
    )
    dP = _Gradient(P, wants_dP and in_place)
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
                dP.put(block.triangle, _triangle_gradient(x_I, dz_2, dV, at))
            if wants_dx:
                V = x_I @ _symmetric(T, at) if V is None else V
                dx_I = _sum(dx_I, _rows_by(dz_2, _by_neuron(V, at)))
                dx_I = dx_I if dV is None else dx_I + dV @ _symmetric(T, at).t()
        elif form == MONOMIALS:
            if wants_dx:
                dx_I = _sum(dx_I, _through_monomials(x_I, T @ dz_2.t(), at))
            if wants_dP:
                dP.put_product(block.triangle, _monomials(x_I, at), dz)
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
                dx_I = _sum(dx_I, _rows_by(dz_2, V.transpose(1, 2)))
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


def _rows_by(rows: Tensor, matrices: Tensor) -> Tensor:
    """Each row times a matrix of its own.

    The row stands on the left: the other way round torch takes eight times as long. For small
    matrices its `bmm` has a loop that is slower still, unless they are transposed.
    """
    if matrices.is_contiguous() and matrices.shape[1] * matrices.shape[2] < 400:
        return (rows[:, :, None] * matrices).sum(1)
    return torch.bmm(rows[:, None, :], matrices).squeeze(1)


def _by_neuron(V: Tensor, at: Places) -> Tensor:
    """The V of a triangle, shape (B, m, k)."""
    return V.reshape(V.shape[0], at.neurons, at.size)


def _by_input(V: Tensor, at: Places) -> Tensor:
    """The V of a rectangle, shape (B, k, m)."""
    return V.reshape(V.shape[0], at.size, at.neurons)


def _symmetric(T: Tensor, at: Places) -> Tensor:
    """The symmetric block of triangle T, as a matrix: a row for j, a column for neuron and i."""
    return T.reshape(-1).index_select(0, at.matrix).reshape(at.size, at.neurons * at.size)


def _triangle_gradient(x_I: Tensor, dz_2: Tensor, dV: Tensor | None, at: Places) -> Tensor:
    """dL/dT. ``x_I'D`` is symmetric, so that its triangle is enough; ``x_I'dV`` is not."""
    D = (dz_2[:, :, None] * x_I[:, None, :]).reshape(x_I.shape[0], at.neurons * at.size)
    outer = (x_I.t() @ D).reshape(-1)
    del D  # not to be held while its triangle is taken
    gradient = outer.index_select(0, at.upper)
    if dV is not None:
        outer = (x_I.t() @ dV).reshape(-1)
        gradient = gradient + outer.index_select(0, at.upper) + outer.index_select(0, at.lower)
    return gradient.reshape(-1, at.neurons).mul_(at.share)


def _monomials(x_I: Tensor, at: Places) -> Tensor:
    """x_i^2 and 2 x_i x_j, i < j; a row for each, shape (k(k+1)/2, B)."""
    x = x_I.t().contiguous()
    return torch.cat([x, 2 * x]).index_select(0, at.twice).mul_(x.index_select(0, at.columns))


def _through_monomials(x_I: Tensor, slopes: Tensor, at: Places) -> Tensor:
    """dL/dx_I, where `slopes` are twice the derivatives by x_i x_j, shape (k(k+1)/2, B)."""
    x, dx = x_I.t().contiguous(), []
    for mirrored in at.mirrored.split(ROWS_AT_ONCE):  # so that what is made stays in the cache
        shape = mirrored.shape[0], at.size, x_I.shape[0]
        matrix = slopes.index_select(0, mirrored.reshape(-1)).reshape(shape)
        dx.append((matrix * x).sum(1))
    return (dx[0] if len(dx) == 1 else torch.cat(dx)).t()


class _Gradient:
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


def _plain(*tensors: Tensor | None) -> bool:
    """Whether these are ordinary numbers in memory, and nobody is following what happens to them.

    So no vmap, no forward mode, no tracing, no compiling, no mode that sees every operation.
    """
    if (
        torch.compiler.is_compiling()
        or _is_tracing()
        or torch._C._len_torch_dispatch_stack() > 0
        or forward_ad._current_level >= 0
    ):
        return False
    try:
        return all(
            type(tensor) in (Tensor, Parameter)
            and (tensor.data_ptr() != 0 or tensor.numel() == 0)
            and not tensor.is_neg()  # of numbers that are to be read with the other sign
            for tensor in tensors
            if tensor is not None
        )
    except RuntimeError:  # the tensors of vmap have no address
        return False


def _is_tracing() -> bool:
    return torch._C._get_tracing_state() is not None
