"""Checks of what a network is made of: its layers, or the description of its layers."""

from collections.abc import Sequence
from typing import Any

from quadric._utils import checks
from quadric.core._activations import ACTIVATIONS, get_activation
from quadric.core._layers import LAYERS, Layer


def check_stack(layers: Sequence[Layer], activations: Sequence[str]) -> None:
    """Raise ValueError or TypeError unless the layers fit together."""
    if not layers or len(layers) != len(activations):
        raise ValueError(
            "layers and activations must have the same length, at least 1. "
            f"Got {len(layers)} and {len(activations)}."
        )
    for l, layer in enumerate(layers):
        if not isinstance(layer, tuple(LAYERS.values())):
            raise TypeError(
                f"layers[{l}] must be a Linear, Quadratic or Reduced layer. Got {layer!r}."
            )
        get_activation(activations[l])
        if l and layer.n_inputs != layers[l - 1].n_outputs:
            raise ValueError(
                f"layers[{l}] must have {layers[l - 1].n_outputs} inputs, one for each neuron of "
                f"the previous layer. Got {layer.n_inputs} instead."
            )
        if layer.dtype != layers[0].dtype:
            raise ValueError(
                f"all layers must have the same dtype. Got {layers[0].dtype} and {layer.dtype}."
            )
    if len({id(layer) for layer in layers}) < len(layers):
        raise ValueError("layers must be different objects: one twice would be trained twice.")
    if "softmax" in activations[:-1]:
        raise ValueError("activation 'softmax' must be on the last layer only.")


def check_specification(layers: Any) -> list[tuple[str, int, str]]:
    """Return (kind, neurons, activation) of each layer that `Network.create` shall make."""
    if isinstance(layers, str) or not isinstance(layers, Sequence):
        raise TypeError(
            f"layers must be a sequence of (kind, neurons, activation). Got {layers!r}."
        )
    checked = []
    for l, spec in enumerate(layers):
        if isinstance(spec, str) or not isinstance(spec, Sequence) or len(spec) != 3:
            raise ValueError(
                f"layers[{l}] must be (kind, neurons, activation), such as "
                f"('quadratic', 10, 'logistic'). Got {spec!r} instead."
            )
        kind, m, activation = spec
        checks.check_choice(f"the kind of layers[{l}]", kind, LAYERS)
        checks.check_choice(f"the activation of layers[{l}]", activation, ACTIVATIONS)
        m = checks.check_integer(f"the number of neurons of layers[{l}]", m, at_least=1)
        checked.append((kind, m, activation))
    return checked
