"""One step of a recurrent layer of quadratic neurons, and initial values at which it is stable."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from quadric._utils.checks import check_choice, check_flag, check_integer
from quadric.torch._layers import Quadratic

NONLINEARITIES = {"tanh": torch.tanh, "relu": torch.relu}

INPUT_VARIANCE = 1e-4  # what inputs of unit variance give to a neuron in one step, at first


class QuadraticRNNCell(nn.Module):
    """h'_k = g(u'Q_k u + w_k'u + b_k), u = [x, h]: `torch.nn.RNNCell` of quadratic neurons.

    Parameters
    ----------
    input_size, hidden_size : int
        n numbers in x, m neurons: m numbers in h.
    bias : bool
        Whether there is b.
    nonlinearity : {'tanh', 'relu'}
        g.
    device, dtype
        As in `torch.nn.RNNCell`.

    Attributes
    ----------
    neurons : Quadratic
        The m neurons of n + m inputs; its W is [W_x, W_h].

    Notes
    -----
    The initial values let the state, and its gradient, last for hundreds of steps:

    - W_h is orthogonal, and Q and b are 0. As |g(z)| <= |z| and 0 <= g' <= 1, no step makes the
      state longer but for what the input adds, nor a gradient, whatever the inputs are. A random Q
      would multiply the state by something of the input in every step, which inputs that stay on
      one side turn into exponential growth, and products of the state with itself grow faster
      still; a decay that prevents this forgets. Q has a gradient from the first step on.
    - W_x is normal with variance 0.0001/n: inputs of unit variance add a hundredth to each neuron
      in a step. Then tanh stays where its slope is close to 1: states settle at about 0.1, and
      after 500 steps a few hundredths of a gradient are left.
    - For 'relu', W_h is the identity. A rotation would turn half of a non-negative state into
      negative numbers, and lose it, in every step.

    Training can leave this region within a few steps. The more neurons there are, the smaller its
    steps must be: in examples/torch_parity.py, rates of Adam of 0.01 for up to 8 neurons and 0.003
    for 16 or 32.

    Examples
    --------
    >>> cell = QuadraticRNNCell(3, 5)
    >>> h = cell(torch.randn(2, 3))
    >>> cell(torch.randn(2, 3), h).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Any = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        n = self.input_size = check_integer("input_size", input_size, at_least=1)
        m = self.hidden_size = check_integer("hidden_size", hidden_size, at_least=1)
        self.bias = check_flag("bias", bias)
        self.nonlinearity = check_choice("nonlinearity", nonlinearity, NONLINEARITIES)
        self.neurons = Quadratic(n + m, m, bias=self.bias, device=device, dtype=dtype)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new initial values, those of the Notes."""
        n, m, neurons = self.input_size, self.hidden_size, self.neurons
        assert neurons.W is not None
        neurons.packed.zero_()
        neurons.W[:, :n].normal_(0, math.sqrt(INPUT_VARIANCE / n), generator=generator)
        # torch makes no orthogonal matrices in half precision
        dtype = torch.promote_types(neurons.W.dtype, torch.float32)
        W_h = torch.empty(m, m, dtype=dtype, device=neurons.W.device)
        if self.nonlinearity == "relu":
            nn.init.eye_(W_h)
        else:
            nn.init.orthogonal_(W_h, generator=generator)
        neurons.W[:, n:] = W_h
        if neurons.b is not None:
            neurons.b.zero_()

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        """The next state, shape (m,) or (B, m), from x of shape (n,) or (B, n) and h, or zeros."""
        if x.ndim not in (1, 2):
            raise ValueError(f"input must have 1 or 2 dimensions. Got shape {tuple(x.shape)}.")
        check_features(x, self.input_size)
        shape = (*x.shape[:-1], self.hidden_size)
        if h is None:
            h = x.new_zeros(shape)
        if h.ndim not in (1, 2):
            raise ValueError(f"h must have 1 or 2 dimensions. Got shape {tuple(h.shape)}.")
        check_state("h", h, shape, x)
        z: Tensor = self.neurons(torch.cat([x, h], dim=-1))
        return NONLINEARITIES[self.nonlinearity](z)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, nonlinearity={self.nonlinearity!r}"


def check_features(x: Tensor, n: int) -> None:
    if x.shape[-1] != n:
        raise RuntimeError(
            f"input must have input_size = {n} features in its last dimension. "
            f"Got shape {tuple(x.shape)} instead."
        )


def check_state(name: str, h: Tensor, shape: tuple[int, ...], x: Tensor) -> None:
    if tuple(h.shape) != shape:
        raise RuntimeError(f"{name} must have shape {shape}. Got {tuple(h.shape)} instead.")
    if h.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
        raise RuntimeError(
            f"{name} must have the dtype of the input, {x.dtype}. Got {h.dtype}: "
            f"convert it, {name}.to({x.dtype})."
        )
