"""What the commands share: how to say that something is wrong, and where to write."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

from quadric._utils.text import visible


def make_console(*, stderr: bool = False) -> Console:
    """A terminal that takes text as it is: no markup, no :emoji: and no wrapping in names.

    What comes from files and users goes through `visible` first.
    """
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def fail(message: str) -> NoReturn:
    """The user's mistake: one clear line on stderr, exit code 1."""
    line = Text.assemble(("error:", "red"), " ", visible(message))
    make_console(stderr=True).print(line)
    raise typer.Exit(1)


def print_line(text: str) -> None:
    """One line on stdout, whatever names are in it."""
    typer.echo(visible(text))


def writable_directory(path: Path, option: str = "--out") -> Path:
    """The directory, made if need be; one line and exit code 1 if nothing can be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied", str(path))
    except OSError as error:
        fail(f"cannot write to {path}: {error.strerror}. Choose another directory with {option}.")
    return path


def output_path(path: Path, option: str = "-o", inputs: Iterable[Path | None] = ()) -> Path:
    """A file that can be written, asked before any work is done; one line and exit code 1 if not.

    A file that is there stays as it is until it is replaced; none of the `inputs` may be replaced.
    """
    for source in inputs:
        if source is not None and path.exists() and source.exists() and path.samefile(source):
            fail(f"{path} is also what is read: it would be lost. Give another name with {option}.")
    directory = path.parent
    if path.is_dir():
        fail(f"{path} is a directory. Give the name of a file with {option}.")
    if not directory.is_dir():
        fail(f"there is no directory {directory}. Make it, or choose another place with {option}.")
    if not os.access(directory, os.W_OK | os.X_OK) or (
        path.exists() and not os.access(path, os.W_OK)
    ):
        fail(f"cannot write {path}: permission denied. Choose another place with {option}.")
    return path


@contextmanager
def one_line() -> Iterator[None]:
    """The user's mistakes, and the disk's, as one line each and exit code 1."""
    from quadric.errors import DivergenceError, ModelFileError, TableError

    try:
        yield
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(0) from None
    except (TableError, ModelFileError, DivergenceError, MemoryError, ImportError) as error:
        fail(" ".join(str(error).split()) or type(error).__name__)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        fail(f"{place}{error.strerror or error}.")


def names(text: str | None) -> list[str]:
    """The parts of 'a,b,c'."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def say(lines: Iterable[str]) -> None:
    """What was done besides what was asked, on stderr."""
    console = make_console(stderr=True)
    for line in lines:
        console.print(f"note: {visible(line)}")
