"""Conversion between `quadric.Network` and equivalent torch modules.

Modules whose function would change are refused. `_heads` uses the same checks.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from quadric import network as core
from quadric.checks import check_choice
from quadric.core import LAYERS, Layer
from quadric.torch._layers import MODULES, is_sharded

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "softmax": lambda z: torch.softmax(z, dim=-1),
    "exponential": torch.exp,
}
ACTIVATION_NAMES: dict[type[nn.Module], str] = {
    nn.Identity: "identity",
    nn.Dropout: "identity",  # dropout has no effect in evaluation mode
    nn.Dropout1d: "identity",
    nn.AlphaDropout: "identity",
    nn.Sigmoid: "logistic",
    nn.Tanh: "tanh",
    nn.ReLU: "relu",
    nn.Softmax: "softmax",
}
HINTS = {
    nn.BatchNorm1d: " Fold it into the preceding layer: torch.nn.utils.fusion.fuse_linear_bn_eval.",
    nn.LogSoftmax: " Leave it out, and pass activation='softmax'.",
}


class NetworkModule(nn.Module):
    """A `quadric.Network` as a module, as returned by `from_network`.

    Parameters
    ----------
    layers : sequence of `Linear`, `Quadratic`, `Reduced`
        The layers, in order.
    activations : sequence of str
        One for each layer: 'identity', 'logistic', 'tanh' or 'relu'. The last layer can also use
        'softmax', which runs over the last dimension, or 'exponential'.
    """

    def __init__(self, layers: Sequence[nn.Module], activations: Sequence[str]) -> None:
        super().__init__()
        self.layers, self.activations = nn.ModuleList(layers), tuple(activations)

    def logits(self, x: Tensor) -> Tensor:
        """Return the pre-activations z of the last layer, shape (..., m), for torch's losses."""
        for l, layer in enumerate(self.layers):
            x = layer(x if l == 0 else FUNCTIONS[self.activations[l - 1]](x))
        return x

    def forward(self, input: Tensor) -> Tensor:
        """Return the outputs of the last layer, shape (..., m)."""
        return FUNCTIONS[self.activations[-1]](self.logits(input))

    def extra_repr(self) -> str:
        return f"activations={', '.join(self.activations)}"


def from_network(network: core.Network) -> NetworkModule:
    """Convert a `quadric.Network` to a module on the CPU, with bit-identical parameters.

    Parameters
    ----------
    network : quadric.Network
        The network. For a fitted estimator, pass its ``network_``.

    Returns
    -------
    Module
        A module of the same dtype with `layers`, `activations` and a method `logits`. Its
        `state_dict` uses the parameter names of the network's layers: layers.0.W, .b, .packed (Q,
        shape (n(n+1)/2, m)), .U, .c.

    Examples
    --------
    >>> import quadric
    >>> net = quadric.Network.create(4, [("quadratic", 3, "tanh"), ("reduced", 2, "softmax")])
    >>> module = from_network(net)
    >>> [(name, tuple(tensor.shape)) for name, tensor in module.state_dict().items()][:3]
    [('layers.0.packed', (10, 3)), ('layers.0.W', (3, 4)), ('layers.0.b', (3,))]
    """
    if not isinstance(network, core.Network):
        hint = "; pass its network_." if hasattr(network, "network_") else "."
        raise TypeError(
            f"network must be a quadric.Network. Got {type(network).__name__} instead{hint}"
        )
    layers = [
        MODULES[layer.kind](layer.n_inputs, layer.n_outputs, device="meta")
        for layer in network.layers
    ]
    state = {
        f"layers.{l}.{name}": torch.tensor(array)
        for l, layer in enumerate(network.layers)
        for name, array in layer.arrays().items()
    }
    module = NetworkModule(layers, network.activations)
    module.load_state_dict(state, assign=True)
    return module


