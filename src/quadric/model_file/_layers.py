"""A layer's parameters under the names and shapes of model files and fixtures.

They are those of the layer, except for a quadratic layer's triangles: `packed`, shape
(n(n+1)/2, m), is stored as ``Q``, shape (m, n(n+1)/2).
"""

from collections.abc import Mapping

import numpy as np

from quadric._utils.arrays import Array
from quadric.core._layers import LAYERS, Layer
from quadric.errors import ModelFileError

STORED_NAMES = {"packed": "Q"}


def stored_names(kind: str) -> list[str]:
    """The names under which a layer of that kind is stored."""
    return [STORED_NAMES.get(field, field) for field in LAYERS[kind].fields]


def to_tensors(layer: Layer) -> dict[str, Array]:
    """The layer's parameters by their stored names."""
    return {
        STORED_NAMES.get(field, field): _transposed(field, array)
        for field, array in layer.arrays().items()
    }


def from_tensors(kind: str, n: int, m: int, tensors: Mapping[str, Array]) -> Layer:
    """The layer of that kind with n inputs and m neurons, from copies of its tensors."""
    dtype = tensors["W"].dtype
    arrays = {}
    for field, shape in LAYERS[kind].shapes(n, m).items():
        name = STORED_NAMES.get(field, field)
        array = _transposed(field, tensors[name])
        if array.shape != shape or 0 in shape:
            raise ModelFileError(f"{name} has shape {tensors[name].shape}")
        if array.dtype != dtype or dtype not in (np.float32, np.float64):
            raise ModelFileError(f"{name} has dtype {array.dtype}")
        if not np.isfinite(array).all():
            raise ModelFileError(f"{name} is not finite")
        arrays[field] = np.array(array, order="C")
    return LAYERS[kind].of(**arrays)


def _transposed(field: str, array: Array) -> Array:
    return np.ascontiguousarray(array.T) if field == "packed" else array
