"""Recurrent layers of quadratic neurons: `QuadraticRNNCell` (one step), `QuadraticRNN`."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Proxy
from torch.nn.utils.rnn import PackedSequence

from quadric.checks import check_choice, check_flag, check_integer, check_number
from quadric.torch._layers import Quadratic, Reduced
from quadric.torch.functional import overridable

KINDS: dict[str, Any] = {"quadratic": Quadratic, "reduced": Reduced}
NONLINEARITIES = {"tanh": torch.tanh, "relu": torch.relu}

INPUT_VARIANCE = 1e-4  # variance of W_x x in one step, for inputs of unit variance


class QuadraticRNNCell(nn.Module):
    """h'_k = g(u'Q_k u + w_k'u + b_k), u = [x, h]: `torch.nn.RNNCell` with quadratic neurons.

    With ``kind="reduced"``, h' = g((W u + b)(U u + c)).

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
    kind : {'quadratic', 'reduced'}, default='quadratic'
        The kind of the neurons. Reduced neurons have about twice the parameters of
        `torch.nn.RNNCell`, and take about twice its time.

    Attributes
    ----------
    neurons : Quadratic or Reduced
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
        *,
        kind: str = "quadratic",
    ) -> None:
        super().__init__()
        self.kind = check_choice("kind", kind, KINDS)
        n = self.input_size = check_integer("input_size", input_size, at_least=1)
        m = self.hidden_size = check_integer("hidden_size", hidden_size, at_least=1)
        self.bias = check_flag("bias", bias)
        self.nonlinearity = check_choice("nonlinearity", nonlinearity, NONLINEARITIES)
        if kind == "reduced" and not bias:
            raise ValueError("kind='reduced' needs c = 1 at the start: create it with bias=True.")
        self.neurons = KINDS[kind](n + m, m, bias=self.bias, device=device, dtype=dtype)
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
        if self.kind == "quadratic":
            neurons.packed.zero_()
        else:
            neurons.U.zero_()  # with c = 1, the second factor is 1, as in 'relinear'
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
            if self.kind == "reduced":
                neurons.c.fill_(1)

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
        return (
            f"{self.input_size}, {self.hidden_size}, nonlinearity={self.nonlinearity!r}, "
            f"kind={self.kind!r}"
        )


