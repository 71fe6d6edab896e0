"""Networks between the core and torch: the same function, the same numbers, either way."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from quadric import network as core
from quadric._utils.arrays import Array
from quadric._utils.checks import check_choice
from quadric.core import _layers as layers
from quadric.core._activations import ACTIVATIONS as NAMES
from quadric.torch._layers import Linear, Quadratic, Reduced
from quadric.torch._module_checks import has_forward_hooks, has_own_forward, lacks_values

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "softmax": lambda z: torch.softmax(z, dim=-1),
}


class Network(nn.Module):
    """a = g(z), z a linear, quadratic or reduced function of the a before; `from_network` makes it.

    Parameters
    ----------
    layers : sequence of `Linear`, `Quadratic`, `Reduced`
    activations : sequence of str
        One for each layer: 'identity', 'logistic', 'tanh', 'relu'; on the last also 'softmax',
        over the last dimension.
    """

    def __init__(self, layers: Sequence[nn.Module], activations: Sequence[str]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.activations = tuple(activations)
        if not self.activations or len(self.layers) != len(self.activations):
            raise ValueError(
                "layers and activations must have the same length, at least 1. "
                f"Got {len(self.layers)} and {len(self.activations)}."
            )
        for l, activation in enumerate(self.activations):
            check_choice(f"activations[{l}]", activation, FUNCTIONS)
        if "softmax" in self.activations[:-1]:
            raise ValueError("activation 'softmax' must be on the last layer only.")

    def logits(self, x: Tensor) -> Tensor:
        """The pre-activations z of the last layer, shape (..., m): what torch's losses take."""
        for l, layer in enumerate(self.layers):
            x = layer(x if l == 0 else FUNCTIONS[self.activations[l - 1]](x))
        return x

    def forward(self, x: Tensor) -> Tensor:
        return FUNCTIONS[self.activations[-1]](self.logits(x))

    def extra_repr(self) -> str:
        return f"activations={', '.join(self.activations)}"


MODULES = {"linear": Linear, "quadratic": Quadratic, "reduced": Reduced}


def from_network(network: core.Network) -> Network:
    """The network as a module, on the CPU, in the same dtype: the weights move bit for bit.

    Returns
    -------
    Module
        With `layers`, `activations` and, beside the call, `logits`. Its `state_dict` has the names
        of the core's layers: layers.0.W, .b, .packed (Q, shape (n(n+1)/2, m)), .U, .c.

    Examples
    --------
    >>> import quadric
    >>> net = quadric.Network.create(4, [("quadratic", 3, "tanh"), ("reduced", 2, "softmax")])
    >>> module = from_network(net)
    >>> [(name, tuple(tensor.shape)) for name, tensor in module.state_dict().items()][:3]
    [('layers.0.packed', (10, 3)), ('layers.0.W', (3, 4)), ('layers.0.b', (3,))]
    """
    if not isinstance(network, core.Network):
        hint = "; give its network_." if hasattr(network, "network_") else "."
        raise TypeError(
            f"network must be a quadric.Network. Got {type(network).__name__} instead{hint}"
        )
    layers, state = [], {}
    for l, layer in enumerate(network.layers):
        for name, array in layer.arrays().items():
            state[f"layers.{l}.{name}"] = torch.tensor(array)
        n, m, dtype = layer.n_inputs, layer.n_outputs, state[f"layers.{l}.W"].dtype
        layers.append(MODULES[layer.kind](n, m, device="meta", dtype=dtype))
    module = Network(layers, network.activations).to_empty(device="cpu")
    module.load_state_dict(state)
    return module


def to_network(module: nn.Module, *, activation: str | None = None) -> core.Network:
    """A module as a `quadric.Network`, for `quadric.save`, `explain` and the command line.

    Parameters
    ----------
    module : Module
        What `from_network` makes, one layer, or a `torch.nn.Sequential`, nested too: of
        `torch.nn.Linear`, `Linear`, `Quadratic` and `Reduced`, with Sigmoid, Tanh, ReLU, Identity,
        Dropout (nothing in prediction), Softmax as the last, and Flatten in front.
    activation : str, optional
        The last activation, where the module ends in logits, as for torch's cross_entropy:
        ``activation="softmax"``.

    Returns
    -------
    quadric.Network
        With copies of the parameters, bit for bit in float32 and float64; others become float32.
        W, b and c that are not there (bias=False, linear=False) are zero.

    Raises
    ------
    ValueError
        At what a Network does not have, with its place in the module.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), Quadratic(8, 3))
    >>> to_network(model, activation="softmax")
    Network(4 -> linear 8 relu, quadratic 3 softmax; float32)
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module. Got {type(module).__name__} instead.")
    if activation is not None:
        check_choice("activation", activation, NAMES)
    for name, tensor in module.named_parameters():
        why = lacks_values(tensor)
        if why:
            raise ValueError(f"the parameter {name!r} {why}.")
    stages = take_apart(module)
    last = stages[-1]
    if activation is not None and last.activation not in ("identity", activation):
        raise ValueError(
            f"activation={activation!r} is for a module that ends in logits. This one ends with "
            f"{last.activation!r} at {last.end!r}: leave out one of the two."
        )
    layers = [core_layer(stage.layer, shown(stage.place, stage.layer)) for stage in stages]
    activations = [stage.activation for stage in stages]
    return core.Network(layers, [*activations[:-1], activation or activations[-1]])


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


def core_layer(module: Any, name: str) -> layers.Layer:
    """A copy of a Linear (torch's too), Quadratic or Reduced layer; `name` is for messages.

    What the module does without (bias=False, linear=False) is zero in the copy.
    """
    kind = layers.LAYERS[getattr(module, "kind", "linear")]
    held = {}
    for field in kind.fields:
        tensor = getattr(module, _attribute(module, field))
        if tensor is not None:
            held[field] = _numbers(f"{field} of {name}", tensor)
    n, m, dtype = module.in_features, module.out_features, np.result_type(*held.values())
    arrays = {}
    for field, shape in kind.shapes(n, m).items():
        array = held.get(field, np.zeros(shape, dtype))
        arrays[field] = np.array(array, dtype=dtype, order="C")
    return kind.of(**arrays)


def _attribute(module: Any, field: str) -> str:
    if isinstance(module, nn.Linear):
        return {"W": "weight", "b": "bias"}[field]
    return field


def _numbers(name: str, tensor: Tensor) -> Array:
    """A parameter as an array of float32 or float64."""
    with torch.no_grad():
        tensor = tensor if tensor.dtype == torch.float64 else tensor.to(torch.float32)
    array: Array = tensor.detach().cpu().numpy()
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite. Got an infinite or undefined entry: has training diverged?"
        )
    return array
