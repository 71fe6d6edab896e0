"""The interaction matrices Q of a model that folds to one quadratic layer."""

from typing import Any, NamedTuple

import numpy as np

from quadric.checks import Array, check_choice
from quadric.convert import centers, check_matrices, fold_to_one_layer, without_mean
from quadric.explain._coordinates import affine_space
from quadric.explain._meaning import outputs
from quadric.explain._model import SelectedLayer, class_index, tie


class Interactions(NamedTuple):
    """The matrices Q of the outputs, shape (m, n, n), and what they refer to."""

    Q: Array
    labels: list[Any]
    names: list[str]
    note: str


def interactions(
    model: Any,
    *,
    between: tuple[Any, Any] | None = None,
    centered: bool | None = None,
    units: str = "inputs",
) -> Interactions:
    """The matrices Q of a model that folds to one layer; the arguments are those of `spectrum`."""
    check_choice("units", units, ("inputs", "scaled"))
    selected = _selected(model)
    subtracts = centers(selected.network, centered)
    Q, W, b = selected.functions()
    labels = [label for label, _ in outputs(selected, len(b), "y")]
    if selected.chooses_a_class and selected.classes is None and len(b) > 1:
        labels = selected.labels
    note = selected.space.note.replace("The equations are", "The eigenvectors are")
    if units == "scaled":
        note = "The eigenvectors are in the inputs, each measured in its standard deviations."
    if between is not None:
        i, j = _two_classes(selected, between)
        surfaces = [tie(selected, i, j)]
        labels = [f"{selected.labels[i]} - {selected.labels[j]}"]
    else:
        if subtracts:
            Q = without_mean(Q)
            note += " The mean Q of all outputs is subtracted."
        surfaces = selected.surfaces(Q, W, b)
    Q = np.stack([surface.Q for surface in surfaces])
    if units == "scaled":
        if selected.space.typical is None:
            raise ValueError(
                "units='scaled' needs a Pipeline whose first step is a scaler. Use units='inputs'."
            )
        sizes = selected.space.typical[1]
        sizes = np.where(sizes > 0, sizes, 1.0)
        Q = Q * np.outer(sizes, sizes)
    return Interactions(Q, labels, selected.space.names, note)


def _two_classes(selected: SelectedLayer, between: Any) -> tuple[int, int]:
    """The outputs of two classes; a model with one logistic output has two classes."""
    classes = selected.network.n_outputs > 1 or selected.chooses_a_class
    pair = list(between) if isinstance(between, (tuple, list)) else []
    if classes and len(pair) == 2:
        i, j = (class_index(selected, label) for label in pair)
        if i != j:
            return i, j
    raise ValueError(
        f"between must hold two different classes of the model, {selected.labels}. "
        f"Got {between!r} instead."
    )


def _selected(model: Any) -> SelectedLayer:
    """The only layer of a folded model."""
    steps, estimator, folded = fold_to_one_layer(model)
    names = getattr(model, "feature_names_in_", None)
    space = affine_space(steps, (), folded.n_inputs, None, names)
    check_matrices(folded.n_outputs, space.widest)
    return SelectedLayer(
        type(estimator).__name__,
        folded,
        0,
        getattr(estimator, "classes_", None),
        bool(getattr(estimator, "_is_multilabel", False)),
        space,
    )
