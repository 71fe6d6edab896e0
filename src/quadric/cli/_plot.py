"""`quadric plot`: a picture of what a model has learned."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from quadric.cli._console import fail, names, one_line, output_path, print_line, say
from quadric.cli._explain import inputs_from
from quadric.cli._model_loading import open_model


def plot(
    model: Annotated[Path, typer.Argument(readable=False, help="A model file.")],
    data: Annotated[
        Path | None, typer.Argument(readable=False, help="A table whose points are drawn, too.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: .png, .svg or .pdf.")
    ] = Path("model.png"),
    classes: Annotated[
        str | None, typer.Option(help="For more than two inputs: the two classes, as a,b.")
    ] = None,
    image_shape: Annotated[
        str | None, typer.Option(help="For inputs that are pixels: rows x columns, as 8x8.")
    ] = None,
) -> None:
    """Draw a classifier: its regions (two inputs), or slices of the boundary of two classes.

    With --image-shape, what each class looks for in an image: the eigenvectors of its Q.
    """
    path = output_path(output, inputs=[model, data])
    if path.suffix.lower() not in (".png", ".svg", ".pdf", ".jpg", ".webp"):
        raise typer.BadParameter(f"a picture ends with .png, .svg or .pdf. Got {path.name!r}.")
    with one_line():
        opened = open_model(model, data)
        say(opened.notes)
        X, y = inputs_from(opened)
        try:
            figure = _draw(opened.model, opened.schema, X, y, names(classes), image_shape)
        except (ValueError, TypeError) as error:
            fail(" ".join(str(error).split()))
        from quadric._utils.whole_files import write_whole
        from quadric.plotting._classifier import figure_bytes

        write_whole(path, figure_bytes(figure, path.suffix))
    print_line(f"Picture: {path}")


def _draw(model: Any, schema: Any, X: Any, y: Any, pair: list[str], image_shape: str | None) -> Any:
    from quadric.plotting import _classifier as plots

    if image_shape is not None:
        match = re.fullmatch(r"(\d+)[x×,](\d+)", image_shape)
        if match is None:
            raise typer.BadParameter(
                f"--image-shape is rows x columns, as 8x8. Got {image_shape!r}."
            )
        shape = (int(match[1]), int(match[2]))
        if schema is None:
            return plots.plot_image_classifier(model, shape)
        return plots.plot_image_classifier(model, shape, schema.places, len(schema.order))
    figure, said = plots.plot_classifier(model, X, y, pair)
    say(said)
    return figure
