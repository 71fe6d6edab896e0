"""`quadric export`: export a model to ONNX."""

from pathlib import Path
from typing import Annotated

import typer

from quadric.apps.shell.commands._console import errors_as_one_line, output_path, print_line
from quadric.apps.shell.commands._inputs import ModelArgument, check_exists


def export(
    model: ModelArgument,
    output: Annotated[Path, typer.Argument(help="The ONNX file to write, such as model.onnx.")],
) -> None:
    """Export a model with its preprocessing to ONNX (needs `pip install "quadric[onnx]"`)."""
    path = output_path(output, "the second argument", inputs=[model])
    if path.suffix.lower() != ".onnx":
        raise typer.BadParameter(f"the output must end with .onnx. Got {path.name!r}.")
    check_exists(model)
    with errors_as_one_line(ValueError, TypeError, NotImplementedError):
        from quadric import files
        from quadric.onnx import export as export_model

        export_model(files.load(model), path)
    print_line(f"ONNX: {path}")
