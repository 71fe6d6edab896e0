"""Whether the affine steps of a pipeline can become part of a layer without loss of precision.

The steps compute u = A x + t, where A x and t nearly cancel if the inputs x are far from zero
relative to their spread. A folded layer has terms such as x_i x_j and x_i t_j instead of u_i u_j.
With s = |A||x| + |t|, the sum of their magnitudes is at most M(s), where M is the polynomial of the
layer with the absolute values of its coefficients. The rounding errors are estimated as the machine
epsilon times M(s). Those of random models are about 50 times smaller.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quadric.checks import FLOAT64, Array
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.models import Affine, Beside, Impute, Operation, Select, affine_map, operations

MAX_ERROR = 1e-7  # relative to the largest typical output
LIMITS = np.finfo(FLOAT64)


def check_offsets(steps: Sequence[Any], layer: Layer) -> None:
    """Raise ValueError if the outputs of a layer would lose too much precision.

    `layer` is the layer after the steps. The two factors of a reduced layer are checked one by one.
    Typical inputs are those that the steps have learned. Columns that no step centers, scales or
    imputes are assumed to be near zero.
    """
    if isinstance(layer, Reduced):
        layer = Linear(np.vstack([layer.W, layer.U]), np.concatenate([layer.b, layer.c]))
    learned = _learned_by(steps)
    x, spread = learned.values, np.where(np.isfinite(learned.spreads), learned.spreads, 1.0)
    sizes = np.abs(x)
    for k, step in enumerate(steps):
        x = affine_map(step, steps[k + 1 :]).apply(x)
        absolute = affine_map(step, steps[k + 1 :], absolute=0.0)
        spread, sizes = _spread_after(step, absolute.matrix, spread), absolute.apply(sizes)
    error = float(LIMITS.eps) * _magnitude(layer, sizes + spread)
    share = error / max(_typical(layer.shifted(x), spread), float(LIMITS.tiny))
    if share > MAX_ERROR:
        raise ValueError(
            "the inputs are so far from zero, relative to their spread, that the folded "
            f"coefficients are not precise: rounding errors may reach {share:.0e} of the outputs. "
            "Subtract the means of the inputs before you fit the pipeline, or fold only its last "
            "step."
        )


class Learned(NamedTuple):
    """What steps have learned about columns: a typical value, or 0, and the spread."""

    values: Array
    spreads: Array  # infinite if it is not known


def _learned_by(steps: Sequence[Any]) -> Learned:
    """What the steps have learned about the inputs of the first one.

    If a step has learned no values, those of its outputs, which the next steps know, are mapped
    back.
    """
    found: Learned | None = None
    for k, step in reversed(list(enumerate(steps))):
        change = affine_map(step, steps[k + 1 :])
        own = _learned(operations(step), change.matrix.shape[1])
        if found is not None and not own.values.any():
            own = own._replace(values=change.solve(found.values))
        if found is not None and np.array_equal(change.matrix, np.eye(len(change.t))):
            own = own._replace(spreads=np.minimum(own.spreads, found.spreads))  # an imputer
        found = own
    assert found is not None  # because there are steps
    return found


def _learned(found: Sequence[Operation], n: int) -> Learned:
    """What the operations have learned about their n columns: fill values, centers and scales."""
    values, spreads = np.zeros(n), np.full(n, np.inf)
    for operation in found:
        match operation:
            case Impute(fill=fill) if fill.dtype.kind == "f":
                values = np.nan_to_num(fill.astype(float))
            case Affine(A=A, center=center):
                if A.ndim == 1 and not (A == 1).all():
                    spreads = 1 / np.where(A == 0, 1.0, np.abs(A))
                return Learned(np.where(values == 0, np.nan_to_num(center), values), spreads)
            case Beside(branches=branches):
                for branch in branches:
                    columns = np.asarray(branch.columns)
                    inner = _learned(branch.operations, len(columns))
                    known = values[columns]
                    values[columns] = np.where(known == 0, inner.values, known)
                    spreads[columns] = np.minimum(spreads[columns], inner.spreads)
                break
            case Select():
                break
    return Learned(values, spreads)


def _spread_after(step: Any, matrix: Array, spread: Array) -> Array:
    """The spread of the outputs of a step: 1 after a scaler, and for inputs without one."""
    if getattr(step, "scale_", None) is not None:
        return np.ones(len(matrix))
    if hasattr(step, "explained_variance_"):
        found = np.sqrt(step.explained_variance_)
        return np.ones(len(matrix)) if getattr(step, "whiten", False) else found
    return np.sqrt(matrix**2 @ spread**2)


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
