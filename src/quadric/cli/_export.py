"""`quadric export`: a model for other runtimes."""

import importlib
from pathlib import Path
from typing import Annotated

import typer

from quadric.cli._console import fail, one_line, output_path, print_line
from quadric.cli._model_loading import load_model


def export(
    model: Annotated[Path, typer.Argument(readable=False, help="A model file.")],
    output: Annotated[Path, typer.Argument(help="The ONNX file to write: name.onnx.")],
) -> None:
    """Write a model as ONNX, preprocessing included (needs `pip install quadric[onnx]`)."""
    path = output_path(output, "the second argument", inputs=[model])
    if path.suffix.lower() != ".onnx":
        raise typer.BadParameter(f"the name of an ONNX file ends with .onnx. Got {path.name!r}.")
    with one_line():
        fitted = load_model(model)
        onnx = importlib.import_module("quadric.onnx")  # an extra may be missing: then one line
        try:
            onnx.export(fitted, path)
        except (ValueError, TypeError, NotImplementedError) as error:
            fail(" ".join(str(error).split()))
    print_line(f"ONNX: {path}")
