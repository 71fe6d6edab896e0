"""Recurrent layers of quadratic neurons over whole sequences: `QuadraticRNN`."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Proxy
from torch.nn.utils.rnn import PackedSequence

from quadric.checks import check_choice, check_flag, check_integer, check_number
from quadric.torch._recurrent_cell import (
    NONLINEARITIES,
    QuadraticRNNCell,
    check_features,
    check_state,
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
            QuadraticRNNCell(n, m, self.bias, self.nonlinearity, device, dtype)
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
        check_features(rows, self.input_size)
        cell: Any = self.cells[0]
        dtype = cell.neurons.packed.dtype
        if rows.dtype != dtype and not torch.is_autocast_enabled(rows.device.type):
            raise ValueError(
                f"input must have the dtype of the weights, {dtype}. Got {rows.dtype}: "
                f"convert it with input.to({dtype}), or use torch.autocast."
            )
        shape = (len(self.cells), sizes[0], self.hidden_size)
        if hx is None:
            hx = rows.new_zeros(shape)
        check_state(hx, shape, rows)
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
