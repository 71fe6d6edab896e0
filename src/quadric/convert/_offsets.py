"""Whether the affine steps of a pipeline can become part of a layer without loss of precision.

The steps compute u = A x + t, where A x and t nearly cancel if the inputs x are far from zero
relative to their spread. A folded layer has terms such as x_i x_j and x_i t_j instead of u_i u_j.
With s = |A||x| + |t|, the sum of their magnitudes is at most M(s), where M is the polynomial of the
layer with the absolute values of its coefficients. The rounding errors are estimated as the machine
epsilon times M(s). Those of random models are about 50 times smaller.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric._utils.arrays import FLOAT64, Array
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.pipelines._affine import affine_map

MAX_ERROR = 1e-7  # relative to the largest typical output
LIMITS = np.finfo(FLOAT64)


def check_offsets(steps: Sequence[Any], layer: Layer) -> None:
    """Raise ValueError if the outputs of a layer would lose too much precision.

    `layer` is the layer after the steps. The two factors of a reduced layer are checked one by one.
    Typical inputs are near the centers of the steps, where A x is about -t.
    """
    if isinstance(layer, Reduced):
        layer = Linear(np.vstack([layer.W, layer.U]), np.concatenate([layer.b, layer.c]))
    n = affine_map(steps[0], steps[1:]).A.shape[-1]
    spread, sizes = np.ones(n), np.zeros(n)
    for k, step in enumerate(steps):
        absolute = affine_map(step, steps[k + 1 :], absolute=0.0)
        spread, sizes = _spread_after(step, absolute.matrix, spread), absolute.apply(sizes)
    error = float(LIMITS.eps) * _magnitude(layer, 2 * sizes + spread)
    share = error / max(_typical(layer, spread), float(LIMITS.tiny))
    if share > MAX_ERROR:
        raise ValueError(
            "the inputs are so far from zero, relative to their spread, that the folded "
            f"coefficients are not precise: rounding errors may reach {share:.0e} of the outputs. "
            "Subtract the means of the inputs before you fit the pipeline, or fold only its last "
            "step."
        )


def _spread_after(step: Any, matrix: Array, spread: Array) -> Array:
    """The spread of the outputs of a step: 1 after a scaler, and for inputs without one."""
    if getattr(step, "scale_", None) is not None:
        return np.ones(len(matrix))
    if hasattr(step, "explained_variance_"):
        found = np.sqrt(step.explained_variance_)
        return np.ones(len(matrix)) if getattr(step, "whiten", False) else found
    return np.asarray(matrix @ spread)


def _magnitude(layer: Layer, sizes: Array) -> float:
    """M: the largest output if all coefficients and inputs are replaced by their magnitudes."""
    total = np.abs(layer.W) @ sizes + np.abs(layer.b)
    if isinstance(layer, Quadratic):
        total += np.abs(layer.Q) @ sizes @ sizes
    return float(total.max())


def _typical(layer: Layer, spread: Array) -> float:
    """The largest root mean square of an output, for independent normal inputs."""
    variance, mean = (layer.W**2) @ spread**2, layer.b
    if isinstance(layer, Quadratic):
        variance = variance + 2 * (layer.Q**2) @ spread**2 @ spread**2
        mean = mean + np.diagonal(layer.Q, axis1=1, axis2=2) @ spread**2
    return float(np.sqrt(variance + mean**2).max())
