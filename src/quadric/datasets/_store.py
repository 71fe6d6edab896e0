"""Writing the files of a data set: each is there whole or not at all."""

from pathlib import Path

from quadric._utils.whole_files import write_whole
from quadric.datasets._directories import Contents


def write_all(directory: Path, contents: Contents) -> None:
    """Write every file; OSError where the directory does not allow it."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(directory / name, content)
