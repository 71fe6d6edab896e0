"""L-BFGS over the flat vector of all independent parameters (SciPy's implementation)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy import optimize, sparse

from quadric.arrays import Array, Matrix
from quadric.errors import DivergenceError
from quadric.layers import Layer
from quadric.losses import Loss
from quadric.training import backprop
from quadric.training.history import Epoch, History

__all__ = ["from_vector", "input_squares", "preconditioner", "run_lbfgs", "to_vector"]


def to_vector(layers: Sequence[Layer]) -> Array:
    """All independent parameters, layer by layer in the order of the fields, as float64."""
    return np.concatenate(
        [
            array.ravel().astype(np.float64, copy=False)
            for layer in layers
            for array in layer.arrays().values()
        ]
    )


def from_vector(layers: Sequence[Layer], vector: Array) -> None:
    """Write such a vector into the layers' arrays."""
    start = 0
    for layer in layers:
        for array in layer.arrays().values():
            stop = start + array.size
            array[...] = vector[start:stop].reshape(array.shape)
            start = stop


def input_squares(X: Matrix) -> Array:
    """The mean square of each input."""
    with np.errstate(over="ignore"):
        squares = X.multiply(X) if sparse.issparse(X) else np.square(X, dtype=np.float64)
        means = np.asarray(squares.mean(axis=0), dtype=np.float64).ravel()
    return np.where(np.isfinite(means), means, 1.0)


def preconditioner(squares: Array, l2: float) -> Array:
    """The root of a parameter's curvature, about: squares/4 from the loss, l2 from the penalty.

    L-BFGS works on parameters times these: inputs of any size then cost it no more iterations,
    and what is minimised stays the same. `squares` are mean squares of what a parameter meets.
    """
    curvature = squares / 4 + l2
    return np.sqrt(np.where(curvature > 0, curvature, 1.0))


def _parameter_scales(layers: Sequence[Layer], X: Matrix, l2: float) -> Array:
    """`preconditioner` for all parameters: the first layer's meet x_i or x_i x_j."""
    s = input_squares(X)
    met = [layer.copy() for layer in layers]
    for layer in met:
        for array in layer.arrays().values():
            array[...] = 1
    with np.errstate(over="ignore"):
        for name, array in met[0].arrays().items():
            if name in ("W", "U"):
                array *= s.astype(array.dtype)
            elif name == "packed":
                rows, columns = np.triu_indices(len(s))
                array *= (s[rows] * s[columns])[:, None].astype(array.dtype)
    vector = to_vector(met)
    return preconditioner(np.where(np.isfinite(vector), vector, 1.0), l2)


def run_lbfgs(
    layers: Sequence[Layer],
    activations: Sequence[str],
    loss: Loss,
    X: Matrix,
    Y: Array,
    *,
    epochs: int,
    l2: float,
    tol: float,
    sample_weight: Array | None,
    offset: Array | None,
    validate: Callable[[], float] | None,
    callback: Callable[[Epoch], object] | None,
    max_fun: int | None = None,
) -> History:
    """Minimise the mean loss and penalty; an iteration counts as an epoch.

    Convex for a single linear or quadratic layer with either cross-entropy, so the optimum is
    found; a local one otherwise.
    """
    if offset is not None:
        X = (X.toarray() if sparse.issparse(X) else X) + offset
    history = History(n_samples=X.shape[0])
    start = time.perf_counter()
    share = 1.0 if sample_weight is None else float(sample_weight.mean())
    finished_at = to_vector(layers)
    scales = _parameter_scales(layers, X, l2 * share)

    def objective(scaled: Array) -> tuple[float, Array]:
        from_vector(layers, scaled / scales)
        with np.errstate(over="ignore", invalid="ignore"):
            value, grads = backprop.gradients(layers, activations, loss, X, Y, sample_weight)
            backprop.add_l2(layers, grads, l2 * share)
        return value + backprop.penalty(layers, l2 * share), to_vector(grads) / scales

    def finished(intermediate_result: optimize.OptimizeResult) -> None:
        nonlocal start, finished_at
        finished_at = intermediate_result.x / scales
        from_vector(layers, finished_at)
        seconds = time.perf_counter() - start
        score = None if validate is None else validate()
        epoch = Epoch(history.epochs, float(intermediate_result.fun), score, seconds)
        history.append(epoch)
        start = time.perf_counter()
        if callback is not None and callback(epoch):
            history.stopped = True
            raise StopIteration

    try:
        result = optimize.minimize(
            objective,
            finished_at * scales,
            method="L-BFGS-B",
            jac=True,
            callback=finished,
            options={
                "maxiter": epochs,
                "maxfun": 15 * epochs + 20 if max_fun is None else max_fun,
                "gtol": tol,
                "ftol": 0.0,
            },
        )
    except BaseException:
        from_vector(layers, finished_at)
        raise
    if not (np.isfinite(result.fun) and np.isfinite(result.x).all()):
        from_vector(layers, finished_at)
        raise DivergenceError(
            epoch=history.epochs, sample=None, layer=None, learning_rate=None, history=history
        )
    history.exhausted = result.status == 1
    if history.stopped:  # the callback may have left the network as it wants it
        return history
    from_vector(layers, result.x / scales)
    if not history.loss:  # it began at an optimum
        history.append(Epoch(0, float(result.fun), None, time.perf_counter() - start))
    return history
