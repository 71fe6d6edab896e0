"""The three kinds of layers as modules: `Linear`, `Quadratic` and `Reduced`."""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.nn.utils import parametrize

from quadric.checks import check_choice, check_integer
from quadric.core import INITIAL_VALUES, LAYERS, glorot_variances
from quadric.torch import functional

QUADRATIC_PART = 1 / 1024  # of the variance of z, with the initial values 'deep'


class _Layer(nn.Module):
    """Sizes, parameters and initial values, common to the three kinds."""

    kind: ClassVar[str]
    names: ClassVar[tuple[str, ...]]  # of the parameters, in the order of state_dict
    W: Tensor | None
    b: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self._build(in_features, out_features, () if bias else ("b", "c"), device, dtype)

    def _build(self, n: int, m: int, absent: tuple[str, ...], device: Any, dtype: Any) -> None:
        """Register the parameters, those in `absent` as None, and draw initial values."""
        self.in_features = check_integer("in_features", n, at_least=1)
        self.out_features = check_integer("out_features", m, at_least=1)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"dtype must be a real floating-point dtype. Got {dtype} instead.")
        shapes = self._shapes(n, m)
        for name in self.names:
            empty = torch.empty(shapes[name], device=device, dtype=dtype)
            self.register_parameter(name, None if name in absent else Parameter(empty))
        self.reset_parameters()

    def _shapes(self, n: int, m: int) -> dict[str, tuple[int, ...]]:
        return LAYERS[self.kind].shapes(n, m)

    @torch.no_grad()
    def reset_parameters(
        self,
        init: str = "deep",
        *,
        scale: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Draw new initial values; all except 'deep' follow the rules of `quadric.Network.create`.

        Parameters
        ----------
        init : {'deep', 'glorot', 'relinear', 'normal', 'identity'}, default='deep'
            'deep' preserves the variance of the input, also through many layers: the quadratic
            part contributes 1/1024 of it. With 'glorot', it contributes one half, and deep networks
            without normalization overflow. 'relinear' makes the layer start out linear. 'normal'
            draws every parameter from N(0, scale^2). 'identity' starts with Q = I.
        scale : float, default=None
            For 'normal', the standard deviation of all parameters (0.005 if None). For 'identity',
            the standard deviation of W and b (0 if None). For the others, a factor that multiplies
            the weights.
        generator : torch.Generator, default=None
            The source of random numbers. If None, torch's global generator is used.
        """
        check_choice("init", init, ("deep", *INITIAL_VALUES))
        for name in self.names:
            parameter = getattr(self, name)
            if parameter is None:
                continue
            if init == "normal":
                parameter.normal_(0, 0.005 if scale is None else scale, generator=generator)
            elif init == "identity" and self.kind == "quadratic":
                parameter.normal_(0, scale, generator=generator) if scale else parameter.zero_()
            else:
                bound = math.sqrt(3 * self._variances(init).get(name, 0.0))
                bound *= 1 if scale is None else scale
                parameter.uniform_(-bound, bound, generator=generator)
        self._finish(init)

    def _variances(self, init: str) -> dict[str, float]:
        """Return the variances of the weights; those of absent names are 0."""
        kind = "linear" if init == "relinear" else self.kind
        return glorot_variances(kind, self.in_features, self.out_features)

    def _finish(self, init: str) -> None:
        """Adjust the initial values if a kind of layer needs special values."""

    def _current_parameters(self) -> list[Any]:
        """Return the parameters in the order of `names`.

        Reading the dictionary is faster than reading attributes of a module. A parametrized or
        pruned parameter is not in the dictionary, but is an attribute.
        """
        own = self._parameters
        try:
            return [own[name] for name in self.names]
        except KeyError:
            return [getattr(self, name) for name in self.names]

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.b is not None}"
        )


class Linear(_Layer):
    """z = W x + b: `torch.nn.Linear` with this library's parameter names.

    Parameters
    ----------
    in_features, out_features, bias, device, dtype : as in `torch.nn.Linear`
        Number n of inputs, number m of neurons, and options.

    Attributes
    ----------
    W, b : Parameters of shapes (m, n) and (m,)
        Without bias, b is None.
    """

    kind = "linear"
    names = ("W", "b")
    W: Tensor

    def forward(self, input: Tensor) -> Tensor:
        """Return z, shape (..., m), for an input x of shape (..., n)."""
        return nn.functional.linear(input, self.W, self.b)


class Quadratic(_Layer):
    """z_k = x'Q_k x + w_k'x + b_k, Q_k symmetric (the paper's QNN).

    Parameters
    ----------
    in_features, out_features : int
        Number n of inputs and number m of neurons.
    bias, linear : bool, default=True
        Whether the layer has b and W.
    device, dtype : as in `torch.nn.Linear`
        The device and dtype of the parameters.

    Attributes
    ----------
    packed : Parameter of shape (n(n+1)/2, m)
        The independent entries q_ij, i <= j, of all Q_k, row by row: (1,1), (1,2), ..., (1,n),
        (2,2), ... Optimizers and weight decay act on these entries.
    Q : Tensor of shape (m, n, n)
        The symmetric matrices, a differentiable function of `packed`. Assignment copies the values.
        ``layer.Q[0] = 0`` changes only a copy: assign a whole tensor.
    W, b : Parameters of shapes (m, n) and (m,), or None

    Examples
    --------
    One neuron, z = x_1 x_2, separates the classes of XOR:

    >>> layer = Quadratic(2, 1, bias=False, linear=False)
    >>> layer.Q = torch.tensor([[[0.0, 0.5], [0.5, 0.0]]])
    >>> layer(torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])).T
    tensor([[ 1., -1., -1.,  1.]], grad_fn=<PermuteBackward0>)
    """

    kind = "quadratic"
    names = ("packed", "W", "b")
    packed: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        linear: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.Module.__init__(self)
        absent = (() if bias else ("b",)) + (() if linear else ("W",))
        self._build(in_features, out_features, absent, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return z, shape (..., m), for an input x of shape (..., n)."""
        return functional.quadratic(input, *self._current_parameters())

    @property
    def Q(self) -> Tensor:
        """The symmetric matrices, shape (m, n, n)."""
        if is_sharded(self.packed):
            raise RuntimeError(
                "Q of a sharded layer is not available, because no process holds all of it: call "
                "unshard() on the module that was passed to fully_shard first, and reshard() "
                "afterward."
            )
        return functional.unpack(self.packed)

    @Q.setter
    @torch.no_grad()
    def Q(self, value: Tensor) -> None:
        n, m = self.in_features, self.out_features
        if tuple(value.shape) != (m, n, n):
            raise ValueError(f"Q must have shape {(m, n, n)}. Got {tuple(value.shape)} instead.")
        packed = functional.pack(value)
        own = self._parameters.get("packed")
        if own is not None:
            own.copy_(_shard_like(own, packed))
            return
        packed = packed.to(self.packed)
        if parametrize.is_parametrized(self, "packed"):
            self.packed = packed  # raises an error if the parametrization cannot be inverted
        elif "packed_orig" in self._parameters and hasattr(self, "packed_mask"):  # pruned
            self.get_parameter("packed_orig").copy_(packed)
            mask: Any = self.packed_mask
            self.packed = packed * mask
        if not torch.allclose(self.packed, packed, rtol=1e-4, atol=1e-6):
            raise ValueError(
                "Q cannot be assigned: packed is pruned or computed from other parameters, and "
                "cannot have these values. Make it an ordinary parameter first, with "
                "torch.nn.utils.prune.remove(layer, 'packed') or "
                "torch.nn.utils.parametrize.remove_parametrizations(layer, 'packed')."
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "Q":  # torch would register a Parameter under this name
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def _variances(self, init: str) -> dict[str, float]:
        variances = super()._variances(init)
        if "Q" in variances:  # without W, Q also supplies W's half of the variance
            variances["packed"] = variances.pop("Q") * (1 if self.W is not None else 2)
        if init == "deep" and self.W is not None:
            variances["W"] *= 2 * (1 - QUADRATIC_PART)
            variances["packed"] *= 2 * QUADRATIC_PART
        return variances

    def _finish(self, init: str) -> None:
        if init == "identity":
            self.packed.copy_(self._with_diagonal(1, rest=0))
        if init == "normal":  # distributed like (Q + Q')/2 for independent entries
            self.packed.mul_(self._with_diagonal(1, rest=math.sqrt(0.5)))

    def _with_diagonal(self, diagonal: float, *, rest: float) -> Tensor:
        """Return a tensor like `packed`, with different values on and off the diagonal of Q."""
        n, device = self.in_features, self.packed.device
        i, j = torch.triu_indices(n, n, device=device)
        column = torch.full(i.shape, rest, device=device, dtype=self.packed.dtype)
        column.masked_fill_(i == j, diagonal)
        return _shard_like(self.packed, column[:, None].expand(-1, self.out_features))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, linear={self.W is not None}"


class Reduced(_Layer):
    """z = (W x + b)(U x + c), elementwise (the paper's RPQNN): 2n + 2 parameters per neuron.

    Parameters
    ----------
    in_features, out_features : int
        Number n of inputs and number m of neurons.
    bias : bool, default=True
        Whether the layer has b and c.
    device, dtype : as in `torch.nn.Linear`
        The device and dtype of the parameters.

    Attributes
    ----------
    W, U : Parameters of shape (m, n)
    b, c : Parameters of shape (m,), or None

    Examples
    --------
    >>> Reduced(3, 2)(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    kind = "reduced"
    names = ("W", "b", "U", "c")
    W: Tensor
    U: Tensor
    c: Tensor | None

    def forward(self, input: Tensor) -> Tensor:
        """Return z, shape (..., m), for an input x of shape (..., n)."""
        return functional.reduced(input, *self._current_parameters())

    def _variances(self, init: str) -> dict[str, float]:
        if init != "deep" or self.c is None:
            return super()._variances(init)
        # z = W x (U x + 1), where U x has the variance QUADRATIC_PART
        return {
            "W": (1 - QUADRATIC_PART) / self.in_features,
            "U": QUADRATIC_PART / self.in_features,
        }

    def _finish(self, init: str) -> None:
        if init == "deep" and self.c is not None:
            self.c.fill_(1)
        if init == "relinear":
            if self.c is None:
                raise ValueError("init='relinear' needs c = 1: create the layer with bias=True.")
            self.c.fill_(1)


MODULES: dict[str, Any] = {module.kind: module for module in (Linear, Quadratic, Reduced)}


def is_sharded(tensor: Any) -> bool:
    """Whether a tensor is a DTensor, like the parameters under `fully_shard` (FSDP2).

    The class itself is not imported, because that would load torch.distributed.
    """
    return hasattr(tensor, "full_tensor")


def _shard_like(parameter: Any, whole: Tensor) -> Tensor:
    """Return `whole`, sharded like the parameter; all processes use the values of rank 0."""
    if not is_sharded(parameter):
        return whole
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole.detach(), parameter.device_mesh, parameter.placements)
