"""Whole figures of a model for the command line, by name."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from quadric.plotting._boundaries import plot_boundaries, plot_prediction
from quadric.plotting._dependence import plot_dependence
from quadric.plotting._scores import plot_calibration, plot_confusion, plot_residuals
from quadric.plotting._spectrum import plot_similarity, plot_spectrum, plot_truncation
from quadric.utils import first_applying


@dataclass(frozen=True)
class Wanted:
    """What a figure shows.

    Attributes
    ----------
    model : fitted estimator, Pipeline or TableNetwork
    X, y : data
        The inputs; the true classes or numbers, or None.
    target : str
        The name of what is predicted.
    inputs, classes : list or None
        The two inputs and the classes that are drawn; None for the default.
    """

    model: Any
    X: Any
    y: Any
    target: str
    inputs: Sequence[str] | None = None
    classes: Sequence[Any] | None = None

    @property
    def classifies(self) -> bool:
        return getattr(self.model, "classes_", None) is not None


def _on_axes(draw: Callable[..., Any]) -> Callable[[Wanted], Figure]:
    """A figure with one plot, which `draw` adds to its axes."""

    def figure_of(wanted: Wanted) -> Figure:
        figure = Figure(figsize=(7.2, 5.2), layout="constrained", dpi=150)
        draw(wanted, figure.subplots())
        return figure

    return figure_of


FIGURES: dict[str, Callable[[Wanted], Figure]] = {
    "boundaries": _on_axes(
        lambda w, ax: plot_boundaries(w.model, w.X, w.y, ax, inputs=w.inputs, classes=w.classes)
    ),
    "surface": _on_axes(
        lambda w, ax: plot_prediction(w.model, w.X, w.y, ax, inputs=w.inputs, target=w.target)
    ),
    "dependence": lambda w: plot_dependence(w.model, w.X, target=w.target),
    "calibration": lambda w: plot_calibration(w.model, w.X, w.y),
    "confusion": _on_axes(lambda w, ax: plot_confusion(w.model, w.X, w.y, ax)),
    "residuals": lambda w: plot_residuals(w.model, w.X, w.y, target=w.target),
    "spectrum": lambda w: plot_spectrum(w.model),
    "similarity": _on_axes(lambda w, ax: plot_similarity(w.model, ax=ax)),
    "truncation": _on_axes(lambda w, ax: plot_truncation(w.model, w.X, w.y, ax)),
}
CLASSIFIERS_ONLY = ("boundaries", "calibration", "confusion", "similarity")
REGRESSORS_ONLY = ("surface", "residuals")
NEED_TARGET = ("calibration", "confusion", "residuals", "truncation")
NEED_NO_ROWS = ("spectrum", "similarity")


def model_figure(what: str, wanted: Wanted) -> Figure:
    """Draw the figure with this name; raise ValueError if it does not suit the model."""
    kind = "classifier" if wanted.classifies else "regressor"
    suited = [
        name
        for name in FIGURES
        if name not in (REGRESSORS_ONLY if wanted.classifies else CLASSIFIERS_ONLY)
    ]
    problem = first_applying(
        {
            f"--what {what} does not suit a {kind}. Use {', '.join(suited)}.": what not in suited,
            f"--what {what} needs a table with the target: quadric plot MODEL DATA.": (
                what in NEED_TARGET and wanted.y is None
            ),
        }
    )
    if problem:
        raise ValueError(problem)
    return FIGURES[what](wanted)


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """The content of an image file; the same figure always gives the same bytes."""
    stream = io.BytesIO()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix.lower())
    figure.savefig(stream, format=suffix.lower().lstrip("."), metadata=metadata)
    return stream.getvalue()
