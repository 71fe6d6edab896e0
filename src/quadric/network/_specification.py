"""The layers of a network: checks, creation from a description, and a summary table."""

from collections.abc import Sequence
from typing import Any

from quadric.checks import as_dtype, as_generator, check_choice, check_integer, check_number
from quadric.core import ACTIVATIONS, INITIAL_VALUES, LAYERS, Layer, draw_layers
from quadric.training import Architecture, check_creation


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
        check_choice("activation", activations[l], ACTIVATIONS)
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
        raise ValueError("layers must be different objects: repeated ones would be trained twice.")
    for activation in activations[:-1]:
        if ACTIVATIONS[activation].slope is None:
            raise ValueError(f"activation {activation!r} is supported on the last layer only.")


def _check_specification(layers: Any) -> list[tuple[str, int, str]]:
    """Return the checked (kind, neurons, activation) of each layer."""
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
        check_choice(f"the kind of layers[{l}]", kind, LAYERS)
        check_choice(f"the activation of layers[{l}]", activation, ACTIVATIONS)
        m = check_integer(f"the number of neurons of layers[{l}]", m, at_least=1)
        checked.append((kind, m, activation))
    return checked


def create_layers(
    n_inputs: Any, layers: Any, init: str, scale: Any, rng: Any, dtype: Any
) -> tuple[list[Layer], list[str]]:
    """Return new layers and their activations; takes the arguments of `Network.create`."""
    n = check_integer("n_inputs", n_inputs, at_least=1)
    wanted, generator = as_dtype(dtype), as_generator(rng)
    check_choice("init", init, INITIAL_VALUES)
    if scale is not None:
        scale = check_number("scale", scale, at_least=0)
    specification = _check_specification(layers)
    shapes = [(kind, m) for kind, m, _ in specification]
    if shapes:  # the constructor rejects a network without layers
        check_creation(Architecture(n, shapes, wanted.itemsize), init)
    drawn = draw_layers(n, shapes, init=init, scale=scale, rng=generator, dtype=wanted)
    return drawn, [activation for _, _, activation in specification]


def layer_table(layers: Sequence[Layer], activations: Sequence[str]) -> str:
    """Return a text table with one line per layer, and the total."""
    rows = [("layer", "kind", "inputs", "neurons", "activation", "parameters")]
    for l, (layer, activation) in enumerate(zip(layers, activations, strict=True)):
        n, m = f"{layer.n_inputs:,}", f"{layer.n_outputs:,}"
        rows.append((str(l), layer.kind, n, m, activation, f"{layer.n_parameters:,}"))
    total = sum(layer.n_parameters for layer in layers)
    rows.append(("", "", "", "", "total", f"{total:,}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [f"{{:{side}{width}}}" for side, width in zip("<<>><>", widths, strict=True)]
    return "\n".join("  ".join(cells).format(*row).rstrip() for row in rows)
