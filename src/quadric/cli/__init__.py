"""The command line: one file a command; each imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

import quadric
from quadric.cli.data import data
from quadric.cli.reproduce import reproduce

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Networks of quadratic neurons.",
)
app.command(
    epilog="Example: `quadric reproduce`, or `quadric reproduce mnist --full --out report`."
)(reproduce)
app.add_typer(data, name="data")


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"quadric {quadric.__version__}")
        raise typer.Exit


def main() -> None:
    """The `quadric` command."""
    app()