class QuadraticRNN(nn.Module):
    """h_tk = g(u'Q_k u + w_k'u + b_k), u = [x_t, h_(t-1)]: `torch.nn.RNN` with quadratic neurons.

    Parameters
    ----------
    input_size, hidden_size : int
        Number n of inputs and number m of neurons per layer and direction.
    num_layers : int, default=1
        Number of layers. Each one except the first reads the states of the layer before it.
    nonlinearity : {'tanh', 'relu'}, default='tanh'
        The activation g.
    bias : bool, default=True
        Whether the neurons have biases b.
    batch_first : bool, default=False
        Whether batched inputs and outputs have shape (B, T, ...) instead of (T, B, ...). The
        shapes of the states `hx` and `h_n` do not change.
    dropout : float, default=0.0
        The probability that a state is set to zero between two layers during training.
    bidirectional : bool, default=False
        Whether every layer also reads the sequence backward, with separate neurons.
    device, dtype : as in `torch.nn.RNN`
        The device and dtype of the parameters.
    kind : {'quadratic', 'reduced'}, default='quadratic'
        The kind of the neurons, as in `QuadraticRNNCell`.

    Attributes
    ----------
    cells : ModuleList of QuadraticRNNCell
        In the order of `h_n`: layer by layer and, within a layer, forward before backward.

    Examples
    --------
    >>> rnn = QuadraticRNN(3, 5, num_layers=2)
    >>> output, h_n = rnn(torch.randn(7, 4, 3))
    >>> output.shape, h_n.shape
    (torch.Size([7, 4, 5]), torch.Size([2, 4, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        kind: str = "quadratic",
    ) -> None:
        super().__init__()
        self.input_size = check_integer("input_size", input_size, at_least=1)
        self.hidden_size = check_integer("hidden_size", hidden_size, at_least=1)
        self.num_layers = check_integer("num_layers", num_layers, at_least=1)
        self.nonlinearity = check_choice("nonlinearity", nonlinearity, NONLINEARITIES)
        self.bias = check_flag("bias", bias)
        self.batch_first = check_flag("batch_first", batch_first)
        self.dropout = check_number("dropout", dropout, at_least=0)
        self.bidirectional = check_flag("bidirectional", bidirectional)
        if self.dropout > 1:
            raise ValueError(f"dropout must be a number from 0 to 1. Got {dropout!r} instead.")
        if self.dropout and self.num_layers == 1:
            warnings.warn(
                f"dropout={dropout} has no effect with num_layers=1: dropout acts between layers.",
                stacklevel=2,
            )
        m, directions = self.hidden_size, 1 + self.bidirectional
        inputs = [self.input_size] + [m * directions] * (self.num_layers - 1)
        self.cells = nn.ModuleList(
            QuadraticRNNCell(n, m, self.bias, self.nonlinearity, device, dtype, kind=kind)
            for n in inputs
            for _ in range(directions)
        )

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new initial values, as described in `QuadraticRNNCell`.

        Parameters
        ----------
        generator : torch.Generator, default=None
            The source of random numbers. If None, torch's global generator is used.
        """
        for cell in self.cells:
            cell.reset_parameters(generator)  # type: ignore[operator]

    def flatten_parameters(self) -> None:
        """Do nothing; `torch.nn.RNN` has this method, which arranges weights for CUDA."""

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | None = None
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Return the states of the last layer at every step, and of every layer at the last step.

        Parameters
        ----------
        input : Tensor of shape (T, n), (T, B, n) or, with `batch_first`, (B, T, n); or \
                PackedSequence
            The sequences.
        hx : Tensor of shape (L, m) or (L, B, m), default=None
            The initial states, where L is num_layers, or twice that if `bidirectional`; zeros if
            None.

        Returns
        -------
        output : Tensor or PackedSequence
            Like the input, with m features, or 2m if `bidirectional`.
        h_n : Tensor
            The final states, with the shape of hx.
        """
        if isinstance(input, Proxy):
            return _call_in_graph(self, input, hx)
        if isinstance(input, PackedSequence):
            rows, h_n = self._run(input.data, input.batch_sizes.tolist(), hx, input.sorted_indices)
            if input.unsorted_indices is not None:
                h_n = h_n.index_select(1, input.unsorted_indices)
            return input._replace(data=rows), h_n
        x = input
        if x.ndim not in (2, 3):
            raise ValueError(f"input must have 2 or 3 dimensions. Got shape {tuple(x.shape)}.")
        if hx is not None and hx.ndim != x.ndim:
            raise RuntimeError(
                f"hx must have {x.ndim} dimensions, like the input. Got shape {tuple(hx.shape)}."
            )
        batched = x.ndim == 3
        if not batched:
            x, hx = x.unsqueeze(1), None if hx is None else hx.unsqueeze(1)
        elif self.batch_first:
            x = x.transpose(0, 1)
        T, B, n = x.shape
        if T == 0:
            raise RuntimeError("input must have at least one step. Got a sequence of length 0.")
        rows, h_n = self._run(x.reshape(T * B, n), [B] * T, hx)
        output = rows.reshape(T, B, rows.shape[1])
        if not batched:
            return output.squeeze(1), h_n.squeeze(1)
        return output.transpose(0, 1) if self.batch_first else output, h_n

    def _run(
        self, rows: Tensor, sizes: list[int], hx: Tensor | None, order: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Run all layers over rows, of which `sizes[t]` belong to step t."""
        _check_features(rows, self.input_size)
        cell: Any = self.cells[0]
        dtype = cell.neurons.W.dtype
        if rows.dtype != dtype and not torch.is_autocast_enabled(rows.device.type):
            raise ValueError(
                f"input must have the dtype of the weights, {dtype}. Got {rows.dtype}: "
                f"convert it with input.to({dtype}), or use torch.autocast."
            )
        shape = (len(self.cells), sizes[0], self.hidden_size)
        if hx is None:
            hx = rows.new_zeros(shape)
        _check_state(hx, shape, rows)
        if order is not None:
            hx = hx.index_select(1, order)
        directions = 1 + self.bidirectional
        last = []
        for first in range(0, len(self.cells), directions):
            steps = rows.split_with_sizes(sizes)
            states, h = _states(self.cells[first], steps, hx[first])
            rows = torch.cat(states)
            last.append(h)
            if self.bidirectional:
                states, h = _states(self.cells[first + 1], steps[::-1], hx[first + 1])
                rows = torch.cat([rows, torch.cat(states[::-1])], dim=1)
                last.append(h)
            if self.dropout and first + directions < len(self.cells):
                rows = nn.functional.dropout(rows, self.dropout, self.training)
        return rows, torch.stack(last)

    def extra_repr(self) -> str:
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, "
            f"nonlinearity={self.nonlinearity!r}, batch_first={self.batch_first}, "
            f"dropout={self.dropout:g}, bidirectional={self.bidirectional}"
        )


