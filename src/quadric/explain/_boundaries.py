"""The quadrics in a model: one for each neuron, and one for each pair of classes."""

from typing import Any

import numpy as np

from quadric.explain._model import SelectedLayer, select_layer
from quadric.geometry import Quadric

CANCELLED = 64 * float(np.finfo(np.float64).eps)


def quadrics(model: Any, layer: int | None = None) -> list[Quadric]:
    """The surfaces z = 0 of the neurons of a quadratic or reduced layer.

    Parameters
    ----------
    model : Network, layer, fitted estimator, or Pipeline that ends with one
        Scalers and other affine steps of a pipeline are undone: the surfaces are in the user's
        own units. Behind a hidden layer they are in the hidden features.
    layer : int, optional
        Which layer; the default is the last that is quadratic or reduced.

    Returns
    -------
    list of Quadric
        ``value`` is the neuron's pre-activation z. A reduced neuron gives a pair of planes.
    """
    parts = select_layer(model, layer)
    Q, W, b = parts.functions()
    return [parts.space.restate(Quadric(*neuron)) for neuron in zip(Q, W, b, strict=True)]


def boundary(model: Any, i: Any, j: Any) -> Quadric:
    """The surface where two classes tie; ``value`` is positive where class i is the likelier one.

    With softmax, this and not z = 0 is what separates two classes. It is a quadric, too: the
    difference of the two neurons. (With more than two classes a third may win there.)

    Parameters
    ----------
    model : Network, fitted classifier, or Pipeline that ends with one
    i, j
        Two of the classes; for a Network, or for classes that are not numbers, also two outputs by
        their places, counted from 0 (0 and 1 where there is only one output).
    """
    parts = select_layer(model, -1)
    _check_classes(parts)
    first, second = class_index(parts, i), class_index(parts, j)
    if first == second:
        raise ValueError(f"i and j must be different classes. Got {i!r} twice.")
    return parts.space.restate(difference(parts, first, second))


def difference(parts: SelectedLayer, i: int, j: int) -> Quadric:
    """z_i - z_j in the layer's inputs; a single output is z_1 beside z_0 = 0."""
    Q, W, b = parts.functions()
    if len(b) == 1:
        sign = 1.0 if i == 1 else -1.0
        return Quadric(sign * Q[0], sign * W[0], sign * b[0])
    return Quadric(less(Q[i], Q[j]), less(W[i], W[j]), less(b[i], b[j]))


def less(a: Any, b: Any) -> Any:
    """a - b, where what is left of equal numbers but for rounding is zero."""
    difference = np.asarray(a - b)
    size = float(np.abs(a).max() + np.abs(b).max())
    return np.where(np.abs(difference) <= CANCELLED * size, 0.0, difference)


def n_classes(parts: SelectedLayer) -> int:
    return max(2, parts.network.n_outputs)


def class_index(parts: SelectedLayer, label: Any) -> int:
    """Where a class stands among the outputs."""
    count = n_classes(parts)
    if parts.classes is not None:
        known = parts.classes.tolist()
        if label in known:
            return known.index(label)
        if parts.classes.dtype.kind in "iufb":  # a number is a label here, not a place
            raise ValueError(f"the classes are {known}. Got {label!r} instead.")
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool) and 0 <= label < count:
        return int(label)
    known = list(range(count)) if parts.classes is None else parts.classes.tolist()
    raise ValueError(f"the classes are {known}. Got {label!r} instead.")


def _check_classes(parts: SelectedLayer) -> None:
    last = parts.network.activations[-1]
    if last not in ("logistic", "softmax") or parts.multilabel:
        what = "labels that do not exclude each other" if parts.multilabel else f"{last!r} outputs"
        raise ValueError(
            f"classes tie only where one of them is chosen; this {parts.name} has {what}. "
            "Use quadrics(model) for its neurons."
        )
