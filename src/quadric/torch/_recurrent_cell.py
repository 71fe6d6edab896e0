"""One step of a recurrent layer of quadratic neurons: `QuadraticRNNCell`."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from quadric.checks import check_choice, check_flag, check_integer
from quadric.torch._layers import Quadratic
from quadric.torch.functional import overridable

NONLINEARITIES = {"tanh": torch.tanh, "relu": torch.relu}

INPUT_VARIANCE = 1e-4  # variance of W_x x in one step, for inputs of unit variance


class QuadraticRNNCell(nn.Module):
    """h'_k = g(u'Q_k u + w_k'u + b_k), u = [x, h]: `torch.nn.RNNCell` with quadratic neurons.

    Parameters
    ----------
    input_size, hidden_size : int
        Number n of inputs and number m of neurons, the size of the state h.
    bias : bool, default=True
        Whether the neurons have biases b.
    nonlinearity : {'tanh', 'relu'}, default='tanh'
        The activation g.
    device, dtype : as in `torch.nn.RNNCell`
        The device and dtype of the parameters.

    Attributes
    ----------
    neurons : Quadratic
        The m neurons, with n + m inputs; their W is [W_x, W_h].

    Notes
    -----
    With the initial values, the state and its gradient persist for hundreds of steps:

    - W_h is orthogonal, and Q and b are 0. Because |g(z)| <= |z| and 0 <= g' <= 1, a step cannot
      increase the norm of a gradient, and it can increase the norm of the state only by the
      contribution of the input. A random Q would multiply the state by a function of the input in
      every step; inputs of constant sign would make it grow exponentially, and products of the
      state with itself would grow even faster. A decay that prevents this would also erase the
      state. Q has a nonzero gradient from the first step.
    - W_x is normal with variance 0.0001/n, so that inputs of unit variance add about 0.01 to each
      neuron in a step. tanh then stays where its slope is close to 1: states settle at about 0.1,
      and after 500 steps a few percent of a gradient remain.
    - For 'relu', W_h is the identity. A rotation would make half of a non-negative state negative
      in every step, and that half would be lost.

    Within a few steps, training can change the parameters so much that this no longer holds. The
    more neurons there are, the smaller the learning rate must be. In the task of
    examples/torch_parity.py, suitable learning rates for Adam are 0.01 for up to 8 neurons and
    0.003 for 16 or 32.

    Examples
    --------
    >>> cell = QuadraticRNNCell(3, 5)
    >>> h = cell(torch.randn(2, 3))
    >>> cell(torch.randn(2, 3), h).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        n = self.input_size = check_integer("input_size", input_size, at_least=1)
        m = self.hidden_size = check_integer("hidden_size", hidden_size, at_least=1)
        self.bias = check_flag("bias", bias)
        self.nonlinearity = check_choice("nonlinearity", nonlinearity, NONLINEARITIES)
        self.neurons = Quadratic(n + m, m, bias=self.bias, device=device, dtype=dtype)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new initial values, as described in the Notes.

        Parameters
        ----------
        generator : torch.Generator, default=None
            The source of random numbers. If None, torch's global generator is used.
        """
        n, m, neurons = self.input_size, self.hidden_size, self.neurons
        assert neurons.W is not None
        neurons.packed.zero_()
        neurons.W[:, :n].normal_(0, math.sqrt(INPUT_VARIANCE / n), generator=generator)
        # torch cannot draw orthogonal matrices in half precision
        dtype = torch.promote_types(neurons.W.dtype, torch.float32)
        W_h = torch.empty(m, m, dtype=dtype, device=neurons.W.device)
        if self.nonlinearity == "relu":
            nn.init.eye_(W_h)
        else:
            nn.init.orthogonal_(W_h, generator=generator)
        neurons.W[:, n:] = W_h
        if neurons.b is not None:
            neurons.b.zero_()

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state.

        Parameters
        ----------
        input : Tensor of shape (n,) or (B, n)
            The input x.
        hx : Tensor of shape (m,) or (B, m), default=None
            The state h; zeros if None.

        Returns
        -------
        Tensor of shape (m,) or (B, m)
            The next state.
        """
        h = _first_state(input, hx, self.input_size, self.hidden_size)
        return NONLINEARITIES[self.nonlinearity](self.neurons(torch.cat([input, h], dim=-1)))

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, nonlinearity={self.nonlinearity!r}"


@overridable
def _first_state(input: Tensor, hx: Tensor | None, n: int, m: int) -> Tensor:
    """Return the state of a cell, or zeros, after checking it and the input."""
    if input.ndim not in (1, 2):
        raise ValueError(f"input must have 1 or 2 dimensions. Got shape {tuple(input.shape)}.")
    check_features(input, n)
    shape = (*input.shape[:-1], m)
    if hx is None:
        return input.new_zeros(shape)
    if hx.ndim not in (1, 2):
        raise ValueError(f"hx must have 1 or 2 dimensions. Got shape {tuple(hx.shape)}.")
    check_state(hx, shape, input)
    return hx


def check_features(x: Tensor, n: int) -> None:
    if x.shape[-1] != n:
        raise RuntimeError(
            f"input must have input_size = {n} features in its last dimension. "
            f"Got shape {tuple(x.shape)} instead."
        )


def check_state(hx: Tensor, shape: tuple[int, ...], x: Tensor) -> None:
    if tuple(hx.shape) != shape:
        raise RuntimeError(f"hx must have shape {shape}. Got {tuple(hx.shape)} instead.")
    if hx.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
        raise RuntimeError(
            f"hx must have the dtype of the input, {x.dtype}. Got {hx.dtype}: "
            f"convert it with hx.to({x.dtype})."
        )
