"""`quadric plot`: draw a model. The report draws some of the same figures."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadric.apps.shell import tables
from quadric.apps.shell.commands._console import (
    check_options,
    check_picture,
    errors_as_one_line,
    fail,
    output_path,
    print_line,
    print_notes,
)
from quadric.apps.shell.commands._inputs import (
    ModelArgument,
    TableFormat,
    inputs_and_labels,
    open_model,
)
from quadric.utils import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# what each figure needs: a kind of model, rows, their targets, and axes to draw on
WHAT = {
    "boundaries": {"classifier", "rows", "axes"},
    "surface": {"regressor", "rows", "axes"},
    "dependence": {"rows"},
    "calibration": {"classifier", "rows", "target"},
    "confusion": {"classifier", "rows", "target", "axes"},
    "precision-recall": {"classifier", "rows", "target"},
    "roc": {"classifier", "rows", "target"},
    "residuals": {"regressor", "rows", "target"},
    "spectrum": set(),
    "similarity": {"classifier", "axes"},
    "truncation": {"rows", "target", "axes"},
}


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
    *,
    table_format: TableFormat,
) -> None:
    """Plot a model: boundaries between classes, or the surface of a regressor.

    With more than two inputs, the two most important ones are drawn, and the others are fixed at a
    typical row. --what dependence, calibration, confusion, precision-recall, roc and residuals
    draw other properties of the model; spectrum, similarity and truncation draw the eigenvalues of
    the classes' matrices Q. With --image-shape, plot the eigenvectors of each class's Q as images.
    """
    check_options(
        {
            f"--what must be one of {', '.join(WHAT)}. Got {what!r}.": what not in (None, *WHAT),
            "--image-shape cannot be combined with --what, --inputs or --classes.": (
                image_shape and (what or inputs or classes)
            ),
            "--inputs needs --what boundaries or surface.": (
                inputs and what not in (None, "boundaries", "surface")
            ),
            "--classes needs --what boundaries.": classes and what not in (None, "boundaries"),
        }
    )
    ending = f"-{what}" if what else ""
    path = output_path(output or Path(f"{model.stem}{ending}.png"), inputs=[model, data])
    check_picture(path)
    with errors_as_one_line(ValueError, TypeError):
        opened = open_model(model, data, table_format)
        print_notes(opened.notes)
        if image_shape is not None:
            figure = _eigenvectors(opened, _rows_and_columns(image_shape))
        else:
            what = what or ("boundaries" if opened.view.classes is not None else "surface")
            X, y = _rows(opened) if "rows" in WHAT[what] else (None, None)
            figure = model_figure(
                what,
                opened.model,
                X,
                y,
                opened.target,
                inputs=tables.split_names(inputs or "") or None,
                classes=_classes(opened.view.classes, tables.split_names(classes or "")),
            )
            if opened.source is None and X is not None:
                print_notes(
                    ["No table was given, so no points are drawn; inputs are assumed independent."]
                )
        write_whole(path, figure_bytes(figure, path.suffix))
    print_line(f"Picture: {path}")


def model_figure(
    what: str,
    model: Any,
    X: Any,
    y: Any,
    target: str,
    inputs: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
) -> Figure:
    """Draw the figure with this name; raise TableError if it does not suit the model."""
    from matplotlib.figure import Figure

    from quadric import plotting
    from quadric.models import classes_of

    kind, other = "classifier", "regressor"
    if classes_of(model) is None:
        kind, other = other, kind
    suited = [name for name, needs in WHAT.items() if other not in needs]
    tables.refuse(
        {
            f"--what {what} does not suit a {kind}. Use {', '.join(suited)}.": what not in suited,
            f"--what {what} needs a table with the target: quadric plot MODEL DATA.": (
                "target" in WHAT[what] and y is None
            ),
        }
    )
    figure = Figure(figsize=(7.2, 5.2), layout="constrained", dpi=150)
    ax = figure.subplots() if "axes" in WHAT[what] else None
    draw: dict[str, Callable[[], Any]] = {
        "boundaries": lambda: plotting.plot_boundaries(
            model, X, y, ax, inputs=inputs, classes=classes
        ),
        "surface": lambda: plotting.plot_prediction(model, X, y, ax, inputs=inputs, target=target),
        "dependence": lambda: plotting.plot_dependence(model, X, target=target),
        "calibration": lambda: plotting.plot_calibration(model, X, y),
        "confusion": lambda: plotting.plot_confusion(model, X, y, ax),
        "precision-recall": lambda: plotting.plot_precision_recall(model, X, y),
        "roc": lambda: plotting.plot_roc(model, X, y),
        "residuals": lambda: plotting.plot_residuals(model, X, y, target=target),
        "spectrum": lambda: plotting.plot_spectrum(model),
        "similarity": lambda: plotting.plot_similarity(model, ax=ax),
        "truncation": lambda: plotting.plot_truncation(model, X, y, ax),
    }
    drawn: Figure = draw[what]()  # or its axes
    return drawn if ax is None else figure


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """Return the content of an image file; the same figure always gives the same bytes."""
    import matplotlib

    stream = io.BytesIO()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix.lower())
    with matplotlib.rc_context({"svg.hashsalt": "quadric"}):  # the ids are random otherwise
        figure.savefig(stream, format=suffix.lower().lstrip("."), metadata=metadata)
    return stream.getvalue()


def _eigenvectors(opened: tables.OpenedModel, shape: tuple[int, int]) -> Figure:
    """Draw eigenvectors as images; pixels that the model does not use are left blank."""
    from quadric.plotting import plot_eigenvectors

    schema, pixels = opened.schema, None
    # the columns other than the target are the pixels if there are as many of them
    if schema is not None and len(schema.order) == shape[0] * shape[1]:
        pixels = [schema.order.index(name) for name in schema.names]
    return plot_eigenvectors(opened.model, shape, pixels=pixels)


def _rows(opened: tables.OpenedModel) -> tuple[Any, Any]:
    """Return the rows of the table, or typical rows of the schema if no table was given."""
    if opened.schema is None:
        fail("the model file does not name its columns. Give a table: quadric plot MODEL DATA.")
    if opened.source is not None:
        return inputs_and_labels(opened)
    return tables.typical_rows(opened.schema), None


def _classes(labels: Any, names: list[str]) -> list[Any] | None:
    """Return the model's classes with these names; None if no names are given."""
    if not names:
        return None
    by_text = {} if labels is None else {str(label): label for label in labels}
    tables.refuse(
        {
            "--classes needs a classifier, but this model predicts numbers.": labels is None,
            f"--classes takes two or more of the model's classes, {', '.join(by_text)}. "
            f"Got {', '.join(names)}.": len(set(names)) < 2 or not set(names) <= set(by_text),
        }
    )
    return [by_text[name] for name in names]


def _rows_and_columns(image_shape: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)[x×,](\d+)", image_shape)
    if match is None:
        raise typer.BadParameter(
            f"--image-shape must be rows x columns, such as 8x8. Got {image_shape!r}."
        )
    return int(match[1]), int(match[2])
