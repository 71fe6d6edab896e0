"""Outputs, gradients and validation score of a network for the user's data."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from quadric.checks import Array, Matrix, as_inputs, as_offset, as_targets, as_weights
from quadric.core import ACTIVATIONS, Layer, Stack, accuracy, parameters
from quadric.training import Architecture, Samples, check_answers, check_backward, converted_bytes
from quadric.utils import check_limit


def checked_inputs(stack: Stack, X: Any) -> Matrix:
    """Return X as an array or CSR matrix of the stack's dtype; raise if a copy is too large."""
    n_inputs, dtype = stack.layers[0].n_inputs, stack.layers[0].dtype
    size = 0
    if sparse.issparse(X):
        size = 2 * X.nnz * (dtype.itemsize + 4)
    elif getattr(X, "dtype", None) != dtype:
        size = math.prod(getattr(X, "shape", ()) or (0,)) * dtype.itemsize
    check_limit(size, f"X as an array of {dtype}", "Pass fewer samples at a time.")
    return as_inputs("X", X, n_inputs, dtype)


def checked_samples(
    stack: Stack, X: Any, Y: Any, sample_weight: Any = None, offset: Any = None
) -> Samples:
    """Return the training data in the stack's dtype."""
    first = stack.layers[0]
    X = checked_inputs(stack, X)
    shift = as_offset(offset, first.n_inputs, first.dtype)
    Y = _targets(stack, X, Y)
    return Samples(X, Y, as_weights(sample_weight, X.shape[0], first.dtype), shift)


def _targets(stack: Stack, X: Matrix, Y: Any, prefix: str = "") -> Array:
    if X.shape[0] == 0:
        raise ValueError(f"{prefix}X must have at least one row. Got none.")
    last = stack.layers[-1]
    Y = as_targets(f"{prefix}Y", Y, X.shape[0], last.n_outputs, last.dtype)
    stack.loss_function.check_targets(Y)
    return Y


def network_outputs(stack: Stack, X: Any, offset: Any, function: Callable[[Array], Array]) -> Array:
    """Return function(logits), computed block by block."""
    inputs = checked_inputs(stack, X)
    n_samples = inputs.shape[0]
    network = Architecture.of(stack.layers)
    shift = as_offset(offset, network.n_inputs, stack.layers[0].dtype)
    needed = converted_bytes(X, inputs)
    needed += 0 if shift is None else 3 * network.n_parameters * network.itemsize
    check_answers(network, n_samples, network.n_outputs * network.itemsize, needed)
    outputs = np.empty((n_samples, network.n_outputs), dtype=stack.layers[0].dtype)
    for rows, z in stack.shifted(shift).logit_blocks(inputs):
        outputs[rows] = function(z)
    return outputs


def finite_gradients(stack: Stack, X: Any, samples: Samples) -> tuple[float, list[Layer]]:
    """Return the mean loss and the gradients; `samples` holds X after conversion."""
    network = Architecture.of(stack.layers)
    check_backward(network, len(samples), converted_bytes(X, samples.X))
    with np.errstate(over="ignore", invalid="ignore"):
        value, grads = stack.gradients(samples.X, samples.Y, samples.weight, finite=True)
    finite = all(np.isfinite(array).all() for array in parameters(grads))
    if not (finite and np.isfinite(value)):
        raise ValueError(
            "X, Y or sample_weight contains values so large that the gradients are not finite in "
            f"{stack.layers[0].dtype}. Scale them."
        )
    return value, grads


def validation_score(
    stack: Stack,
    validation: Any,
    score: Callable[[Array, Array], float] | None,
    logits: Callable[[Matrix], Array],
) -> Callable[[], float]:
    """Return a function that computes the validation score of the current parameters."""
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        raise ValueError(f"validation must be (X, Y). Got {type(validation).__name__} instead.")
    if score is not None and not callable(score):
        raise TypeError(f"score must be callable: score(Y, outputs). Got {score!r} instead.")
    first, prefix = stack.layers[0], "the validation "
    X = as_inputs(f"{prefix}X", validation[0], first.n_inputs, first.dtype)
    Y = _targets(stack, X, validation[1], prefix)

    def validate() -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                z = logits(X)
            except ValueError:
                return -np.inf
            if score is not None:
                return float(score(Y, ACTIVATIONS[stack.activations[-1]].function(z)))
            if stack.loss_name in ("squared_error", "poisson"):
                return -stack.mean_loss(z, Y)
            return accuracy(z, Y)

    return validate
