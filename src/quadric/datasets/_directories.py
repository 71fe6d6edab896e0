"""Directories that hold a data set's files: which ones to look in, and reading them."""

import os
from pathlib import Path
from typing import TypeAlias

from quadric.datasets._idx import BadFileError, check, read_raw
from quadric.datasets._known_files import Collection, KnownFile
from quadric.errors import DatasetError

Contents: TypeAlias = dict[str, bytes]  # the raw bytes of each of the four files, by name


def named_directory(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The directory that the user named: the argument, or else QUADRIC_DATA."""
    named = data_dir if data_dir is not None else os.environ.get("QUADRIC_DATA") or None
    if named is None:
        return None
    if not isinstance(named, (str, os.PathLike)):
        raise TypeError(f"data_dir must be a path or None. Got {named!r} instead.")
    return Path(named).expanduser()


def cache_directory() -> Path:
    """QUADRIC_CACHE, or else quadric/ in the user's cache directory."""
    if own := os.environ.get("QUADRIC_CACHE"):
        return Path(own).expanduser()
    general = os.environ.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path("~/.cache").expanduser()) / "quadric"


def within(directory: Path, collection: Collection) -> Path:
    """The sub-directory of the data set's name where there is one, or else the directory."""
    own = directory / collection.name
    return own if os.path.isdir(own) else directory


def find(directory: Path, file: KnownFile) -> Path | None:
    """The file under the first of its spellings that is there."""
    for spelling in file.spellings:
        # os.path's functions answer False, not PermissionError, where nobody may look
        if os.path.isfile(path := directory / spelling):
            return path
    return None


def holds_all(directory: Path, collection: Collection) -> bool:
    return all(find(directory, file) for file in collection.files)


def read(
    directory: Path, collection: Collection, advice: str, *, complete: bool = True
) -> Contents:
    """The files, verified; `advice` ends the message of the error if one is not right.

    A missing file is an error, too, unless `complete` is False.
    """
    contents = {}
    for file in collection.files:
        path = find(directory, file)
        if path is not None:
            contents[file.name] = read_file(path, collection, file, advice)
        elif complete:
            reason = (
                "is not there" if os.path.isdir(directory) else "is not there: no such directory"
            )
            raise DatasetError(
                f"{directory / file.name} {reason}. Expected {_describe(collection, file)}, raw or "
                f"as .gz. {advice}"
            )
    return contents


def read_file(path: Path, collection: Collection, file: KnownFile, advice: str) -> bytes:
    """The raw bytes of one file, verified."""
    try:
        content = read_raw(path, file)
        check(content, file)
    except BadFileError as fault:
        raise DatasetError(
            f"{path} is not {_describe(collection, file)}: {fault}. {advice}"
        ) from None
    return content


def _describe(collection: Collection, file: KnownFile) -> str:
    return f"{collection.title}'s {file.name} ({file.size} bytes unpacked, md5 {file.md5})"