@overridable
def _first_state(input: Tensor, hx: Tensor | None, n: int, m: int) -> Tensor:
    """Return the state of a cell, or zeros, after checking it and the input."""
    if input.ndim not in (1, 2):
        raise ValueError(f"input must have 1 or 2 dimensions. Got shape {tuple(input.shape)}.")
    _check_features(input, n)
    shape = (*input.shape[:-1], m)
    if hx is None:
        return input.new_zeros(shape)
    if hx.ndim not in (1, 2):
        raise ValueError(f"hx must have 1 or 2 dimensions. Got shape {tuple(hx.shape)}.")
    _check_state(hx, shape, input)
    return hx


def _check_features(x: Tensor, n: int) -> None:
    if x.shape[-1] != n:
        raise RuntimeError(
            f"input must have input_size = {n} features in its last dimension. "
            f"Got shape {tuple(x.shape)} instead."
        )


def _check_state(hx: Tensor, shape: tuple[int, ...], x: Tensor) -> None:
    if tuple(hx.shape) != shape:
        raise RuntimeError(f"hx must have shape {shape}. Got {tuple(hx.shape)} instead.")
    if hx.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
        raise RuntimeError(
            f"hx must have the dtype of the input, {x.dtype}. Got {hx.dtype}: "
            f"convert it with hx.to({x.dtype})."
        )


def _states(cell: nn.Module, steps: Sequence[Tensor], h: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return the states after each step, and the last state of each sequence.

    The sequences are sorted by length, longest first. A step has rows only for the sequences that
    have not ended; the others keep their state.
    """
    states = []
    for x in steps:
        B = x.shape[0]  # not len(x), which would make the batch size of an exported graph constant
        states.append(cell(x, h[:B]))
        h = torch.cat([states[-1], h[B:]]) if h.shape[0] > B else states[-1]
    return states, h


def _call_in_graph(rnn: nn.Module, input: Any, hx: Any) -> Any:
    """Add a call of the module to a graph of torch.fx, as torch.fx does for torch's modules.

    The number of steps is not known while tracing, so the loop over them cannot be traced.
    """
    path = input.tracer.path_of_module(rnn)
    if not path:
        raise TypeError(
            "torch.fx cannot trace a QuadraticRNN by itself, because the number of steps is not "
            "known: trace a module that contains it, such as torch.nn.Sequential(rnn)."
        )
    return input.tracer.create_proxy("call_module", path, (input, hx), {})
