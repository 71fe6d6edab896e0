"""`quadric plot`: draw a model."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from quadric.apps.shell.commands._console import (
    check_picture,
    errors_as_one_line,
    fail,
    output_path,
    print_line,
    print_notes,
)
from quadric.apps.shell.commands._model_loading import OpenedModel, open_model
from quadric.apps.shell.commands._table_options import (
    DecimalOption,
    EncodingOption,
    ModelArgument,
    ThousandsOption,
    check_exists,
    split_names,
    table_format,
)
from quadric.utils import first_applying, write_whole

WHAT = (
    "boundaries",
    "surface",
    "dependence",
    "calibration",
    "confusion",
    "residuals",
    "spectrum",
    "similarity",
    "truncation",
)

NO_TABLE = "No table was given, so no points are drawn; inputs are assumed independent."


def plot(
    model: ModelArgument,
    data: Annotated[
        Path | None, typer.Argument(readable=False, help="A table whose rows are drawn as points.")
    ] = None,
    what: Annotated[
        str | None,
        typer.Option(
            help=f"What to draw: {', '.join(WHAT)}. "
            "By default, boundaries of a classifier and the surface of a regressor."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The picture to write: .png, .svg or .pdf. By default, named after the model.",
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(help="Two inputs to draw, such as age,income; by default the most important."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(help="Draw only these classes, such as versicolor,virginica."),
    ] = None,
    image_shape: Annotated[
        str | None,
        typer.Option(help="If the inputs are pixels: rows x columns of the image, such as 8x8."),
    ] = None,
    encoding: EncodingOption = None,
    decimal: DecimalOption = ".",
    thousands: ThousandsOption = "",
) -> None:
    """Plot a model: boundaries between classes, or the surface of a regressor.

    With more than two inputs, the two most important ones are drawn, and the others are fixed at a
    typical row. --what dependence, calibration, confusion and residuals draw other properties of
    the model; spectrum, similarity and truncation draw the eigenvalues of the classes' matrices Q.
    With --image-shape, plot the eigenvectors of each class's Q as images.
    """
    problems = {
        f"--what must be one of {', '.join(WHAT)}. Got {what!r}.": (
            what is not None and what not in WHAT
        ),
        "--image-shape cannot be combined with --what, --inputs or --classes.": (
            image_shape and (what or inputs or classes)
        ),
        "--inputs needs --what boundaries or surface.": (
            inputs and what not in (None, "boundaries", "surface")
        ),
        "--classes needs --what boundaries.": classes and what not in (None, "boundaries"),
    }
    if problem := first_applying(problems):
        raise typer.BadParameter(problem)
    ending = f"-{what}" if what else ""
    path = Path(f"{model.stem}{ending}.png") if output is None else output
    path = output_path(path, inputs=[model, data])
    check_picture(path)
    check_exists(model, data)
    with errors_as_one_line(ValueError, TypeError):
        from quadric.plotting import (
            NEED_NO_ROWS,
            Wanted,
            figure_bytes,
            model_figure,
            plot_image_classifier,
        )

        opened = open_model(model, data, table_format(encoding, decimal, thousands))
        print_notes(opened.notes)
        if image_shape is None:
            needed = what not in NEED_NO_ROWS
            X, y = _rows(opened) if needed else (None, None)
            target = "y" if opened.schema is None else opened.schema.target
            pair = split_names(inputs or "") or None
            chosen = _classes(opened.model, split_names(classes or ""))
            wanted = Wanted(opened.model, X, y, target, pair, chosen)
            default = "boundaries" if wanted.classifies else "surface"
            figure = model_figure(what or default, wanted)
            if opened.source is None and needed:
                print_notes([NO_TABLE])
        else:
            shape, schema = _rows_and_columns(image_shape), opened.schema
            places = () if schema is None else (schema.places, len(schema.order))
            figure = plot_image_classifier(opened.model, shape, *places)
        write_whole(path, figure_bytes(figure, path.suffix))
    print_line(f"Picture: {path}")


def _rows(opened: OpenedModel) -> tuple[Any, Any]:
    """Return the rows of the table, or typical rows of the schema if no table was given."""
    if opened.schema is None:
        fail("the model file does not name its columns. Give a table: quadric plot MODEL DATA.")
    if opened.source is not None:
        return opened.inputs_and_labels()
    from quadric.apps.shell.tables._preprocessing import typical_rows

    return typical_rows(opened.schema), None


def _classes(model: Any, names: list[str]) -> list[Any] | None:
    """Return the model's classes with these names; None if no names are given."""
    if not names:
        return None
    labels = getattr(model, "classes_", None)
    if labels is None:
        raise ValueError("--classes needs a classifier, but this model predicts numbers.")
    by_text = {str(label): label for label in labels}
    if len(set(names)) < 2 or not set(names) <= set(by_text):
        raise ValueError(
            f"--classes takes two or more of the model's classes, {', '.join(by_text)}. "
            f"Got {', '.join(names)}."
        )
    return [by_text[name] for name in names]


def _rows_and_columns(image_shape: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)[x×,](\d+)", image_shape)
    if match is None:
        raise typer.BadParameter(
            f"--image-shape must be rows x columns, such as 8x8. Got {image_shape!r}."
        )
    return int(match[1]), int(match[2])
