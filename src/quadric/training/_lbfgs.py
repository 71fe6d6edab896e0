"""L-BFGS over the flat vector of all parameters."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from scipy import sparse

from quadric.checks import Array
from quadric.core import Layer, Stack, parameters
from quadric.errors import DivergenceError
from quadric.training._blocks import BlockSamples
from quadric.training._run import Epoch, Options, Samples, TrainingState

SUFFICIENT = 1e-3  # of the decrease that the slope at the start predicts (first Wolfe condition)
CURVATURE = 0.9  # of the slope at the start, at most left at the end (second Wolfe condition)
EPSILON = float(np.finfo(float).eps)
MOST_TRIES = 20  # evaluations of one line search
MARGIN = 0.1  # a try is at least this share of the interval away from its ends
GROWTH = 4.0  # by how much a try may exceed the last one
Evaluate: TypeAlias = Callable[[Array], tuple[float, Array]]


class _OutOfEvaluationsError(Exception):
    """Raised during a line search."""


@dataclass
class Descent:
    """A minimization by L-BFGS between two iterations.

    It contains all that the next iteration depends on, so that a run can stop after any iteration
    and continue with the same bits, in another process as well.

    Attributes
    ----------
    x, value, gradient
        The current point, and the objective and its gradient there.
    S, Y : arrays of shape (pairs, size)
        The last steps s and differences of gradients y; pair k is in row k % pairs.
    count : int
        The number of pairs stored so far.
    """

    x: Array
    value: float
    gradient: Array
    S: Array
    Y: Array
    count: int = 0

    @classmethod
    def start(cls, evaluate: Evaluate, x: Array, pairs: int) -> Self:
        """Return a minimization that starts at x."""
        return cls(x, *evaluate(x), np.empty((pairs, x.size)), np.empty((pairs, x.size)))

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Self:
        """Restore a minimization from the result of `to_arrays`."""
        given = {name: arrays[name].copy() for name in ("x", "gradient", "S", "Y")}
        return cls(**given, value=float(arrays["value"]), count=int(arrays["count"]))

    def to_arrays(self) -> dict[str, Array]:
        """Return the minimization as arrays."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    def is_finite(self) -> bool:
        """Whether the point, the objective and the gradient are finite."""
        return all(np.isfinite(value).all() for value in (self.x, self.value, self.gradient))

    def iterate(self, evaluate: Evaluate) -> bool:
        """Do one iteration; return whether the line search has found a step."""
        from quadric.kernels import two_loop

        while True:
            direction = two_loop(self.S, self.Y, self.count, self.gradient)
            first = 1.0 if self.count else min(1.0, 1.0 / _norm(direction))
            found = search_line(evaluate, self.x, self.value, self.gradient, direction, first)
            if found is not None:
                break
            if not self.count:
                return False
            self.count = 0  # try the steepest descent
        step, value, gradient = found
        s, y = step * direction, gradient - self.gradient
        if s @ y > EPSILON * (y @ y):
            row = self.count % len(self.S)
            self.S[row], self.Y[row] = s, y
            self.count += 1
        self.x, self.value, self.gradient = self.x + s, value, gradient
        return True


def _norm(x: Array) -> float:
    largest = np.abs(x).max()  # divide by it first, so that no square overflows
    return float(largest * np.linalg.norm(x / largest))


class _Try(NamedTuple):
    """A point on a line: the step, the objective and its slope along the line."""

    step: float
    value: float
    slope: float


def search_line(
    evaluate: Evaluate, x: Array, value: float, gradient: Array, direction: Array, step: float
) -> tuple[float, float, Array] | None:
    """Return a step that satisfies the strong Wolfe conditions, and value and gradient there.

    None if there is none, because rounding errors hide the decrease. After `MOST_TRIES`
    evaluations, a step that only decreases the objective is accepted.

    Notes
    -----
    Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, in one loop: `low` is the
    best try so far, and a suitable step lies between `low` and `high`, or beyond `low` as long as
    there is no `high`.
    """
    start = low = _Try(0.0, value, float(gradient @ direction))
    if not start.slope < 0:
        return None
    best_gradient, high = gradient, None
    for _ in range(MOST_TRIES):
        tried_value, tried_gradient = evaluate(x + step * direction)
        tried = _Try(step, tried_value, float(tried_gradient @ direction))
        enough = start.value + SUFFICIENT * step * start.slope
        if not tried.value <= min(enough, low.value) or not isfinite(tried.slope):
            high = tried
        else:
            if abs(tried.slope) <= -CURVATURE * start.slope:
                return step, tried.value, tried_gradient
            if tried.slope * (1.0 if high is None else high.step - low.step) >= 0:
                high = low
            before, low, best_gradient = low, tried, tried_gradient
        if high is None:
            step = min(max(_minimum(before, low), 1.1 * step), GROWTH * step)
        else:
            step, width = _minimum(low, high), high.step - low.step
            share = min(max((step - low.step) / width, MARGIN), 1 - MARGIN)
            step = low.step + share * width
    return (low.step, low.value, best_gradient) if low.step else None


