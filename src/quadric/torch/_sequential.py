"""A user's Sequential, taken apart: which layers there are, and which activation behind each."""

from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from torch import nn

from quadric.torch._feedforward import Network
from quadric.torch._inspection import has_forward_hooks, has_own_forward
from quadric.torch._layers import Linear, Quadratic, Reduced

LAYERS = (nn.Linear, Linear, Quadratic, Reduced)
NOTHING = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.AlphaDropout)  # in prediction
ACTIVATIONS = {nn.Sigmoid: "logistic", nn.Tanh: "tanh", nn.ReLU: "relu", nn.Softmax: "softmax"}
HINTS = {
    nn.BatchNorm1d: " Fold it into the layer before: torch.nn.utils.fusion.fuse_linear_bn_eval.",
    nn.LogSoftmax: " Leave it out, and give activation='softmax'.",
}


class Stage(NamedTuple):
    """A layer and the activation behind it, with their dotted names in the module."""

    layer: nn.Module
    place: str
    activation: str = "identity"
    end: str = ""


def take_apart(module: nn.Module) -> list[Stage]:
    """The stages of a module; ValueError, with the place, at what no Network can do."""
    stages: list[Stage] = []
    for place, part in _parts(module, ""):
        if isinstance(part, nn.Module) and _is_layer(part):
            if stages and stages[-1].activation == "softmax":
                raise ValueError(
                    f"softmax must be the last activation. At {stages[-1].end!r} it comes before "
                    f"{shown(place, part)}."
                )
            stages.append(Stage(part, place))
            continue
        name = part if isinstance(part, str) else _activation(part, place, first=not stages)
        if name == "identity":
            continue
        if not stages:
            raise ValueError(f"{shown(place, part)} must come after a layer. None is before it.")
        before = stages[-1]
        if before.activation != "identity":
            raise ValueError(
                f"{shown(place, part)} must come after a layer. It comes after the activation "
                f"{before.activation!r} at {before.end!r}; a Network has one a layer."
            )
        stages[-1] = before._replace(activation=name, end=place)
    if not stages:
        raise ValueError(f"module must have a layer. This {type(module).__name__} has none.")
    return stages


def shown(place: str, part: nn.Module | str) -> str:
    """For messages: what stands where."""
    name = f"activation {part!r}" if isinstance(part, str) else type(part).__name__
    return f"the {name} at {place!r}" if place else f"the {name}"


def _parts(module: nn.Module, place: str) -> Iterator[tuple[str, nn.Module | str]]:
    """What a module runs, one after the other, with names; activations of a Network as text."""
    if has_forward_hooks(module):
        raise ValueError(
            f"{shown(place, module)} carries forward hooks, which a Network cannot run: remove "
            "them first (handle.remove(); of weight_norm and others, make the weights plain)."
        )
    prefix = f"{place}." if place else ""
    if isinstance(module, Network) and not has_own_forward(module, Network):
        for l, (layer, activation) in enumerate(
            zip(module.layers, module.activations, strict=True)
        ):
            yield from _parts(layer, f"{prefix}layers.{l}")
            yield f"{prefix}activations[{l}]", activation
    elif isinstance(module, nn.Sequential) and not has_own_forward(module, nn.Sequential):
        for key, child in module._modules.items():
            assert child is not None
            yield from _parts(child, f"{prefix}{key}")
    else:
        yield place, module


def _is_layer(module: nn.Module) -> bool:
    return any(isinstance(module, of) and not has_own_forward(module, of) for of in LAYERS)


def _activation(module: nn.Module, place: str, *, first: bool) -> str:
    """The name of an activation; 'identity' for what does nothing."""
    kind = type(module)
    if "forward" in vars(module):
        _refuse(module, place)
    if kind in NOTHING:
        return "identity"
    if isinstance(module, nn.Flatten):
        if first and (module.start_dim, module.end_dim) == (1, -1):
            return "identity"
        raise ValueError(
            f"{shown(place, module)} must stand in front of all layers, with start_dim=1 and "
            f"end_dim=-1. Got {module!r}."
        )
    if kind not in ACTIVATIONS:
        _refuse(module, place)
    if isinstance(module, nn.Softmax) and module.dim not in (1, -1):
        raise ValueError(
            f"{shown(place, module)} must run over the neurons, dim=-1 or dim=1. "
            f"Got dim={module.dim}."
        )
    return ACTIVATIONS[kind]


def _refuse(module: nn.Module, place: str) -> NoReturn:
    raise ValueError(
        f"{shown(place, module)} is nothing that a Network has: it has Linear, Quadratic and "
        "Reduced layers, Sigmoid, Tanh, ReLU, and Softmax at the end, in a torch.nn.Sequential."
        + HINTS.get(type(module), " Give the part of the model that consists of these.")
    )
