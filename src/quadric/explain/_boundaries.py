"""The quadrics in a model: one for each neuron, and one for each pair of classes."""

from typing import Any

import numpy as np

from quadric.explain._model import SelectedLayer, select_layer
from quadric.geometry import Quadric

CANCELLED = 64 * float(np.finfo(np.float64).eps)


def quadrics(model: Any, layer: int | None = None) -> list[Quadric]:
    """Find the surfaces z = 0 of the neurons of a quadratic or reduced layer.

    Parameters
    ----------
    model : Network, layer, fitted estimator, or Pipeline that ends with one
        The model. Scalers and other affine steps of a pipeline are undone, so the surfaces are in
        the user's own units. Behind a hidden layer they are in the hidden features.
    layer : int, optional
        Index of the layer. The default is the last quadratic or reduced one.

    Returns
    -------
    list of Quadric
        One surface per neuron; its ``value`` is the pre-activation z. The surface of a reduced
        neuron is a pair of planes.
    """
    selected = select_layer(model, layer)
    return selected.surfaces(*selected.functions())


def boundary(model: Any, i: Any, j: Any) -> Quadric:
    """Find the surface where two classes tie.

    With softmax, this surface and not z = 0 separates two classes. It is a quadric, because it is
    the zero set of the difference of two neurons. With more than two classes, a third one may win
    on parts of it.

    Parameters
    ----------
    model : Network, fitted classifier, or Pipeline that ends with one
        The model.
    i, j : class labels
        Two of the classes. For a Network, or for classes that are not numbers, these may also be
        indices of outputs, counted from 0 (0 and 1 for a network with one output).

    Returns
    -------
    Quadric
        The surface; its ``value`` is positive where class i is the more likely one.
    """
    selected = select_layer(model, -1)
    if not selected.chooses_a_class:
        last = selected.network.activations[-1]
        what = "labels that do not exclude each other"
        raise ValueError(
            f"model must choose one of several classes. This {selected.name} has "
            f"{what if selected.multilabel else f'{last!r} outputs'}; use quadrics(model)."
        )
    first, second = _class_index(selected, i), _class_index(selected, j)
    if first == second:
        raise ValueError(f"i and j must be different classes. Got {i!r} twice.")
    return tie(selected, first, second)


def tie(selected: SelectedLayer, i: int, j: int) -> Quadric:
    """z_i - z_j; with a single output, z_1 = z and z_0 = 0."""
    Q, W, b = selected.functions()
    if len(b) == 1:
        sign = 1.0 if i == 1 else -1.0
        difference = Quadric(sign * Q[0], sign * W[0], sign * b[0])
    else:
        difference = Quadric(*(subtract(part[i], part[j]) for part in (Q, W, b)))
    return selected.space.restate(difference)


def subtract(a: Any, b: Any) -> Any:
    """a - b, with zeros where only rounding errors are left."""
    difference = np.asarray(a - b)
    size = float(np.abs(a).max() + np.abs(b).max())
    return np.where(np.abs(difference) <= CANCELLED * size, 0.0, difference)


def _class_index(selected: SelectedLayer, label: Any) -> int:
    """The output that belongs to a class."""
    labels = selected.labels
    if label in labels:
        return labels.index(label)
    # a number is always a label if the classes are numbers
    by_index = selected.classes is None or selected.classes.dtype.kind not in "iufb"
    whole = isinstance(label, (int, np.integer)) and not isinstance(label, bool)
    if not (by_index and whole and 0 <= label < len(labels)):
        raise ValueError(f"the classes are {labels}. Got {label!r} instead.")
    return int(label)
