"""Layers of neurons as modules: `Quadratic`, `Reduced`, and `Linear` in the same letters."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from quadric.checks import check_choice, check_integer
from quadric.initial_values import INITIAL_VALUES, glorot_variances
from quadric.torch import functional, layout
from quadric.torch.sharding import first_rank_has, is_sharded, reordered, shard_like

__all__ = ["Linear", "Quadratic", "Reduced"]


class _Layer(nn.Module):
    """What the three kinds share: sizes, and the core's initial values by name."""

    kind: str
    in_features: int
    out_features: int

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.in_features = check_integer("in_features", in_features, at_least=1)
        self.out_features = check_integer("out_features", out_features, at_least=1)

    def _add(self, name: str, *shape: int, wanted: bool = True, **factory: Any) -> None:
        self.register_parameter(name, Parameter(torch.empty(shape, **factory)) if wanted else None)

    @torch.no_grad()
    def reset_parameters(
        self,
        init: str = "glorot",
        *,
        scale: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Draw new initial values, by the names and rules of `quadric.initial_values`."""
        check_choice("init", init, INITIAL_VALUES)
        for name, parameter in self.named_parameters(recurse=False):
            if init == "normal":
                parameter.normal_(0, 0.005 if scale is None else scale, generator=generator)
            elif init == "identity" and self.kind == "quadratic":
                parameter.normal_(0, scale, generator=generator) if scale else parameter.zero_()
            else:
                variance = self._variances(init).get(name, 0.0)
                bound = math.sqrt(3 * variance) * (1 if scale is None else scale)
                parameter.uniform_(-bound, bound, generator=generator)
        self._finish(init)

    def _variances(self, init: str) -> dict[str, float]:
        kind = "linear" if init == "relinear" else self.kind
        return glorot_variances(kind, self.in_features, self.out_features)

    def _finish(self, init: str) -> None:
        """What is special to a kind of layer."""

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


class Linear(_Layer):
    """z = W x + b: `torch.nn.Linear` in the letters of this library's files."""

    kind = "linear"
    W: Tensor
    b: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features)
        factory = {"device": device, "dtype": dtype}
        self._add("W", out_features, in_features, **factory)
        self._add("b", out_features, wanted=bias, **factory)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.W, self.b)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, bias={self.b is not None}"