def to_network(module: nn.Module, *, activation: str | None = None) -> core.Network:
    """Convert a module to a `quadric.Network`, for `quadric.save`, `explain` and the command line.

    Parameters
    ----------
    module : Module
        A result of `from_network`, one layer, or a (nested) `torch.nn.Sequential` of
        `torch.nn.Linear`, `Linear`, `Quadratic` and `Reduced`, with Sigmoid, Tanh, ReLU, Identity,
        Dropout (ignored), Softmax at the end, and Flatten at the start.
    activation : str, default=None
        The last activation, for a module that returns logits. For a module trained with torch's
        cross_entropy, pass ``activation="softmax"``.

    Returns
    -------
    quadric.Network
        A network with copies of the parameters. float32 and float64 are kept; other dtypes become
        float32. Parameters that the module lacks (bias=False, linear=False) are zero.

    Raises
    ------
    ValueError
        If the module contains something that `quadric.Network` does not support. The message
        states where it is in the module.

    Examples
    --------
    >>> from quadric.torch import Quadratic
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), Quadratic(8, 3))
    >>> to_network(model, activation="softmax")
    Network(4 -> linear 8 relu, quadratic 3 softmax; float32)
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module. Got {type(module).__name__} instead.")
    if activation is not None:
        check_choice("activation", activation, FUNCTIONS)
    for name, tensor in module.named_parameters():
        check_has_values(f"the parameter {name!r}", tensor)
    stages = _stages(module)
    last = stages[-1]
    if activation is not None and last.activation not in ("identity", activation):
        raise ValueError(
            f"activation={activation!r} is for a module that returns logits. This module already "
            f"ends with {last.activation!r} at {last.end!r}; leave out one of the two."
        )
    stages[-1] = last._replace(activation=activation or last.activation)
    return core.Network(
        [_core_layer(stage.layer, _shown(stage.place, stage.layer)) for stage in stages],
        [stage.activation for stage in stages],
    )


class _Stage(NamedTuple):
    """A layer and the activation after it, with their dotted names in the module."""

    layer: nn.Module
    place: str
    activation: str = "identity"
    end: str = ""


def _stages(module: nn.Module) -> list[_Stage]:
    """Return the layers with their activations; raise ValueError for unsupported modules."""
    stages: list[_Stage] = []
    for place, part in _parts(module, ""):
        before = stages[-1] if stages else None
        if isinstance(part, nn.Module) and _is_layer(part):
            if before and before.activation == "softmax":
                raise ValueError(
                    f"softmax must be the last activation. At {before.end!r} it comes before "
                    f"{_shown(place, part)}."
                )
            stages.append(_Stage(part, place))
            continue
        name = part if isinstance(part, str) else _activation(part, place, first=not stages)
        if name == "identity":
            continue
        if before is None:
            raise ValueError(
                f"{_shown(place, part)} must come after a layer. There is none before it."
            )
        if before.activation != "identity":
            raise ValueError(
                f"{_shown(place, part)} must come after a layer. It comes after the activation "
                f"{before.activation!r} at {before.end!r}; a Network has one activation per layer."
            )
        stages[-1] = before._replace(activation=name, end=place)
    if not stages:
        raise ValueError(f"module must have a layer. This {type(module).__name__} has none.")
    return stages


def _parts(module: nn.Module, place: str) -> Iterator[tuple[str, nn.Module | str]]:
    """Yield dotted names with modules or, inside a NetworkModule, activation names, in order."""
    if has_hooks(module, backward=False):
        raise ValueError(
            f"{_shown(place, module)} has forward hooks, which a Network cannot run: remove them "
            "first (handle.remove(); for weight_norm and the like, make the weights "
            "ordinary parameters)."
        )
    prefix = f"{place}." if place else ""
    if isinstance(module, NetworkModule) and not has_own_forward(module, NetworkModule):
        for l, (layer, activation) in enumerate(
            zip(module.layers, module.activations, strict=True)
        ):
            yield from _parts(layer, f"{prefix}layers.{l}")
            yield f"{prefix}activations[{l}]", activation
    elif isinstance(module, nn.Sequential) and not has_own_forward(module, nn.Sequential):
        for key, child in module._modules.items():  # a module may occur more than once
            assert child is not None
            yield from _parts(child, f"{prefix}{key}")
    else:
        yield place, module


def _is_layer(module: nn.Module) -> bool:
    return any(
        isinstance(module, one) and not has_own_forward(module, one)
        for one in (nn.Linear, *MODULES.values())
    )


def _activation(module: nn.Module, place: str, *, first: bool) -> str:
    """Return the name of an activation; 'identity' for a module that does nothing."""
    shown = _shown(place, module)
    if isinstance(module, nn.Flatten) and "forward" not in vars(module):
        if first and (module.start_dim, module.end_dim) == (1, -1):
            return "identity"
        raise ValueError(
            f"{shown} must come before all layers, with start_dim=1 and end_dim=-1. Got {module!r}."
        )
    if "forward" in vars(module) or type(module) not in ACTIVATION_NAMES:
        hint = HINTS.get(type(module), " Pass the part of the model that consists of these.")
        raise ValueError(
            f"{shown} is not supported by Network, which supports Linear, Quadratic and Reduced "
            "layers, Sigmoid, Tanh, ReLU, and Softmax at the end, in a torch.nn.Sequential." + hint
        )
    if isinstance(module, nn.Softmax) and module.dim not in (1, -1):
        raise ValueError(
            f"{shown} must run over the neurons, dim=-1 or dim=1. Got dim={module.dim}."
        )
    return ACTIVATION_NAMES[type(module)]


def _shown(place: str, part: nn.Module | str) -> str:
    """Describe a part of the module in messages."""
    name = f"activation {part!r}" if isinstance(part, str) else type(part).__name__
    return f"the {name} at {place!r}" if place else f"the {name}"


def _core_layer(module: Any, shown: str) -> Layer:
    """Return a copy as a layer of `quadric.core`; absent parameters are zero."""
    kind = LAYERS[getattr(module, "kind", "linear")]
    names = {"W": "weight", "b": "bias"} if isinstance(module, nn.Linear) else {}
    arrays = {}
    for field in kind.fields:
        tensor = getattr(module, names.get(field, field))
        if tensor is None:
            continue
        wide = tensor.dtype == torch.float64
        arrays[field] = tensor.detach().to("cpu", torch.float64 if wide else torch.float32).numpy()
        if not np.isfinite(arrays[field]).all():
            raise ValueError(
                f"{field} of {shown} must be finite. Got an infinite or NaN entry: has "
                "training diverged?"
            )
    dtype = np.result_type(*arrays.values())
    for field, shape in kind.shapes(module.in_features, module.out_features).items():
        arrays[field] = np.array(arrays.get(field, np.zeros(shape)), dtype=dtype, order="C")
    return kind.of(**arrays)


# ---- checks of users' modules ------------------------------------------------------------------


def has_own_forward(module: nn.Module, base: type[nn.Module]) -> bool:
    """Whether `module` overrides the forward of class `base`."""
    forward: Any = type(module).forward
    return "forward" in vars(module) or forward is not base.forward


def has_hooks(module: nn.Module, *, backward: bool) -> bool:
    """Whether the module has forward hooks or, if `backward`, any hooks."""
    hooks = [module._forward_pre_hooks, module._forward_hooks]
    if backward:
        hooks += [module._backward_pre_hooks, module._backward_hooks]
    return any(hooks)


def check_has_values(name: str, tensor: Tensor) -> None:
    """Raise ValueError with a remedy unless the values of a parameter can be copied."""
    refuse(
        name,
        [
            (is_lazy(tensor), "has no shape yet: run a batch through the model first"),
            (
                is_sharded(tensor),
                "is sharded, so this process holds only a part of it. Call this function before "
                "sharding, or load the full tensors (full_tensor() of each entry of state_dict()) "
                "into a module that is not sharded",
            ),
            (
                tensor.is_meta,
                "is on the meta device and has no values: load or initialize the model first",
            ),
            (
                not tensor.is_floating_point(),
                f"must hold real floating-point numbers. Got {tensor.dtype} instead",
            ),
        ],
    )


def refuse(shown: str, problems: Sequence[tuple[bool, str]]) -> None:
    """Raise ValueError for the first problem that was found."""
    for found, problem in problems:
        if found:
            raise ValueError(f"{shown} {problem}.")
