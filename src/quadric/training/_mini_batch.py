"""Mini-batch epochs: SGD with momentum, and Adam, on the gradients of the layers' equations."""

from collections.abc import Sequence

import numpy as np

from quadric.checks import Array
from quadric.core import Layer, Stack, parameters
from quadric.training._run import FailedEpochError, Options, Samples, TrainingState


class MiniBatch:
    """A stepper that updates the layers' own arrays, one batch at a time.

    The gradient of a batch is the weighted sum over its samples, divided by the number of samples,
    and `l2` is multiplied by their mean weight. A sample's weight therefore scales its step. With
    ``options.by_weight``, the sum and the penalty are divided by the batch's sum of weights
    instead, as in scikit-learn's networks.

    Attributes
    ----------
    l2 : float
        Coefficient of the L2 penalty in the loss that `run_epoch` returns.
    """

    def __init__(
        self, stack: Stack, samples: Samples, options: Options, state: TrainingState
    ) -> None:
        self.stack, self.samples, self.options, self.state = stack, samples, options, state
        mean_weight = 1.0 if samples.weight is None else float(samples.weight.mean())
        n_batch = min(options.batch_size, len(samples))
        self.l2 = options.l2 * mean_weight
        if options.by_weight:
            self.l2 = options.l2 / (n_batch * mean_weight)
        self.snapshot()

    def snapshot(self) -> None:
        self.saved = self.stack.snapshot()

    def restore(self) -> None:
        self.stack.restore(self.saved)

    def publish(self) -> None:
        """Do nothing, because the layers' own arrays are trained."""

    def run_epoch(self, order: Array, rate: float) -> float:
        """Take one step for each batch of `order`; return the mean loss, including the penalty."""
        total, size = 0.0, self.options.batch_size
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for start in range(0, len(order), size):
                rows = order[start : start + size]
                total += self._step(rows, rate) * len(rows)
        if not all(np.isfinite(array).all() for array in parameters(self.stack.layers)):
            raise FailedEpochError
        return total / len(order) + self.stack.penalty(self.l2)

    def _step(self, rows: Array, rate: float) -> float:
        """Take one step and return the batch's mean loss before the step."""
        batch, l2 = self.samples.take(rows), self.options.l2
        weight, mean_weight = batch.weight, 1.0
        if weight is not None:
            mean_weight = float(weight.mean(dtype=np.float64))
            if mean_weight == 0:
                return 0.0
        if self.options.by_weight:
            weight = None if weight is None else weight / weight.dtype.type(mean_weight)
            l2 /= mean_weight * len(rows)
        else:
            l2 *= mean_weight
        value, grads = self.stack.gradients(batch.X, batch.Y, weight)
        if not np.isfinite(value):
            raise FailedEpochError(sample=int(rows[0]) if len(rows) == 1 else None)
        if self.options.clip is not None:
            _clip(grads, self.options.clip)
        self.stack.add_l2(grads, l2)
        update = self._sgd if self.options.solver == "sgd" else self._adam
        update(parameters(self.stack.layers), parameters(grads), rate)
        return value

    def _sgd(self, theta: Sequence[Array], gradients: Sequence[Array], rate: float) -> None:
        """v <- momentum v - rate g; the step is v, or momentum v - rate g (Nesterov)."""
        momentum = self.options.momentum
        if momentum == 0:
            for parameter, gradient in zip(theta, gradients, strict=True):
                gradient *= gradient.dtype.type(rate)
                parameter -= gradient
            return
        velocities = self._remembered("velocity", theta)
        for parameter, gradient, v in zip(theta, gradients, velocities, strict=True):
            number = parameter.dtype.type
            v *= number(momentum)
            v -= number(rate) * gradient
            if self.options.nesterov:
                parameter += number(momentum) * v - number(rate) * gradient
            else:
                parameter += v

    def _adam(self, theta: Sequence[Array], gradients: Sequence[Array], rate: float) -> None:
        """Take an Adam step (Kingma and Ba, 2015)."""
        state, beta_1, beta_2 = self.state, self.options.beta_1, self.options.beta_2
        means, squares = self._remembered("mean", theta), self._remembered("square", theta)
        state.steps += 1
        rate *= np.sqrt(1 - beta_2**state.steps) / (1 - beta_1**state.steps)
        for parameter, gradient, mean, square in zip(theta, gradients, means, squares, strict=True):
            number = parameter.dtype.type
            mean *= number(beta_1)
            mean += number(1 - beta_1) * gradient
            square *= number(beta_2)
            square += number(1 - beta_2) * gradient * gradient
            parameter -= number(rate) * mean / (np.sqrt(square) + number(self.options.epsilon))

    def _remembered(self, name: str, theta: Sequence[Array]) -> list[Array]:
        """Return the arrays ``name.0``, ``name.1``, ... of the optimizer, initially zero."""
        memory = self.state.memory
        for i, parameter in enumerate(theta):
            if f"{name}.{i}" not in memory:
                memory[f"{name}.{i}"] = np.zeros_like(parameter)
        return [memory[f"{name}.{i}"] for i in range(len(theta))]


def _clip(grads: Sequence[Layer], most: float) -> None:
    """Scale the gradient down in place if its norm is larger than `most`."""
    norm = np.sqrt(sum(_squares(grad) for grad in grads))
    if norm > most:
        for array in parameters(grads):
            array *= array.dtype.type(most / norm)


def _squares(grad: Layer) -> float:
    biases = [array for name, array in grad.arrays().items() if name not in grad.weights]
    return 2 * grad.penalty() + sum(float(np.vdot(bias, bias)) for bias in biases)
