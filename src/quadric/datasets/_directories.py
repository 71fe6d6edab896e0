"""Directories that hold the files of a data set: where they are, reading and writing them."""

import os
from pathlib import Path
from typing import TypeAlias

from quadric._utils.whole_files import write_whole
from quadric.datasets._idx import BadFileError, Collection, KnownFile, check, read_raw
from quadric.errors import DatasetError

Contents: TypeAlias = dict[str, bytes]  # uncompressed files by name


def named_directory(
    collection: Collection, data_dir: str | os.PathLike[str] | None = None
) -> Path | None:
    """Return the directory named by the argument or by QUADRIC_DATA, or None.

    If it has a subdirectory named after the data set, that one is returned.
    """
    named = data_dir if data_dir is not None else os.environ.get("QUADRIC_DATA") or None
    if named is None:
        return None
    if not isinstance(named, (str, os.PathLike)):
        raise TypeError(f"data_dir must be a path or None. Got {named!r} instead.")
    directory = Path(named).expanduser()
    own = directory / collection.name
    return own if os.path.isdir(own) else directory


def cache_directory() -> Path:
    """Return QUADRIC_CACHE or, if it is not set, quadric/ in the user's cache directory."""
    if own := os.environ.get("QUADRIC_CACHE"):
        return Path(own).expanduser()
    general = os.environ.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path("~/.cache").expanduser()) / "quadric"


def find(directory: Path, file: KnownFile) -> Path | None:
    """Return the path of the file under the first accepted name that exists, or None."""
    paths = (directory / spelling for spelling in file.spellings)
    # os.path.isfile returns False, where Path.is_file raises PermissionError
    return next((path for path in paths if os.path.isfile(path)), None)


def holds_all(directory: Path, collection: Collection) -> bool:
    return all(find(directory, file) for file in collection.files)


def read(
    directory: Path, collection: Collection, advice: str, *, complete: bool = True
) -> Contents:
    """Read and verify the files.

    A bad file raises DatasetError, whose message ends with `advice`. So does a missing file, unless
    `complete` is False.
    """
    contents = {}
    for file in collection.files:
        path = find(directory, file)
        if path is not None:
            contents[file.name] = read_file(path, collection, file, advice)
        elif complete:
            reason = "is missing" if os.path.isdir(directory) else "is missing: no such directory"
            raise DatasetError(
                f"{directory / file.name} {reason}. Expected {_describe(collection, file)}, raw or "
                f"as .gz. {advice}"
            )
    return contents


def read_file(path: Path, collection: Collection, file: KnownFile, advice: str) -> bytes:
    """Read and verify one file; return its uncompressed bytes."""
    try:
        content = read_raw(path, file)
        check(content, file)
    except BadFileError as reason:
        raise DatasetError(
            f"{path} is not {_describe(collection, file)}: {reason}. {advice}"
        ) from None
    return content


def write_all(directory: Path, contents: Contents) -> None:
    """Write every file atomically; raise OSError if the directory is not writable."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(directory / name, content)


def _describe(collection: Collection, file: KnownFile) -> str:
    return f"{collection.title}'s {file.name} ({file.size} bytes uncompressed, MD5 {file.md5})"
