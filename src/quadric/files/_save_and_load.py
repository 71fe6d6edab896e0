"""The public functions for model files: save and load."""

import json
import os
import struct
from typing import Any

from quadric.errors import ModelFileError
from quadric.files._safetensors import FORMAT, MODEL, canonical, parse, read, to_bytes
from quadric.utils import write_whole


def save(model: Any, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a model to a file.

    The file is replaced atomically: after a crash, it is either the complete old file or the
    complete new one.

    Parameters
    ----------
    model : Network, fitted estimator, or fitted Pipeline that ends in such an estimator
        The steps before the estimator can be any of those listed in docs/guide/model_files.md.
    path : str or path-like
        The file to write.
    extra : dict, optional
        JSON values (strings, numbers, lists, dicts with string keys) to store with the model.
        `info(path)["extra"]` returns them. The command line uses the key "target" and, if the
        model is a Network, "columns" and "classes".

    Raises
    ------
    ModelFileError
        If the model contains something that a model file does not store.
    OSError
        If the file cannot be written. Any existing file is left unchanged.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from quadric import Network
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "xor.quadric"
    >>> save(Network.create(2, [("quadratic", 1, "logistic")], rng=0), path)
    >>> load(path)
    Network(2 -> quadratic 1 logistic; float64)
    """
    from quadric.files._describe import describe, rebuild

    description, tensors = describe(model, extra)
    content = to_bytes(description, tensors)
    try:
        rebuild(parse(canonical({"format": FORMAT, **description})), tensors, len(content))
    except ModelFileError as error:
        raise ModelFileError(
            f"the model is not saved, because it could not be loaded again: {error}"
        ) from None
    try:
        write_whole(path, content)
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot save the model: {error.strerror}. Any existing file is left unchanged",
            os.fspath(path),
        ) from None


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model from a file.

    Nothing in the file is executed, and everything in it is checked.

    Parameters
    ----------
    path : str or path-like
        The file to read.

    Returns
    -------
    Network, estimator or Pipeline
        The saved model.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or has a newer format version.
    OSError
        If the file cannot be read.
    """
    from quadric.files._describe import rebuild

    description, tensors = read(path)
    return rebuild(description, tensors, os.path.getsize(path))


def hash_of(model: Any) -> str:
    """The hash in the file that `save` writes for a model without `extra`.

    Raises ModelFileError if the model cannot be saved.
    """
    from quadric.files._describe import describe

    description, tensors = describe(model, None)
    content = to_bytes(description, tensors)
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    found: str = json.loads(header["__metadata__"][MODEL.key])["hash"]
    return found
