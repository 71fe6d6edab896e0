"""The command line: one file a command; each imports what it needs when it runs."""

import io
import os
import sys
from typing import Annotated

import quadric
from quadric._utils.extras import require

require("typer", "rich", extra="cli", by="The quadric command")

import typer

from quadric._utils.text import visible
from quadric.cli._complexity import complexity
from quadric.cli._data import data
from quadric.cli._explain import explain
from quadric.cli._export import export
from quadric.cli._info import info
from quadric.cli._plot import plot
from quadric.cli._predict import predict
from quadric.cli._reproduce import reproduce
from quadric.cli._train import train

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Networks of quadratic neurons.",
)
app.command(
    epilog="Examples: `quadric train iris.csv --target species -o iris.quadric`, `quadric train "
    "iris.csv -t species --cv 5 --json`, `quadric train big.parquet -t label --stream --resume`."
)(train)
app.command(
    epilog="Examples: `quadric predict iris.quadric new.csv -o out.csv --proba`, `quadric predict "
    "iris.quadric new.parquet | head`."
)(predict)
app.command(
    epilog="Examples: `quadric explain iris.quadric`, `quadric explain iris.quadric iris.csv "
    "--json`."
)(explain)
app.command(
    epilog="Examples: `quadric plot iris.quadric iris.csv -o iris.png --classes versicolor,"
    "virginica`, `quadric plot digits.quadric --image-shape 8x8`."
)(plot)
app.command(epilog="Example: `quadric info iris.quadric --json`.")(info)
app.command(epilog="Example: `quadric export iris.quadric iris.onnx`.")(export)
app.command(epilog="Example: `quadric complexity 784 30 10 --kinds linear,quadratic`.")(complexity)
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows few signs shows "?"
            stream.reconfigure(errors="replace")
    try:
        app()
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        sys.exit(130)
    except OSError as error:  # stdout itself cannot be written to
        reason = visible(str(error.strerror or error))
        print(f"error: cannot write the output: {reason}.", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nor can it be flushed at the end
        sys.exit(1)
