"""Composition of operations and steps into an affine map, and of layers into a quadratic layer.

`composed` expresses affine operations as one map, `affine_map` does so for a fitted step, and
`partly_affine` for those branches of a step that are affine. `compose` expresses two layers as one,
and `fold_layers` all layers of a network that can be expressed as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from quadric.checks import FLOAT64, Array
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.errors import expect
from quadric.geometry import AffineMap, Quadric
from quadric.models._operations import (
    Affine,
    Beside,
    Impute,
    Operation,
    Select,
    fill_after,
    is_missing,
    width_after,
)
from quadric.models._supported_steps import UnknownStepError, find, n_inputs, operations
from quadric.network import Network
from quadric.utils import check_limit

# ------------------------------------------------------------ operations as an affine map

# why an operation is not affine
NOT_AFFINE = {
    "Clip": "clips its outputs",
    "Impute": "replaces values other than NaN",
    "Indicate": "adds columns that mark missing values",
    "OneHot": "encodes categories",
    "Ordinal": "encodes categories",
    "Bin": "sorts values into bins",
    "Power": "raises values to powers",
}


class NotAffineError(TypeError):
    """Raised for a step that is not of the form z = A u + t."""


def composed(
    operations: Sequence[Operation],
    n: int,
    last: Array | None = None,
    absolute: float | None = None,
) -> AffineMap:
    """Compose operations on n columns into one map z = A u + t, or raise NotAffineError.

    `last` holds the values with which the next operations replace missing values. If `absolute` is
    given, every number is replaced by its absolute value, and `absolute` is added to the inputs and
    outputs. Constants of columns without values are added to the absolute values.
    """
    whole = identity(n)
    for i, operation in enumerate(operations):
        width = width_after([operation], len(whole.t))
        fill = fill_after(operations[i + 1 :], width, last)
        whole = _map_of(operation, fill).after(whole)
    if absolute is None:
        return whole
    sizes = composed([_size(one, absolute) for one in operations], n, last)
    return AffineMap(np.abs(sizes.A), np.abs(sizes.t) + np.abs(whole.t))


def _map_of(operation: Operation, fill: Array) -> AffineMap:
    """One operation as a map; `fill` holds the fill values of the operations that follow."""
    match operation:
        case Affine(A=A, t=t):
            missing = np.isnan(t)  # columns without values in `fit`
            if not missing.any():
                return AffineMap(A, t)
            # if `fill` is NaN too, a later step drops the column, and the constant does not matter
            constants = np.where(np.isnan(fill), 0.0, fill)
            return AffineMap(np.where(missing, 0.0, A), np.where(missing, constants, t))
        case Select():
            return _selection(operation.indices, operation.n)
        case Impute() if is_missing(operation.missing):
            texts = operation.fill.dtype == object and any(
                isinstance(v, str) for v in operation.fill
            )
            expect(not texts, NotAffineError("imputes text"))
            return identity(len(operation.fill))
        case Beside():
            maps = [
                composed(branch.operations, len(branch.columns), part).after(
                    _selection(branch.columns, operation.n)
                )
                for branch, part in operation.split(fill)
            ]
            return AffineMap.simplest(
                np.vstack([part.matrix for part in maps]), np.concatenate([part.t for part in maps])
            )
    raise NotAffineError(NOT_AFFINE[type(operation).__name__])


def _size(operation: Operation, more: float) -> Operation:
    """The operation with the absolute values of its numbers; `more` enlarges its inputs."""
    match operation:
        case Affine(A=A, center=center, shift=shift):
            return Affine(np.abs(A), -np.abs(center) - more, np.abs(shift) + more)
        case Beside(branches=branches):
            inner = [
                replace(b, operations=tuple(_size(one, more) for one in b.operations))
                for b in branches
            ]
            return replace(operation, branches=tuple(inner))
    return operation


def identity(n: int) -> AffineMap:
    return AffineMap(np.ones(n), np.zeros(n))


def _selection(columns: Any, n: int) -> AffineMap:
    """The map from n columns to some of them."""
    A = np.equal.outer(np.asarray(columns), np.arange(n)).astype(float)
    return AffineMap(A, np.zeros(len(A)))


# ------------------------------------------------------------------ steps as affine maps


@dataclass(frozen=True)
class PartlyAffine:
    """A ColumnTransformer or FeatureUnion with affine and non-affine branches.

    Attributes
    ----------
    map : AffineMap
        The map from the coordinates to the step's outputs.
    origins : list of (source, index)
        The source of each coordinate: ('input', column) or ('output', column) of the step.
    """

    map: AffineMap
    origins: list[tuple[str, int]]


def affine_map(step: Any, after: Sequence[Any] = (), *, absolute: float | None = None) -> AffineMap:
    """Return a fitted step as a map z = A u + t.

    Raises NotAffineError if the step is not of this form. The map is valid for rows without missing
    values, which an imputer does not change. A scaler returns missing values for a column that had
    no values in `fit`. The map treats such a column as a constant: the value with which the next
    steps, `after`, replace missing values. If `absolute` is given, every number in the step is
    replaced by its absolute value, and `absolute` is added to its inputs and outputs. This map
    bounds rounding errors.
    """
    try:
        inside, fill = operations(step), fill_values(after) if after else None
        return composed(inside, n_inputs(step) or 0, fill, absolute)
    except UnknownStepError as error:
        raise NotAffineError(error.reason) from None
    except NotAffineError as error:
        raise NotAffineError(f"{find(step).name} {error}") from None


def partly_affine(
    step: Any, after: Sequence[Any] = (), *, absolute: float | None = None
) -> PartlyAffine | None:
    """Return the affine branches of a step; None if the step has no branches.

    The step may also have branches that are not affine. `after` and `absolute` have the same
    meaning as in `affine_map`.
    """
    try:
        inside = operations(step)
    except UnknownStepError:
        return None
    if len(inside) != 1 or not isinstance(inside[0], Beside):
        return None
    whole = inside[0]
    width = width_after([whole], whole.n)
    fills = fill_values(after) if after else np.full(width, np.nan)
    maps: list[AffineMap] = []
    origins: list[tuple[str, int]] = []
    for (branch, outputs), (_, fill) in zip(
        whole.split(range(width)), whole.split(fills), strict=True
    ):
        try:
            maps.append(composed(branch.operations, len(branch.columns), fill, absolute))
            origins += [("input", int(column)) for column in branch.columns]
        except NotAffineError:
            maps.append(identity(branch.width))
            origins += [("output", column) for column in outputs]
    A, t = block_diag(*[part.matrix for part in maps]), np.concatenate([part.t for part in maps])
    return PartlyAffine(AffineMap.simplest(A, t), origins)


def undo_steps(surface: Quadric, steps: Sequence[Any]) -> Quadric:
    """Express a surface in the outputs of the last step as a surface in the inputs of the first."""
    for k, step in reversed(list(enumerate(steps))):
        change = affine_map(step, steps[k + 1 :])
        surface = surface.preimage(change.A, change.t)
    return surface


def fill_values(steps: Sequence[Any]) -> Array:
    """The values with which the steps replace missing values in each column, or NaN."""
    every = [operation for step in steps for operation in operations(step)]
    return fill_after(every, n_inputs(steps[0]) or 0)


# ----------------------------------------------------------- layers as a quadratic layer
# Successive layers are one layer as long as their composition has degree two at most: all layers
# but one are linear, and no activation comes between them.


def fold_layers(network: Network) -> Network:
    """Fold every stretch of layers whose composition has degree two at most, in float64."""
    found = stretches(network.astype(FLOAT64))
    wholes = [reduce(compose, layers) for layers, _ in found]
    folded = [layer_to_quadratic(one) if isinstance(one, Reduced) else one for one in wholes]
    return Network(folded, [activation for _, activation in found])


def stretches(network: Network) -> list[tuple[list[Layer], str]]:
    """Successive layers that are together of degree two at most, and the activation after them."""
    found: list[tuple[list[Layer], str]] = []
    for layer, activation in zip(network.layers, network.activations, strict=True):
        before, last = found[-1] if found else ([], "")
        curved = [one for one in (*before, layer) if not isinstance(one, Linear)]
        if last == "identity" and len(curved) < 2:
            found[-1] = [*before, layer], activation
        else:
            found.append(([layer], activation))
    return found


def compose(first: Layer, second: Layer) -> Layer:
    """The layer that computes second(first(x)); one of the two is linear."""
    n, m = first.n_inputs, second.n_outputs
    factored = isinstance(first, Linear) and isinstance(second, (Linear, Reduced))
    check_limit(
        3 * 8 * m * n * (1 if factored else n),
        f"{m:,} {second.kind if factored else 'quadratic'} neurons with {n:,} inputs",
        "Fold a model with fewer inputs.",
    )
    try:
        with np.errstate(all="ignore"):
            if isinstance(first, Linear):
                return _after_linear(first, second)
            assert isinstance(second, Linear)
            return _before_linear(first, second)
    except ValueError:  # a coefficient is not finite
        raise ValueError(
            "the folded layer is larger than floating-point numbers can represent. Products of the "
            "weights overflow; measure the inputs in other units."
        ) from None


def _after_linear(first: Linear, second: Layer) -> Layer:
    A, moved = first.W, second.shifted(first.b)
    if isinstance(moved, Quadratic):
        return Quadratic(moved.W @ A, moved.b, A.T @ moved.Q @ A)
    if isinstance(moved, Reduced):
        return Reduced(moved.W @ A, moved.b, moved.U @ A, moved.c)
    return Linear(moved.W @ A, moved.b)


def _before_linear(first: Layer, second: Linear) -> Quadratic:
    P, b = second.W, second.b
    if isinstance(first, Quadratic):
        return Quadratic(P @ first.W, P @ first.b + b, packed=first.packed @ P.T)
    assert isinstance(first, Reduced)
    # the neurons' own matrices are never built: there may be hundreds of them
    Q = np.stack([(first.W.T * p) @ first.U for p in P])
    W = P @ (first.c[:, None] * first.W + first.b[:, None] * first.U)
    return Quadratic(W, P @ (first.b * first.c) + b, Q)


def layer_to_quadratic(layer: Layer) -> Quadratic:
    """A copy with quadratic neurons."""
    if isinstance(layer, Quadratic):
        return layer.copy()
    if isinstance(layer, Reduced):
        W, b, U, c = layer.W, layer.b, layer.U, layer.c
        with np.errstate(all="ignore"):
            parts = c[:, None] * W + b[:, None] * U, b * c, W[:, :, None] * U[:, None, :]
        expect(
            all(np.isfinite(part).all() for part in parts),
            ValueError(
                "the quadratic layer is larger than floating-point numbers can represent. Products "
                "of the weights of the reduced layer overflow."
            ),
        )
        return Quadratic(*parts)
    m, n = layer.W.shape
    return Quadratic(layer.W, layer.b, np.zeros((m, n, n), dtype=layer.dtype))


def check_matrices(m: int, n: int) -> None:
    """Check the limit before m matrices of size n x n are built and decomposed."""
    check_limit(
        (4 * m + 6) * 8 * n * n,
        f"{m:,} quadratic neurons with {n:,} inputs as matrices",
        "Use a model with fewer inputs.",
    )
