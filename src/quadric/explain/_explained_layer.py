"""The layer of a model to explain: its quadrics, its outputs, and the meaning of their signs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from quadric.checks import FLOAT64, Array, subtract, unmasked
from quadric.convert import layer_index
from quadric.core import Layer, Linear
from quadric.geometry import Quadric
from quadric.models import Coordinates, ModelView, check_matrices, layer_to_quadratic
from quadric.network import Network

# What z is, by the activation of the model's outputs; None for a hidden layer.
MEANINGS = {
    None: "z is the neuron's value before its activation; a positive term raises it.",
    "softmax": (
        "z of a class is its score minus the mean score of all classes. A positive term raises the "
        "probability of the class relative to the others, and the model predicts the class with "
        "the largest z."
    ),
    "logistic": (
        "z is the log-odds of a class. A positive term raises its probability, which exceeds 1/2 "
        "where z > 0."
    ),
    "exponential": "z is the logarithm of the predicted {target}; a positive term raises it.",
}
OTHER_MEANING = "z is the neuron's value before its activation, {last}; a positive term raises it."


@dataclass(frozen=True)
class ExplainedLayer:
    """A layer of a model, or of its fold, and the coordinates of its surfaces."""

    view: ModelView
    layer: Layer
    is_last: bool
    space: Coordinates

    @cached_property
    def functions(self) -> tuple[Array, Array, Array]:
        """Q, W and b of the layer as quadratic neurons in float64."""
        neurons = layer_to_quadratic(self.layer.astype(FLOAT64))
        return neurons.Q, neurons.W, neurons.b

    @property
    def activation(self) -> str | None:
        """The activation of the model's outputs, if the layer computes them."""
        return self.view.network.activations[-1] if self.is_last else None

    @property
    def labels(self) -> list[Any]:
        """The classes, or numbers from 0 for a bare network."""
        return self.view.labels.tolist()

    @property
    def is_regression(self) -> bool:
        """Whether the outputs are predicted numbers; those of a bare network may be anything."""
        return self.activation == "identity" and self.view.name != "Network"

    def surfaces(self, Q: Array, W: Array, b: Array) -> list[Quadric]:
        """The surfaces with these coefficients, in the coordinates of `space`."""
        return [self.space.restate(Quadric(*neuron)) for neuron in zip(Q, W, b, strict=True)]

    def outputs(self, target: str) -> list[tuple[Any, str]]:
        """The label of each output, and the left-hand side of its equation."""
        count = self.layer.n_outputs
        if self.is_regression:
            names = [target] if count == 1 else [f"{target} {k}" for k in range(count)]
            return [(name, name) for name in names]
        if self.is_last and self.view.classes is not None:
            # a single output is the score of the second class
            return [(one, "z" if count == 1 else f"z({one})") for one in self.labels[-count:]]
        return [(f"neuron {k}", "z" if count == 1 else f"z{k}") for k in range(count)]


def select_layer(
    model: Any,
    layer: int | None = None,
    names: Sequence[str] | None = None,
    *,
    or_last: bool = False,
) -> ExplainedLayer:
    """Select a layer of a model, by default the last quadratic or reduced one.

    With `or_last`, the last layer is selected if all layers are linear. `names` replaces the
    feature names that the model was fitted with.
    """
    if isinstance(model, Layer):
        model = Network([model], ["identity"])
    view = ModelView.of(
        model, "a Network, a layer, a fitted quadric estimator, or a Pipeline that ends with one"
    )
    network = view.network
    curved = [l for l, layer in enumerate(network.layers) if not isinstance(layer, Linear)]
    if layer is None and not (curved or or_last):
        raise ValueError(
            f"this {view.name} has no quadratic or reduced layer, so it has no quadrics: its "
            "boundaries consist of planes. Its weights are in layers[l].W."
        )
    default = curved[-1] if curved else -1
    l = layer_index(network, default if layer is None else layer)
    space, chosen = view.layer_coordinates(l, names), network.layers[l]
    check_matrices(chosen.n_outputs, max(chosen.n_inputs, space.widest))
    return ExplainedLayer(view, chosen, l == len(network.layers) - 1, space)


