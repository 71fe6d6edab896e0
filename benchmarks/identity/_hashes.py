"""Results as text that determines them to the last bit."""

import dataclasses
import hashlib
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator

import quadric
from quadric.geometry import Quadric

Results = Iterator[tuple[str, Any]]  # names and values
FORMAT = {"format", "hash", "versions"}  # entries of a model file that may change
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def plain_array(array: np.ndarray) -> Any:
    if array.dtype == object:
        return ["object", list(array.shape), plain(array.ravel().tolist())]
    return [array.dtype.str, list(array.shape), sha256(np.ascontiguousarray(array).tobytes())]


def plain_layer(layer: Any) -> Any:
    return [layer.kind, {name: plain(getattr(layer, name, None)) for name in "WbQUc"}]


def plain_estimator(model: BaseEstimator) -> Any:
    """Return the parameters and the fitted attributes."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    fitted = {name: plain(getattr(model, name)) for name in sorted(names) if hasattr(model, name)}
    return [repr(model), fitted]


def plain_fields(value: Any) -> Any:
    """Return the public fields of a dataclass and its text, unless it contains times."""
    names = [field.name for field in dataclasses.fields(value)]
    public = [name for name in names if not name.startswith("_") and name != "seconds"]
    text = None if "seconds" in names else str(value)
    return [type(value).__name__, {name: plain(getattr(value, name)) for name in public}, text]


# The first type that fits decides.
CONVERSIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((bool, type(None)), lambda value: value),
    (np.generic, lambda value: plain_array(np.asarray(value))),
    (str, lambda value: ADDRESS.sub("0x", value)),
    (int, lambda value: value),
    (float, float.hex),
    (bytes, sha256),
    (np.ndarray, plain_array),
    (dict, lambda value: [[plain(key), plain(item)] for key, item in value.items()]),
    ((list, tuple), lambda value: [plain(item) for item in value]),
    (BaseException, lambda value: [type(value).__name__, plain(str(value))]),
    ((sparse.spmatrix, sparse.sparray), lambda value: plain(value.toarray())),
    (torch.Tensor, lambda value: plain_array(value.detach().numpy())),
    ((quadric.Linear, quadric.Quadratic, quadric.Reduced), plain_layer),
    (quadric.Network, lambda value: plain([value.activations, value.layers])),
    (Quadric, lambda value: plain([value.Q, value.w, value.b, value.kind])),
    (BaseEstimator, plain_estimator),
)


def plain(value: Any) -> Any:
    """Return a value as numbers, texts and lists that JSON can represent."""
    for types, conversion in CONVERSIONS:
        if isinstance(value, types):
            return conversion(value)
    if dataclasses.is_dataclass(value):
        return plain_fields(value)
    raise TypeError(f"no conversion for {type(value)}")


def canonical(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=True, indent=1)


def outcome(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, list[str]]:
    """Return the result of a call, or its error, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*arguments, **options)
        except Exception as error:
            result = error
    return result, [str(warning.message) for warning in caught]


def model_file(path: Path) -> Any:
    """Return the description and the tensors in a model file, without its format and hash."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    description = json.loads(header.pop("__metadata__")["quadric"])
    kept = {name: value for name, value in description.items() if name not in FORMAT}
    return [kept, header, data[end:]]


def save_and_load(model: Any, **options: Any) -> tuple[Any, Any]:
    """Return the content of the file that `save` writes, and the model that `load` returns."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.quadric"
        quadric.save(model, path, **options)
        return model_file(path), quadric.load(path)
