"""The command-line interface: one file per command, plus shared code.

`_console` prints output and reports errors, and `_inputs` opens model files and tables. A command
may take dataclasses, whose fields are its options (`_inputs.with_options`). So that
`quadric --help` is fast, it imports slow packages when it runs; the names of `tables` and of
`apps.paper` are imported on first use. Start with `main`.
"""

import io
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import quadric
from quadric.utils import require

require("typer", "rich", extra="cli", by="The quadric command")

import typer

from quadric.apps.shell.commands import (
    _certify,
    _compile,
    _complexity,
    _data,
    _evaluate,
    _explain,
    _export,
    _info,
    _optimize,
    _playground,
    _plot,
    _predict,
    _report,
    _reproduce,
    _train,
)
from quadric.apps.shell.commands._inputs import with_options
from quadric.utils import visible

__all__ = ["app", "main"]

EXAMPLES: dict[Callable[..., Any], list[str]] = {
    _train.train: [
        "quadric train iris.csv --target species -o iris.quadric",
        "quadric train iris.csv -t species --cv 5 --json",
        "quadric train big.parquet -t label --stream --resume",
    ],
    _evaluate.evaluate: [
        "quadric evaluate iris.quadric test.csv",
        "quadric evaluate iris.quadric test.parquet --json",
    ],
    _predict.predict: [
        "quadric predict iris.quadric new.csv -o out.csv --proba",
        "quadric predict iris.quadric new.parquet | head",
    ],
    _explain.explain: [
        "quadric explain iris.quadric",
        "quadric explain iris.quadric iris.csv --json",
        "quadric explain iris.quadric iris.csv --row 17",
    ],
    _certify.certify: [
        "quadric certify iris.quadric test.csv -o radii.csv --plot curve.png",
        "quadric certify iris.quadric test.csv --units scaled --min-radius 0.1",
        "quadric certify iris.quadric test.csv --noise 0.1",
    ],
    _optimize.optimize: [
        "quadric optimize yield.quadric runs.csv --maximize --fixed catalyst=B",
        "quadric optimize yield.quadric runs.csv --minimize --within bounds.csv",
    ],
    _plot.plot: [
        "quadric plot iris.quadric iris.csv --inputs petal_length,petal_width",
        "quadric plot iris.quadric iris.csv --what calibration -o calibration.png",
        "quadric plot digits.quadric --image-shape 8x8",
    ],
    _report.report: ["quadric report iris.quadric test.csv -o report.html"],
    _info.info: ["quadric info iris.quadric --json"],
    _export.export: [
        "quadric export iris.quadric iris.onnx",
        "quadric export iris.quadric iris.sql --database sqlite --table flowers",
    ],
    _compile.compile_ahead: ["quadric compile", "quadric compile --json"],
    _complexity.complexity: [
        "quadric complexity 784 30 10 --kinds linear,quadratic",
        "quadric complexity --inputs 30 --neurons 10",
    ],
    _playground.playground: [
        "quadric playground",
        "quadric playground --copy-to public/playground",
    ],
    _reproduce.reproduce: ["quadric reproduce", "quadric reproduce mnist --full --out report"],
}

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Neural networks with quadratic neurons.",
)
for command, examples in EXAMPLES.items():
    epilog = "\n\n".join(["Examples:", *(f"- `{example}`" for example in examples)])
    order = _train.FIRST_OPTIONS if command is _train.train else ()
    name = "compile" if command is _compile.compile_ahead else None  # not to hide the built-in
    app.command(name, epilog=epilog)(with_options(command, order))
app.add_typer(_data.data, name="data")


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"quadric {quadric.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the `quadric` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # "?" for characters that cannot be encoded
            stream.reconfigure(errors="replace")
            if sys.platform == "win32" and not stream.isatty():
                stream.reconfigure(encoding="utf-8")  # in pipes and files, as on other systems
    try:
        app()
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        sys.exit(130)
    except OSError as error:  # stdout cannot be written to
        reason = visible(str(error.strerror or error))
        print(f"error: cannot write the output: {reason}.", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that stdout is not flushed on exit
        sys.exit(1)
