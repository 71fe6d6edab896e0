"""What the commands share: how to say that something is wrong, and where to write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

__all__ = ["fail", "writable_directory"]


def fail(message: str) -> NoReturn:
    """The user's mistake: one clear line on stderr, exit code 1."""
    # escaped, since a path may hold what Rich would take for markup
    Console(stderr=True).print(
        f"[red]error:[/red] {escape(message)}", highlight=False, soft_wrap=True
    )
    raise typer.Exit(1)


def writable_directory(path: Path, option: str = "--out") -> Path:
    """The directory, made if need be; one line and exit code 1 if nothing can be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied", str(path))
    except OSError as error:
        fail(f"cannot write to {path}: {error.strerror}. Choose another directory with {option}.")
    return path
