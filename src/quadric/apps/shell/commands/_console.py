"""Printing, progress bars, error reports and output paths, shared by all commands."""

import errno
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from quadric.errors import DivergenceError, ModelFileError, TableError
from quadric.utils import first_applying, visible

INPUT_ERRORS: tuple[type[Exception], ...] = (
    TableError,
    ModelFileError,
    DivergenceError,
    MemoryError,
    ImportError,
)

# Arguments in the texts of the library, and what a user of the command line writes instead.
OPTIONS = {
    r"quadric\.datasets\.download\('(\w+)', force=True\)": r"quadric data fetch \1 --force",
    r"quadric\.datasets\.download\('(\w+)', '(.*)', force=True\)": (
        r"quadric data fetch \1 --data-dir \2 --force"
    ),
    r"hidden_layer_sizes=\(\)": "`quadric train --equation`",
    r"tails='keep'": "--tails keep",
    r"explain\(model, X\)": "quadric explain MODEL DATA",
    r"classes=\[\.\.\.\]": "--classes",
    r"in `classes`": "in `classes` (--json)",
    r"`top`": "--top",
    r"(top=None|all_outputs=True) lists all": "use --all for more",  # of equal length, for columns
}


def as_options(text: str) -> str:
    """Name the options of the command line in a text of the library, instead of arguments."""
    for argument, option in OPTIONS.items():
        text = re.sub(argument, option, text)
    return text


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged: no markup, no :emoji:, no wrapping.

    Text from files and users must be passed through `visible` first.
    """
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def fail(message: str) -> NoReturn:
    """Print a one-line error to stderr and exit with code 1."""
    make_console(stderr=True).print(
        Text.assemble(("error:", "red"), " ", visible(as_options(message)))
    )
    raise typer.Exit(1)


def print_line(text: str) -> None:
    """Print one line to stdout, with control characters escaped."""
    typer.echo(visible(text))


def print_json(value: Any) -> None:
    """Print a value to stdout as indented JSON, with null for numbers that are not finite."""
    typer.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """The value with None instead of numbers that are not finite, which JSON cannot represent."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(table: Table, rows: Iterable[Iterable[RenderableType]]) -> None:
    """Add rows to a table and print it to stdout."""
    for row in rows:
        table.add_row(*row)
    make_console().print(table)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes to stderr, one per line."""
    for note in notes:
        typer.echo(f"note: {visible(note)}", err=True)


@contextmanager
def progress_bar(
    name: str, *columns: ProgressColumn, disabled: bool = False
) -> Iterator[Callable[[float, float | None, str], None]]:
    """Show a bar if stderr is a terminal; yield a function (done, total, text) that updates it.

    With `disabled`, nothing is shown.
    """
    stderr = make_console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=stderr,
        transient=True,
        disable=disabled or not stderr.is_terminal,
    ) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total, text: bar.update(
            task, completed=done, total=total, description=text
        )


@contextmanager
def compilation_announced(*, disabled: bool = False) -> Iterator[None]:
    """Count the loops that are compiled within the context, on stderr if it is a terminal.

    Nothing is printed if all loops are in the cache. A progress bar shows the lines above itself.
    """
    from quadric.kernels import watch_compilation

    count = 0

    def announce() -> None:
        nonlocal count
        count += 1
        print(f"Compiling once for this machine: loop {count} ...", file=sys.stderr, flush=True)

    if disabled or not make_console(stderr=True).is_terminal:
        yield
        return
    with watch_compilation(announce):
        yield


def writable_directory(path: Path) -> Path:
    """Create the directory if necessary; fail if it cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        fail(f"cannot write to {path}: {error.strerror}. Choose another directory with --out.")
    return path


def output_path(path: Path, option: str = "-o", inputs: Iterable[Path | None] = ()) -> Path:
    """Check in advance that a file can be written and is not one of the inputs.

    An output that is written earlier counts as an input.
    """
    problem = first_applying(
        {
            f"{path} would be overwritten, but it is also an input or another output. Choose "
            f"another file with {option}.": any(_is_same(path, one) for one in inputs if one),
            f"{path} is a directory. Choose a file with {option}.": path.is_dir(),
            f"there is no directory {path.parent}. Create it, or choose another with {option}.": (
                not path.parent.is_dir()
            ),
            f"cannot write {path}: permission denied. Choose another file with {option}.": (
                not os.access(path.parent, os.W_OK | os.X_OK)
                or (path.exists() and not os.access(path, os.W_OK))
            ),
        }
    )
    if problem:
        fail(problem)
    return path


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths are the same file, which need not exist yet."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.absolute() == other.absolute()


def check_options(problems: Mapping[str, object]) -> None:
    """Raise BadParameter with the first of these sentences whose condition is true."""
    if problem := first_applying(problems):
        raise typer.BadParameter(problem)


def check_picture(path: Path, option: str = "-o") -> None:
    """Raise BadParameter unless a figure can be written in the format of this file name."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf", ".jpg", ".webp"):
        raise typer.BadParameter(f"{option} must end with .png, .svg or .pdf. Got {path.name!r}.")


@contextmanager
def errors_as_one_line(*more: type[Exception], hint: str = "") -> Iterator[None]:
    """Report bad input, disk failures and errors of the types `more` on a single line.

    The hint is printed after disk failures, and after Ctrl-C, which exits with code 130.
    """
    try:
        yield
    except KeyboardInterrupt:
        make_console(stderr=True).print(f"\nStopped.{hint}")
        raise typer.Exit(130) from None
    except BrokenPipeError:  # for instance, `quadric predict ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(0) from None
    except INPUT_ERRORS + more as error:
        fail(" ".join(str(error).split()) or type(error).__name__)
    except RuntimeError as error:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") == "0":
            raise
        fail(str(error))  # a function has to be compiled
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        fail(f"{place}{error.strerror or error}.{hint}")


def comma_separated(text: str | None) -> list[str]:
    """Split a string such as 'a,b,c' at its commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]
