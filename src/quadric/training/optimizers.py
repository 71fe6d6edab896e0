"""How a gradient becomes a step: SGD with momentum, and Adam.

Both work on the independent entries of Q: they are elementwise, and a symmetric gradient keeps
a symmetric matrix symmetric to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from quadric.arrays import Array
from quadric.layers import Layer

__all__ = ["SGD", "Adam", "Optimizer"]


class Optimizer(Protocol):
    """Keeps its state between calls."""

    def step(self, layers: Sequence[Layer], grads: Sequence[Layer], rate: float) -> None:
        """Update the parameters of `layers` in place; the gradients are used up."""


def _arrays(layers: Sequence[Layer]) -> list[Array]:
    return [array for layer in layers for array in layer.arrays().values()]


class SGD:
    """v <- momentum v - rate g; the step is v, or momentum v - rate g once more (Nesterov)."""

    def __init__(self, momentum: float = 0.0, nesterov: bool = False) -> None:
        self.momentum, self.nesterov = momentum, nesterov
        self.velocities: list[Array] = []

    def step(self, layers: Sequence[Layer], grads: Sequence[Layer], rate: float) -> None:
        parameters = _arrays(layers)
        if self.momentum == 0:
            for parameter, gradient in zip(parameters, _arrays(grads), strict=True):
                gradient *= gradient.dtype.type(rate)
                parameter -= gradient
            return
        if not self.velocities:
            self.velocities = [np.zeros_like(parameter) for parameter in parameters]
        for parameter, gradient, v in zip(parameters, _arrays(grads), self.velocities, strict=True):
            kind = parameter.dtype.type
            v *= kind(self.momentum)
            v -= kind(rate) * gradient
            if self.nesterov:
                parameter += kind(self.momentum) * v - kind(rate) * gradient
            else:
                parameter += v


class Adam:
    """Steps of about `rate`, by running means of the gradient and of its square."""

    def __init__(self, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-8) -> None:
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.t = 0
        self.means: list[Array] = []
        self.squares: list[Array] = []

    def step(self, layers: Sequence[Layer], grads: Sequence[Layer], rate: float) -> None:
        parameters = _arrays(layers)
        if not self.means:
            self.means = [np.zeros_like(parameter) for parameter in parameters]
            self.squares = [np.zeros_like(parameter) for parameter in parameters]
        self.t += 1
        rate *= np.sqrt(1 - self.beta_2**self.t) / (1 - self.beta_1**self.t)
        for parameter, gradient, mean, square in zip(
            parameters, _arrays(grads), self.means, self.squares, strict=True
        ):
            kind = parameter.dtype.type
            mean *= kind(self.beta_1)
            mean += kind(1 - self.beta_1) * gradient
            square *= kind(self.beta_2)
            square += kind(1 - self.beta_2) * gradient * gradient
            parameter -= kind(rate) * mean / (np.sqrt(square) + kind(self.epsilon))