def quadrics(model: Any, layer: int | None = None) -> list[Quadric]:
    """Find the surfaces z = 0 of the neurons of a quadratic or reduced layer.

    Parameters
    ----------
    model : Network, layer, fitted estimator, or Pipeline that ends with one
        The model. Scalers and other affine steps of a pipeline are undone, so the surfaces are in
        the user's own units. After a hidden layer, they are in the hidden features.
    layer : int, optional
        Index of the layer. The default is the last quadratic or reduced one.

    Returns
    -------
    list of Quadric
        One surface per neuron; its ``value`` is the pre-activation z. The surface of a reduced
        neuron is a pair of planes.
    """
    selected = select_layer(model, layer)
    return selected.surfaces(*selected.functions)


def boundary(model: Any, i: Any, j: Any) -> Quadric:
    """Find the surface where two classes tie.

    With softmax, two classes are separated by this surface rather than by z = 0. It is a quadric,
    because it is the zero set of the difference of two neurons. With more than two classes, a third
    one may score higher on parts of it.

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
    if not selected.view.chooses_a_class:
        outputs = (
            "labels that are not mutually exclusive"
            if selected.view.is_multilabel
            else f"{selected.activation!r} outputs"
        )
        raise ValueError(
            f"model must choose one of several classes. This {selected.view.name} has {outputs}; "
            "use quadrics(model)."
        )
    first, second = class_index(selected, i), class_index(selected, j)
    if first == second:
        raise ValueError(f"i and j must be different classes. Got {i!r} twice.")
    return tie(selected, first, second)


def tie(selected: ExplainedLayer, i: int, j: int) -> Quadric:
    """z_i - z_j; with a single output, z_1 = z and z_0 = 0."""
    Q, W, b = selected.functions
    if len(b) == 1:
        sign = 1.0 if i == 1 else -1.0
        difference = Quadric(sign * Q[0], sign * W[0], sign * b[0])
    else:
        difference = Quadric(*(subtract(part[i], part[j]) for part in (Q, W, b)))
    return selected.space.restate(difference)


def class_index(selected: ExplainedLayer, label: Any) -> int:
    """The output that belongs to a class."""
    labels, classes = selected.labels, selected.view.classes
    if label in labels:
        return labels.index(label)
    # a number is always a label if the classes are numbers
    by_index = classes is None or classes.dtype.kind not in "iufb"
    whole = isinstance(label, (int, np.integer)) and not isinstance(label, bool)
    if not (by_index and whole and 0 <= label < len(labels)):
        raise ValueError(f"the classes are {labels}. Got {label!r} instead.")
    return int(label)


def two_classes(selected: ExplainedLayer, between: Any) -> tuple[int, int]:
    """The outputs of two classes; a model with one logistic output has two classes."""
    classes = selected.layer.n_outputs > 1 or selected.view.chooses_a_class
    pair = list(between) if isinstance(between, (tuple, list)) else []
    if classes and len(pair) == 2:
        i, j = (class_index(selected, label) for label in pair)
        if i != j:
            return i, j
    raise ValueError(
        f"between must hold two different classes of the model, {selected.labels}. "
        f"Got {between!r} instead."
    )


def points_of(selected: ExplainedLayer, X: Any, argument: str = "X") -> Array:
    """The user's data in the coordinates of the layer, checked."""
    X, n = unmasked(argument, X), len(selected.space.names)
    try:
        Z = selected.space.reach(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument} must be data that the model accepts: {error}") from error
    if Z.ndim != 2 or Z.shape[1] != n or not len(Z):
        raise ValueError(f"{argument} must have shape (n_samples, {n}). Got {Z.shape} instead.")
    if not np.isfinite(Z).all():
        raise ValueError(
            f"{argument} must be finite. Got an infinite or missing entry; drop the rows that "
            "contain one."
        )
    return Z


def meaning(selected: ExplainedLayer, target: str) -> str:
    """What z is, and what the sign of a term means."""
    last, view = selected.activation, selected.view
    two_classes = view.network.n_outputs == 1 and not view.is_multilabel and len(view.labels) > 1
    if last == "logistic" and two_classes:
        no, yes = selected.labels[-2:]
        return (
            f"z = log(p({yes}) / p({no})). A positive term favors {yes} and a negative one "
            f"{no}; the model predicts {yes} where z > 0."
        )
    if selected.is_regression:
        return f"A positive term raises the predicted {target}."
    return MEANINGS.get(last, OTHER_MEANING).format(target=target, last=last)