def _minimum(a: _Try, b: _Try) -> float:
    """Return the minimum of the cubic with the values and slopes of two tries.

    Without one, return infinity; if a number is not finite, the middle.
    """
    if not (isfinite(b.value) and isfinite(b.slope)):
        return (a.step + b.step) / 2
    width = b.step - a.step
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return np.inf
    d2 = np.copysign(np.sqrt(square), width)
    bottom = b.slope - a.slope + 2 * d2
    return float(b.step - width * (b.slope + d2 - d1) / bottom) if bottom else np.inf


class _InMemory:
    """Samples in memory, whose sum of weight times loss is divided by `divisor`."""

    def __init__(self, samples: Samples, divisor: float) -> None:
        self.X, self.Y, self.weight = samples.shift(samples.X), samples.Y, samples.weight
        if self.weight is not None and divisor != len(samples):
            self.weight = self.weight / self.weight.dtype.type(divisor / len(samples))

    def mean_squares(self) -> Array:
        """The mean square of each input."""
        X = self.X
        with np.errstate(over="ignore"):
            if sparse.issparse(X):  # X.power(2) would need three times the memory
                entries = sparse.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape)
            else:
                entries = np.square(X, dtype=np.float64)
            return np.asarray(entries.mean(axis=0), dtype=np.float64).ravel()

    def mean_and_gradient(self, stack: Stack, divisor: float) -> tuple[float, Array]:
        """Return the mean of weight times loss, and its gradient."""
        mean, grads = stack.gradients(self.X, self.Y, self.weight)
        return mean, _to_vector(grads)


class Objective:
    """The mean loss plus the penalty, as a function of the parameters multiplied by `scales`.

    The scales approximate the square root of the objective's curvature. The number of iterations
    then does not depend on the scale of the inputs.
    """

    def __init__(self, stack: Stack, samples: Samples | BlockSamples, options: Options) -> None:
        self.stack, self.arrays = stack, list(parameters(stack.layers))
        l2, total = options.l2, samples.total_weight()
        l2 = l2 / total if options.by_weight else l2 * (total / len(samples))
        self.divisor = total if options.by_weight else float(len(samples))
        self.samples: BlockSamples | _InMemory = (
            samples if isinstance(samples, BlockSamples) else _InMemory(samples, self.divisor)
        )
        self.diagonal = l2 * _penalty_diagonal(stack.layers, options)
        self.scales = _scales(stack.layers, self.samples.mean_squares(), self.diagonal)
        free = np.concatenate(
            [
                np.full(array.size, name not in options.fixed, dtype=float)
                for layer in stack.layers
                for name, array in layer.arrays().items()
            ]
        )
        self.factors = free / self.scales

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the objective and its gradient at x; the layers then have these parameters."""
        theta = x / self.scales
        _from_vector(self.arrays, theta)
        mean, gradient = self.samples.mean_and_gradient(self.stack, self.divisor)
        pull = self.diagonal * theta
        gradient += pull
        gradient *= self.factors
        return mean + 0.5 * float(pull @ theta), gradient


def run_lbfgs(
    stack: Stack,
    samples: Samples | BlockSamples,
    options: Options,
    state: TrainingState,
    *,
    validate: Callable[[], float] | None = None,
    callback: Callable[[Epoch], object] | None = None,
) -> None:
    """Minimize the mean loss plus the penalty; each iteration counts as an epoch.

    For a single linear or quadratic layer with a cross-entropy loss, the problem is convex and the
    global optimum is found. Otherwise a local optimum is found.
    """
    start, history, objective = (
        time.perf_counter(),
        state.history,
        Objective(stack, samples, options),
    )
    theta, memory = _to_vector(stack.layers), state.optimizer.memory  # theta of the last iteration
    descent = Descent.from_arrays(memory) if memory else None
    # a line search rejects infinity and NaN
    silent = partial(np.errstate, over="ignore", invalid="ignore")

    def evaluate(x: Array) -> tuple[float, Array]:
        if state.call.evaluations == options.max_evaluations:
            raise _OutOfEvaluationsError
        state.call.evaluations += 1
        return objective(x)

    try:
        if descent is None:
            with silent():
                descent = Descent.start(evaluate, theta * objective.scales, options.pairs)
        while np.abs(descent.gradient).max() > options.tol:
            if state.call.epochs == options.epochs:
                history.exhausted = True
                break
            before = descent.value
            with silent():
                found = descent.iterate(evaluate)
            if not found:
                break
            theta = descent.x / objective.scales
            seconds = time.perf_counter() - start
            if validate is not None or callback is not None:
                _from_vector(objective.arrays, theta)
                state.optimizer.memory = descent.to_arrays()  # which a callback may store
            state.add(descent.value, seconds, stack, options, validate=validate, callback=callback)
            start = time.perf_counter()
            if history.stopped or not descent.value < before:
                break
    except _OutOfEvaluationsError:
        history.exhausted = True
    finally:
        if not history.stopped:  # else the callback may have changed the network
            _from_vector(objective.arrays, theta)
    if history.stopped:
        state.optimizer.memory = memory
        return
    if descent is None or not descent.is_finite():
        raise DivergenceError(epoch=state.call.epochs, history=history)
    if not state.call.epochs:
        # the start is an optimum, no step reduced the objective, or the evaluations ran out
        state.add(descent.value, time.perf_counter() - start, stack, options)
    state.optimizer.memory = descent.to_arrays()


def _to_vector(layers: Sequence[Layer]) -> Array:
    """All parameters, layer by layer in the order of the fields, as float64."""
    return np.concatenate([array.ravel().astype(float, copy=False) for array in parameters(layers)])


def _from_vector(arrays: Sequence[Array], vector: Array) -> None:
    """Write a vector in the order of `_to_vector` into the layers' arrays."""
    start = 0
    for array in arrays:
        array[...] = vector[start : start + array.size].reshape(array.shape)
        start += array.size


