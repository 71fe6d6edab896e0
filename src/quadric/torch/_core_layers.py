"""One layer of torch as one of the core's: the same numbers, bit for bit, on the CPU."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from quadric._utils.arrays import Array
from quadric.core import _layers as layers


def core_layer(module: Any, name: str) -> layers.Layer:
    """A copy of a Linear (torch's too), Quadratic or Reduced layer; `name` is for messages.

    What the module does without (bias=False, linear=False) is zero in the copy.
    """
    kind = layers.LAYERS[getattr(module, "kind", "linear")]
    held = {}
    for field in kind.fields:
        tensor = getattr(module, _attribute(module, field))
        if tensor is not None:
            held[field] = _numbers(f"{field} of {name}", tensor)
    n, m, dtype = module.in_features, module.out_features, np.result_type(*held.values())
    arrays = {}
    for field, shape in kind.shapes(n, m).items():
        array = held.get(field, np.zeros(shape, dtype))
        arrays[field] = np.array(array, dtype=dtype, order="C")
    return kind.of(**arrays)


def _attribute(module: Any, field: str) -> str:
    if isinstance(module, nn.Linear):
        return {"W": "weight", "b": "bias"}[field]
    return field


def _numbers(name: str, tensor: Tensor) -> Array:
    """A parameter as an array of float32 or float64."""
    with torch.no_grad():
        tensor = tensor if tensor.dtype == torch.float64 else tensor.to(torch.float32)
    array: Array = tensor.detach().cpu().numpy()
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite. Got an infinite or undefined entry: has training diverged?"
        )
    return array