class Quadratic(_Layer):
    """z_k = x'Q_k x + w_k'x + b_k, Q_k symmetric (the paper's QNN).

    Parameters
    ----------
    in_features, out_features : int
        n inputs, m neurons.
    bias, linear : bool
        Whether there are b and W.
    device, dtype
        As in `torch.nn.Linear`.
    recompute : bool
        Compute V = Q x again in the backward pass instead of keeping its numbers, at most
        B n m. Up to 128 inputs the CPU keeps none anyway.

    Attributes
    ----------
    packed : Parameter of shape (n(n+1)/2, m)
        The independent entries of all Q_k, in the order of `quadric.torch.layout`; optimisers and
        weight decay act on these. `state_dict` and `load_state_dict` call them ``Q`` and hold them
        as row-major triangles, shape (m, n(n+1)/2): a copy, not a view.
    Q : Tensor of shape (m, n, n)
        The symmetric matrices; a differentiable function of `packed`. Assigning copies.
    W, b : Parameters of shapes (m, n) and (m,), or None

    Examples
    --------
    One neuron, z = x_1 x_2, tells the quadrants apart as XOR does:

    >>> layer = Quadratic(2, 1, bias=False, linear=False)
    >>> layer.Q = torch.tensor([[[0.0, 0.5], [0.5, 0.0]]])
    >>> layer(torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])).T
    tensor([[ 1., -1., -1.,  1.]], grad_fn=<PermuteBackward0>)
    """

    kind = "quadratic"
    packed: Tensor
    W: Tensor | None
    b: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, linear: bool = True,
        device: Any = None, dtype: torch.dtype | None = None, *, recompute: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features)
        factory = {"device": device, "dtype": dtype}
        self._add("packed", in_features * (in_features + 1) // 2, out_features, **factory)
        self._add("W", out_features, in_features, wanted=linear, **factory)
        self._add("b", out_features, wanted=bias, **factory)
        self.recompute = recompute
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return functional.quadratic(x, self.packed, self.W, self.b, recompute=self.recompute)

    @property
    def Q(self) -> Tensor:
        if is_sharded(self.packed):
            raise RuntimeError(
                "Q of a sharded layer is not all here: call unshard() on the module that was "
                "given to fully_shard first, and reshard() afterwards."
            )
        return layout.unpack(self.packed)

    @Q.setter
    def Q(self, value: Tensor) -> None:
        n, m = self.in_features, self.out_features
        if tuple(value.shape) != (m, n, n):
            raise ValueError(f"Q must have shape {(m, n, n)}. Got {tuple(value.shape)} instead.")
        with torch.no_grad():
            rows, columns = torch.triu_indices(n, n, device=value.device).unbind()
            triangle = (value[:, rows, columns] + value[:, columns, rows]) / 2
            self.packed.copy_(shard_like(self.packed, layout.pack(triangle)))

    def _variances(self, init: str) -> dict[str, float]:
        variances = super()._variances(init)
        if "Q" in variances:  # without W, Q supplies W's half as well
            variances["packed"] = variances.pop("Q") * (1 if self.W is not None else 2)
        return variances

    def _finish(self, init: str) -> None:
        if init == "identity":
            self.packed.copy_(self._diagonal_and_rest(1, 0))
        if init == "normal":  # as (Q + Q')/2 of independent numbers
            self.packed.mul_(self._diagonal_and_rest(1, math.sqrt(0.5)))

    def _diagonal_and_rest(self, diagonal: float, rest: float) -> Tensor:
        """A tensor like `packed` of one number on the diagonal of Q and another beside it."""
        rows, m = self.packed.shape
        column = torch.full((rows,), rest, device=self.packed.device, dtype=self.packed.dtype)
        column[layout.diagonal(self.in_features).to(column.device)] = diagonal
        return shard_like(self.packed, column[:, None].expand(-1, m))

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        packed = destination.pop(f"{prefix}packed")
        destination[f"{prefix}Q"] = reordered(packed, layout.to_triangle)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        key, own = f"{prefix}Q", f"{prefix}packed"
        mine = {k: v for k, v in state_dict.items() if k.startswith(prefix) and k not in (key, own)}
        # not a name of ours outside memory, but set_model_state_dict adds the parameter itself
        if own in state_dict and state_dict[own] is not self.packed:
            unexpected_keys.append(own)
        triangle, shape = state_dict.get(key), (self.out_features, self.packed.shape[0])
        fits = triangle is not None and tuple(triangle.shape) == shape
        if triangle is not None and not fits:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {tuple(triangle.shape)} from "
                f"checkpoint, the shape in current model is {shape}."
            )
            mine[own] = self.packed
        if is_sharded(self.packed) and not is_sharded(triangle):
            # a whole Q is taken from rank 0: set_model_state_dict may leave the others without
            if first_rank_has(self.packed, fits):
                whole = triangle if fits else torch.empty(shape)
                mine[own] = shard_like(self.packed, layout.pack(whole.to(self.packed.dtype)))
        elif fits:
            mine[own] = reordered(triangle, layout.pack)
        missing: list[str] = []
        super()._load_from_state_dict(
            mine, prefix, local_metadata, strict, missing, unexpected_keys, error_msgs
        )
        missing_keys.extend(key if name == own else name for name in missing)

    def _fqn_modifiers(self) -> dict[str, str]:
        """Where torch.distributed.checkpoint looks for the Q of a state_dict: computing none."""
        return {"Q": "__class__"}

    def extra_repr(self) -> str:
        options = f"bias={self.b is not None}, linear={self.W is not None}"
        recompute = ", recompute=True" if self.recompute else ""
        return f"{super().extra_repr()}, {options}{recompute}"


class Reduced(_Layer):
    """z = (W x + b)(U x + c), elementwise (the paper's RPQNN): 2n + 2 parameters a neuron.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
        Whether there are b and c.
    device, dtype
        As in `torch.nn.Linear`.
    """

    kind = "reduced"
    W: Tensor
    b: Tensor | None
    U: Tensor
    c: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features)
        factory = {"device": device, "dtype": dtype}
        for weights, biases in ("Wb", "Uc"):
            self._add(weights, out_features, in_features, **factory)
            self._add(biases, out_features, wanted=bias, **factory)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return functional.reduced(x, self.W, self.b, self.U, self.c)

    def _finish(self, init: str) -> None:
        if init == "relinear":
            if self.c is None:
                raise ValueError("init 'relinear' needs c = 1: make the layer with bias=True.")
            self.c.fill_(1)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, bias={self.b is not None}"