def _penalty_diagonal(layers: Sequence[Layer], options: Options) -> Array:
    """Coefficient of each squared entry in the penalty: 1, 0, or 4 where 2 q_ij is penalized.

    Those of the first layer are divided by the squared relevance of their inputs.
    """
    monomials = options.penalty == "monomials"
    return _spread(
        layers,
        options.relevance,
        weight=lambda s: s**-2.0,
        product=lambda ss, count: ((count if monomials else 1.0) / ss) ** 2,
        bias=0.0,
    )


def _scales(layers: Sequence[Layer], squares: Array, diagonal: Array) -> Array:
    """Approximate square root of the curvature of the objective in each parameter.

    The curvature is the mean square of dz/dtheta, divided by 4, plus the penalty. `squares` are the
    mean squares of the inputs; those of later layers are assumed to be 1.
    """
    with np.errstate(over="ignore"):
        squares = np.where(np.isfinite(squares), squares, 1.0)
        means = _spread(
            layers,
            squares,
            weight=lambda s: s,
            product=lambda ss, count: count**2 * ss,
            bias=1.0,
        )
        curvature = np.where(np.isfinite(means), means, 1.0) / 4 + diagonal
    return np.sqrt(np.where(curvature > 0, curvature, 1.0))


def _spread(
    layers: Sequence[Layer],
    of_inputs: Array | None,
    *,
    weight: Callable[[Array], Array],
    product: Callable[[Array, Array], Array],
    bias: float,
) -> Array:
    """Return a value for each parameter, in the order of `_to_vector`.

    s contains a number for each input: those in `of_inputs` for the first layer, and 1 for others
    or without `of_inputs`. The values are weight(s_i) for w_i and u_i, product(s_i s_j, count) for
    q_ij, and `bias` for biases. `count` is how often x_i x_j occurs in x'Qx: 1 for i = j, else 2.
    """
    values = []
    for layer in layers:
        first = layer is layers[0] and of_inputs is not None
        s: Any = of_inputs if first else np.ones(layer.n_inputs)
        for name, array in layer.arrays().items():
            value = weight(s) if name in layer.weights else np.float64(bias)
            if name == "packed":
                i, j = np.triu_indices(layer.n_inputs)
                value = product((s[i] * s[j])[:, None], np.where(i == j, 1.0, 2.0)[:, None])
            values.append(np.broadcast_to(value, array.shape).ravel())
    return np.concatenate(values)
