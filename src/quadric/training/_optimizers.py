"""How a gradient becomes a step: SGD with momentum, and Adam.

Both keep what they remember in the training state, one array for each parameter array.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._layers import Layer
from quadric.training._options import Options
from quadric.training._state import TrainingState


class Optimizer(Protocol):
    """Updates parameters in place; its memory is in the training state."""

    def step(self, layers: Sequence[Layer], grads: Sequence[Layer], rate: float) -> None:
        """Update the parameters of `layers`; the gradients are used up."""


def _arrays(layers: Sequence[Layer]) -> list[Array]:
    return [array for layer in layers for array in layer.arrays().values()]


def _remembered(state: TrainingState, name: str, parameters: Sequence[Array]) -> list[Array]:
    """The arrays ``name.0``, ``name.1``, ... of the state's memory, zeros at first."""
    for i, parameter in enumerate(parameters):
        if f"{name}.{i}" not in state.memory:
            state.memory[f"{name}.{i}"] = np.zeros_like(parameter)
    return [state.memory[f"{name}.{i}"] for i in range(len(parameters))]


class SGD:
    """v <- momentum v - rate g; the step is v, or momentum v - rate g (Nesterov)."""

    def __init__(self, options: Options, state: TrainingState) -> None:
        self.momentum, self.nesterov, self.state = options.momentum, options.nesterov, state

    def step(self, layers: Sequence[Layer], grads: Sequence[Layer], rate: float) -> None:
        parameters = _arrays(layers)
        if self.momentum == 0:
            for parameter, gradient in zip(parameters, _arrays(grads), strict=True):
                gradient *= gradient.dtype.type(rate)
                parameter -= gradient
            return
        velocities = _remembered(self.state, "velocity", parameters)
        for parameter, gradient, v in zip(parameters, _arrays(grads), velocities, strict=True):
            kind = parameter.dtype.type
            v *= kind(self.momentum)
            v -= kind(rate) * gradient
            if self.nesterov:
                parameter += kind(self.momentum) * v - kind(rate) * gradient
            else:
                parameter += v


class Adam:
    """Adam (Kingma and Ba, 2015)."""

    def __init__(self, options: Options, state: TrainingState) -> None:
        self.beta_1, self.beta_2 = options.beta_1, options.beta_2
        self.epsilon, self.state = options.epsilon, state

    def step(self, layers: Sequence[Layer], grads: Sequence[Layer], rate: float) -> None:
        parameters, state = _arrays(layers), self.state
        means = _remembered(state, "mean", parameters)
        squares = _remembered(state, "square", parameters)
        state.steps += 1
        rate *= np.sqrt(1 - self.beta_2**state.steps) / (1 - self.beta_1**state.steps)
        for parameter, gradient, mean, square in zip(
            parameters, _arrays(grads), means, squares, strict=True
        ):
            kind = parameter.dtype.type
            mean *= kind(self.beta_1)
            mean += kind(1 - self.beta_1) * gradient
            square *= kind(self.beta_2)
            square += kind(1 - self.beta_2) * gradient * gradient
            parameter -= kind(rate) * mean / (np.sqrt(square) + kind(self.epsilon))
