"""L-BFGS over the flat vector of all parameters (SciPy's implementation)."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import optimize, sparse

from quadric.checks import Array, Matrix
from quadric.core import Layer, Stack, parameters
from quadric.errors import DivergenceError
from quadric.training._run import Epoch, Options, Samples, TrainingState


class _OutOfEvaluationsError(Exception):
    """Raised to stop during a line search; SciPy checks the limit only after the search."""


def run_lbfgs(
    stack: Stack,
    samples: Samples,
    options: Options,
    state: TrainingState,
    *,
    validate: Callable[[], float] | None = None,
    callback: Callable[[Epoch], object] | None = None,
) -> None:
    """Minimize the mean loss plus the penalty; each iteration counts as an epoch.

    For a single linear or quadratic layer with a cross-entropy loss, the problem is convex and the
    global optimum is found. Otherwise a local optimum is found.

    Notes
    -----
    SciPy optimizes the parameters multiplied by `scales`, which approximate the square root of the
    objective's curvature. The number of iterations then does not depend on the scale of the inputs.
    """
    layers, X, weight, l2 = stack.layers, samples.shift(samples.X), samples.weight, options.l2
    total = float(len(samples) if weight is None else weight.sum(dtype=np.float64))
    if options.by_weight:
        l2 /= total
        weight = None if weight is None else weight / weight.dtype.type(total / len(samples))
    else:
        l2 *= total / len(samples)
    diagonal = l2 * _penalty_diagonal(layers, options)
    scales = _scales(layers, X, diagonal)
    fixed = _spread(layers, lambda layer, name: name in options.fixed).astype(bool)
    history, start = state.history, time.perf_counter()
    finished_at, value = _to_vector(layers), np.nan  # `value` is the objective at `finished_at`

    def evaluate(scaled: Array) -> tuple[float, Array]:
        nonlocal value
        if state.call.evaluations == options.max_evaluations:
            raise _OutOfEvaluationsError
        state.call.evaluations += 1
        theta = scaled / scales
        _from_vector(layers, theta)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, grads = stack.gradients(X, samples.Y, weight)
            gradient = _to_vector(grads)
            del grads
            pull = diagonal * theta
            objective = mean + 0.5 * float(pull @ theta)
            gradient += pull
            gradient /= scales
        gradient[fixed] = 0
        if state.call.evaluations == 1:  # SciPy starts at `finished_at`
            value = objective
        return objective, gradient

    def finish(intermediate_result: optimize.OptimizeResult) -> None:
        nonlocal start, finished_at, value
        finished_at, value = intermediate_result.x / scales, float(intermediate_result.fun)
        seconds = time.perf_counter() - start
        if validate is not None or callback is not None:
            _from_vector(layers, finished_at)
        score = None if validate is None else validate()
        epoch = Epoch(state.epochs, value, score, seconds)
        state.add(epoch, stack, options)
        start = time.perf_counter()
        if callback is not None and callback(epoch):
            history.stopped = True
            raise StopIteration

    try:
        result = optimize.minimize(
            evaluate,
            finished_at * scales,
            method="L-BFGS-B",
            jac=True,
            callback=finish,
            options={
                "maxiter": options.epochs,
                "maxfun": options.max_evaluations,
                "maxcor": options.pairs,
                "gtol": options.tol,
                "ftol": 0.0,
            },
        )
        if history.stopped:
            return  # the callback may have changed the network
        finished_at, value = result.x / scales, float(result.fun)
        history.exhausted = result.status == 1
        if not (np.isfinite(value) and np.isfinite(finished_at).all()):
            raise DivergenceError(epoch=state.epochs, history=history)
    except _OutOfEvaluationsError:
        history.exhausted = True
        if not np.isfinite(value):
            raise DivergenceError(epoch=state.epochs, history=history) from None
    finally:
        if not history.stopped:
            _from_vector(layers, finished_at)
    if not state.epochs:
        # the start is an optimum, no step reduced the objective, or the evaluations ran out
        seconds = time.perf_counter() - start
        state.add(Epoch(0, value, None, seconds), stack, options)


def _to_vector(layers: Sequence[Layer]) -> Array:
    """All parameters, layer by layer in the order of the fields, as float64."""
    arrays = [array.ravel().astype(np.float64, copy=False) for array in parameters(layers)]
    return np.concatenate(arrays)


def _from_vector(layers: Sequence[Layer], vector: Array) -> None:
    """Write a vector in the order of `_to_vector` into the layers' arrays."""
    start = 0
    for array in parameters(layers):
        array[...] = vector[start : start + array.size].reshape(array.shape)
        start += array.size


def _spread(layers: Sequence[Layer], value: Callable[[Layer, str], Any]) -> Array:
    """value(layer, name) for each entry of each array, in the order of `_to_vector`."""
    return np.concatenate(
        [
            np.broadcast_to(value(layer, name), array.shape).ravel()
            for layer in layers
            for name, array in layer.arrays().items()
        ]
    )


def _penalty_diagonal(layers: Sequence[Layer], options: Options) -> Array:
    """Coefficient of each squared entry in the penalty: 1, 0, or 4 where 2 q_ij is penalized.

    Those of the first layer are divided by the squared relevance of their inputs.
    """

    def entry(layer: Layer, name: str) -> Any:
        n, relevance = layer.n_inputs, options.relevance
        s = np.ones(n) if relevance is None or layer is not layers[0] else relevance
        if name == "packed":
            i, j = np.triu_indices(n)
            count = _multiplicities(n) if options.penalty == "monomials" else 1.0
            return (count / (s[i] * s[j])[:, None]) ** 2
        return s**-2.0 if name in layer.weights else 0.0

    return _spread(layers, entry)


def _scales(layers: Sequence[Layer], X: Matrix, diagonal: Array) -> Array:
    """Approximate square root of the curvature of the objective in each parameter.

    The curvature is the mean square of dz/dtheta, divided by 4, plus the penalty. The inputs
    of later layers are assumed to have a mean square of 1.
    """
    with np.errstate(over="ignore"):
        if sparse.issparse(X):  # X.power(2) would need three times the memory
            entries = sparse.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape)
        else:
            entries = np.square(X, dtype=np.float64)
        squares = np.asarray(entries.mean(axis=0), dtype=np.float64).ravel()
    squares = np.where(np.isfinite(squares), squares, 1.0)

    def mean_square(layer: Layer, name: str) -> Any:
        s = squares if layer is layers[0] else np.ones(layer.n_inputs)
        if name == "packed":
            i, j = np.triu_indices(layer.n_inputs)
            return _multiplicities(layer.n_inputs) ** 2 * (s[i] * s[j])[:, None]
        return s if name in layer.weights else 1.0

    with np.errstate(over="ignore"):
        means = _spread(layers, mean_square)
        curvature = np.where(np.isfinite(means), means, 1.0) / 4 + diagonal
    return np.sqrt(np.where(curvature > 0, curvature, 1.0))


def _multiplicities(n: int) -> Array:
    """Number of times x_i x_j occurs in x'Qx: 1 for i = j, 2 otherwise; shape (n(n+1)/2, 1)."""
    i, j = np.triu_indices(n)
    return np.where(i == j, 1.0, 2.0)[:, None]
