"""The layer of a model to explain, and the quadrics of its neurons and pairs of classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.checks import Array, subtract
from quadric.convert import check_matrices, layer_index, layer_to_quadratic
from quadric.core import Layer, Linear
from quadric.explain._coordinates import Space, affine_space, hidden_space
from quadric.geometry import Quadric
from quadric.models import split_network
from quadric.network import Network


@dataclass(frozen=True)
class SelectedLayer:
    """A layer of the network inside a model, and the coordinates of its surfaces."""

    name: str
    network: Network
    layer: int
    classes: Array | None
    multilabel: bool
    space: Space

    @property
    def is_last(self) -> bool:
        return self.layer == len(self.network.layers) - 1

    @property
    def chooses_a_class(self) -> bool:
        """Whether the outputs are the scores of mutually exclusive classes."""
        return self.network.activations[-1] in ("logistic", "softmax") and not self.multilabel

    @property
    def labels(self) -> list[Any]:
        """The classes, or numbers from 0 for a bare network."""
        numbered = range(max(2, self.network.n_outputs))
        return list(numbered) if self.classes is None else self.classes.tolist()

    def functions(self) -> tuple[Array, Array, Array]:
        """Q, W and b of the layer's neurons in float64, for any kind of layer."""
        layer = layer_to_quadratic(self.network.astype("float64").layers[self.layer])
        return layer.Q, layer.W, layer.b

    def surfaces(self, Q: Array, W: Array, b: Array) -> list[Quadric]:
        """The surfaces with these coefficients, in the coordinates of `space`."""
        return [self.space.restate(Quadric(*neuron)) for neuron in zip(Q, W, b, strict=True)]


def select_layer(
    model: Any,
    layer: int | None = None,
    names: Sequence[str] | None = None,
    *,
    or_last: bool = False,
) -> SelectedLayer:
    """Select a layer of a model, by default the last quadratic or reduced one.

    With `or_last`, the last layer is selected if all layers are linear. `names` replaces the
    feature names that the model was fitted with.
    """
    if isinstance(model, Layer):
        model = Network([model], ["identity"])
    accepted = "a Network, a layer, a fitted quadric estimator, or a Pipeline that ends with one"
    named_steps, estimator, network = split_network(model, accepted)
    steps = [step for _, step in named_steps]
    name = type(estimator).__name__
    curved = [l for l, layer in enumerate(network.layers) if not isinstance(layer, Linear)]
    if layer is None and not curved and or_last:
        layer = -1
    if layer is None and not curved:
        raise ValueError(
            f"this {name} has no quadratic or reduced layer, so it has no quadrics: its boundaries "
            "consist of planes. Its weights are in layers[l].W."
        )
    l = curved[-1] if layer is None else layer_index(network, layer)
    fitted_names = getattr(model, "feature_names_in_", None)
    before = network.layers[:l]
    if all(isinstance(layer, Linear) for layer in before) and set(network.activations[:l]) <= {
        "identity"
    }:
        space = affine_space(steps, before, network.n_inputs, names, fitted_names)
    else:
        space = hidden_space(steps, Network(before, network.activations[:l]), fitted_names)
    n, m = network.layers[l].n_inputs, network.layers[l].n_outputs
    check_matrices(m, max(n, space.widest))
    classes = getattr(estimator, "classes_", None)
    multilabel = bool(getattr(estimator, "_is_multilabel", False))
    return SelectedLayer(name, network, l, classes, multilabel, space)


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
    return selected.surfaces(*selected.functions())


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
    if not selected.chooses_a_class:
        last = selected.network.activations[-1]
        what = "labels that are not mutually exclusive"
        raise ValueError(
            f"model must choose one of several classes. This {selected.name} has "
            f"{what if selected.multilabel else f'{last!r} outputs'}; use quadrics(model)."
        )
    first, second = class_index(selected, i), class_index(selected, j)
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


def class_index(selected: SelectedLayer, label: Any) -> int:
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
