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
    fixed = np.concatenate(
        [
            np.full(array.size, name in options.fixed)
            for layer in layers
            for name, array in layer.arrays().items()
        ]
    )
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
        state.add(value, seconds, stack, options, validate=validate, callback=callback)
        start = time.perf_counter()
        if history.stopped:
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
        if not history.stopped:
            finished_at, value = result.x / scales, float(result.fun)
            history.exhausted = result.status == 1
    except _OutOfEvaluationsError:
        history.exhausted = True
    finally:
        if not history.stopped:  # else the callback may have changed the network
            _from_vector(layers, finished_at)
    if not (history.stopped or (np.isfinite(value) and np.isfinite(finished_at).all())):
        raise DivergenceError(epoch=state.call.epochs, history=history)
    if not state.call.epochs:
        # the start is an optimum, no step reduced the objective, or the evaluations ran out
        state.add(value, time.perf_counter() - start, stack, options)


def _to_vector(layers: Sequence[Layer]) -> Array:
    """All parameters, layer by layer in the order of the fields, as float64."""
    return np.concatenate([array.ravel().astype(float, copy=False) for array in parameters(layers)])


def _from_vector(layers: Sequence[Layer], vector: Array) -> None:
    """Write a vector in the order of `_to_vector` into the layers' arrays."""
    start = 0
    for array in parameters(layers):
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
