"""Layers of neurons as modules: `Quadratic`, `Reduced`, and `Linear` in the same letters."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from quadric._utils.checks import check_choice, check_integer
from quadric.core._initial_values import INITIAL_VALUES, glorot_variances
from quadric.torch import functional
from quadric.torch._module_checks import is_sharded, shard_like
from quadric.torch._quadratic_form import diagonal as diagonal_rows


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
        """Draw new initial values, by the names and rules of `quadric.core._initial_values`."""
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

    Attributes
    ----------
    packed : Parameter of shape (n(n+1)/2, m)
        The independent entries q_ij, i <= j, of all Q_k, row by row: (1,1), (1,2), ..., (1,n),
        (2,2), ... Optimisers and weight decay act on these.
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
        device: Any = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features)
        factory = {"device": device, "dtype": dtype}
        self._add("packed", in_features * (in_features + 1) // 2, out_features, **factory)
        self._add("W", out_features, in_features, wanted=linear, **factory)
        self._add("b", out_features, wanted=bias, **factory)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return functional.quadratic(x, self.packed, self.W, self.b)

    @property
    def Q(self) -> Tensor:
        if is_sharded(self.packed):
            raise RuntimeError(
                "Q of a sharded layer is not all here: call unshard() on the module that was "
                "given to fully_shard first, and reshard() afterwards."
            )
        return functional.unpack(self.packed)

    @Q.setter
    def Q(self, value: Tensor) -> None:
        n, m = self.in_features, self.out_features
        if tuple(value.shape) != (m, n, n):
            raise ValueError(f"Q must have shape {(m, n, n)}. Got {tuple(value.shape)} instead.")
        with torch.no_grad():
            self.packed.copy_(shard_like(self.packed, functional.pack(value)))

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
        column[diagonal_rows(self.in_features).to(column.device)] = diagonal
        return shard_like(self.packed, column[:, None].expand(-1, m))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, bias={self.b is not None}, linear={self.W is not None}"


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
