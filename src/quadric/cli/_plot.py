"""`quadric plot`: draw a classifier."""

import re
from pathlib import Path
from typing import Annotated

import typer

from quadric._utils.whole_files import write_whole
from quadric.cli._console import (
    comma_separated,
    errors_as_one_line,
    output_path,
    print_line,
    print_notes,
)
from quadric.cli._model_loading import open_model


def plot(
    model: Annotated[Path, typer.Argument(readable=False, help="A model file.")],
    data: Annotated[
        Path | None, typer.Argument(readable=False, help="A table whose rows are drawn as points.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture to write: .png, .svg or .pdf.")
    ] = Path("model.png"),
    classes: Annotated[
        str | None,
        typer.Option(help="For more than two inputs: two classes, such as versicolor,virginica."),
    ] = None,
    image_shape: Annotated[
        str | None,
        typer.Option(help="If the inputs are pixels: rows x columns of the image, such as 8x8."),
    ] = None,
) -> None:
    """Plot a classifier: its regions (two inputs) or slices of the boundary between two classes.

    With --image-shape, plot the eigenvectors of each class's Q as images.
    """
    path = output_path(output, inputs=[model, data])
    if path.suffix.lower() not in (".png", ".svg", ".pdf", ".jpg", ".webp"):
        raise typer.BadParameter(f"the output must end with .png, .svg or .pdf. Got {path.name!r}.")
    with errors_as_one_line(ValueError, TypeError):
        from quadric.plotting import _classifier as plots

        opened = open_model(model, data)
        print_notes(opened.notes)
        X, y = opened.inputs_and_labels()
        if image_shape is None:
            figure, notes = plots.plot_classifier(opened.model, X, y, comma_separated(classes))
            print_notes(notes)
        else:
            shape, schema = _rows_and_columns(image_shape), opened.schema
            places = () if schema is None else (schema.places, len(schema.order))
            figure = plots.plot_image_classifier(opened.model, shape, *places)
        write_whole(path, plots.figure_bytes(figure, path.suffix))
    print_line(f"Picture: {path}")


def _rows_and_columns(image_shape: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)[x×,](\d+)", image_shape)
    if match is None:
        raise typer.BadParameter(
            f"--image-shape must be rows x columns, such as 8x8. Got {image_shape!r}."
        )
    return int(match[1]), int(match[2])
