"""Selection of the layer of a model to explain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quadric._utils.arrays import Array
from quadric._utils.memory import check_limit
from quadric.convert._layers import layer_index, layer_to_quadratic
from quadric.core._layers import Layer, Linear
from quadric.explain._coordinates import Space, affine_space, hidden_space
from quadric.geometry import Quadric
from quadric.network import Network
from quadric.pipelines._table import split


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
        """The classes; those of a bare network are numbered from 0."""
        if self.classes is not None:
            return self.classes.tolist()
        return list(range(max(2, self.network.n_outputs)))

    def functions(self) -> tuple[Array, Array, Array]:
        """Q, W and b of the layer's neurons in float64, for any kind of layer."""
        layer = layer_to_quadratic(self.network.astype("float64").layers[self.layer])
        return layer.Q, layer.W, layer.b

    def surfaces(self, Q: Array, W: Array, b: Array) -> list[Quadric]:
        """The surfaces with these coefficients, in the coordinates of `space`."""
        return [self.space.restate(Quadric(*neuron)) for neuron in zip(Q, W, b, strict=True)]


def select_layer(
    model: Any, layer: int | None = None, names: Sequence[str] | None = None
) -> SelectedLayer:
    """Select a layer of a model, by default the last quadratic or reduced one.

    `names` replaces the feature names that the model was fitted with.
    """
    if isinstance(model, Layer):
        model = Network([model], ["identity"])
    named_steps, estimator = split(model)
    steps = [step for _, step in named_steps]
    network = estimator if isinstance(estimator, Network) else _network_of(estimator)
    name = type(estimator).__name__
    l = _last_curved(network, name) if layer is None else layer_index(network, layer)
    n, m = network.layers[l].n_inputs, network.layers[l].n_outputs
    check_limit(
        5 * 8 * m * n * n,
        f"{m:,} neurons with {n:,} inputs as matrices",
        "Explain a model with fewer inputs.",
    )
    fitted_names = getattr(model, "feature_names_in_", None)
    before = network.layers[:l]
    if all(isinstance(layer, Linear) for layer in before) and set(network.activations[:l]) <= {
        "identity"
    }:
        space = affine_space(steps, before, network.n_inputs, names, fitted_names)
    else:
        space = hidden_space(steps, Network(before, network.activations[:l]), fitted_names)
    classes = getattr(estimator, "classes_", None)
    multilabel = bool(getattr(estimator, "_is_multilabel", False))
    return SelectedLayer(name, network, l, classes, multilabel, space)


def _network_of(estimator: Any) -> Network:
    if hasattr(estimator, "network_"):
        return estimator.network_
    own = type(estimator).__module__.startswith("quadric")
    advice = "; call fit first." if own else "."
    if hasattr(estimator, "best_estimator_"):
        advice = "; pass its best_estimator_."
    raise TypeError(
        "model must be a Network, a layer, a fitted quadric estimator, or a Pipeline that ends "
        f"with one. Got {type(estimator).__name__}{advice}"
    )


def _last_curved(network: Network, name: str) -> int:
    curved = [l for l, layer in enumerate(network.layers) if not isinstance(layer, Linear)]
    if not curved:
        raise ValueError(
            f"this {name} has no quadratic or reduced layer, so it has no quadrics: its boundaries "
            "consist of planes. Its weights are in layers[l].W."
        )
    return curved[-1]
