"""The three things one does with a model file: save, load, and look."""

import os
from typing import Any

from quadric._utils import whole_files
from quadric.errors import ModelFileError
from quadric.model_file import _safetensors as container
from quadric.model_file._canonical_json import canonical, parse


def save(model: Any, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a model to a file, in one step: whatever happens, the old file or the new is there.

    Parameters
    ----------
    model : Network, fitted estimator, or fitted Pipeline with such an estimator as its last step
        In front of the estimator there may be any of the steps that docs/model_files.md lists.
    path : str or path
    extra : dict, optional
        Anything of JSON (text, numbers, lists, dicts with text as keys) to keep with the model;
        `info(path)["extra"]` gives it back. The command line takes a Network's "columns",
        "classes" and "target" from it.

    Raises
    ------
    ModelFileError
        Where the model holds something that a model file does not keep.
    OSError
        Where the file cannot be written; what was there before is untouched.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from quadric import Network
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "xor.quadric"
    >>> save(Network.create(2, [("quadratic", 1, "logistic")], rng=0), path)
    >>> load(path)
    Network(2 -> quadratic 1 logistic; float64)
    """
    from quadric.model_file._describe import describe
    from quadric.model_file._rebuild import rebuild

    description, tensors = describe(model, extra)
    content = container.to_bytes(description, tensors)
    try:
        rebuild(parse(canonical({"format": container.FORMAT, **description})), tensors)
    except ModelFileError as error:
        raise ModelFileError(
            f"the model could not be loaded again, it is not saved: {error}"
        ) from None
    _write(path, content)


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file. Nothing in the file is executed; everything in it is checked.

    Raises
    ------
    ModelFileError
        Where the file is damaged, is no model file, or is of a later format.
    OSError
        Where the file cannot be read.
    """
    from quadric.model_file._rebuild import rebuild

    description, tensors = container.read(path)
    return rebuild(description, tensors)


def info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file says about its model, without reading the numbers.

    Returns
    -------
    dict
        'format', 'hash', 'versions', 'model' (the description), 'extra', and for each tensor
        under 'tensors' its dtype and shape. The hash covers the numbers too, so it is checked by
        `load` and not here.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from quadric import Network
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "xor.quadric"
    >>> save(Network.create(2, [("quadratic", 1, "logistic")], rng=0), path, extra={"by": "me"})
    >>> about = info(path)
    >>> about["model"]["layers"], about["extra"]
    ([{'activation': 'logistic', 'inputs': 2, 'kind': 'quadratic', 'neurons': 1}], {'by': 'me'})
    """
    return container.describe_file(path)


def _write(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`, whole or not at all; the error says what was to be done."""
    try:
        whole_files.write_whole(path, content)
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot save the model: {error.strerror}. What was there before is untouched",
            os.fspath(path),
        ) from None
