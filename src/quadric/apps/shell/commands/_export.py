"""`quadric export`: export a model to ONNX, C, SQL, JavaScript or Python."""

from pathlib import Path
from typing import Annotated, Any

import typer

from quadric.apps.shell.commands._console import errors_as_one_line, output_path, print_line
from quadric.apps.shell.commands._inputs import ModelArgument, check_exists
from quadric.utils import write_whole

# what each ending stands for; SQL has one statement for each database
ENDINGS = {
    ".onnx": "ONNX",
    ".c": "C",
    ".h": "C",
    ".sql": "SQL",
    ".js": "JavaScript",
    ".mjs": "JavaScript",
    ".py": "Python",
}


def export(
    model: ModelArgument,
    output: Annotated[
        Path,
        typer.Argument(help="The file to write. It ends with .onnx, .c, .h, .sql, .js or .py."),
    ],
    database: Annotated[
        str, typer.Option(help="For .sql: sqlite, duckdb or postgresql.")
    ] = "duckdb",
    table: Annotated[str, typer.Option(help="For .sql: the table to score.")] = "data",
    arithmetic: Annotated[str, typer.Option(help="For .c and .h: double or float.")] = "double",
) -> None:
    """Export a model with its preprocessing to C, SQL, JavaScript, Python or ONNX.

    ONNX needs `pip install "quadric[onnx]"`.
    """
    path = output_path(output, "the second argument", inputs=[model])
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise typer.BadParameter(
            f"the output must end with {', '.join(ENDINGS)}. Got {path.name!r}."
        )
    check_exists(model)
    with errors_as_one_line(ValueError, TypeError, NotImplementedError):
        from quadric import files

        loaded = files.load(model)
        if ending == ".onnx":
            from quadric.onnx import export as export_model

            export_model(loaded, path)
        else:
            language = {"SQL": database}.get(ENDINGS[ending], ENDINGS[ending].lower())
            text = _text(loaded, language, arithmetic, table, files.info(model)["hash"])
            write_whole(path, text.encode("utf-8"))
    print_line(f"{ENDINGS[ending]}: {path}")


def _text(model: Any, language: str, arithmetic: str, table: str, digest: str) -> str:
    from quadric.codegen import generate

    return generate(model, language, arithmetic=arithmetic, table=table, digest=digest)
