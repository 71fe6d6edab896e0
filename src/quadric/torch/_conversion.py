"""Conversion between `quadric.Network` and equivalent torch modules, and new last layers.

Modules whose function would change are refused.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.fx import Tracer
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from quadric import network as core
from quadric.checks import check_choice
from quadric.core import LAYERS, Layer
from quadric.torch._layers import MODULES, Quadratic, Reduced, is_sharded
from quadric.utils import check_limit

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
        [core_layer(stage.layer, described(stage.place, stage.layer)) for stage in stages],
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
        if isinstance(part, nn.Module) and is_layer(part):
            if before and before.activation == "softmax":
                raise ValueError(
                    f"softmax must be the last activation. At {before.end!r} it comes before "
                    f"{described(place, part)}."
                )
            stages.append(_Stage(part, place))
            continue
        name = part if isinstance(part, str) else activation_of(part, place, first=not stages)
        if name == "identity":
            continue
        if before is None:
            raise ValueError(
                f"{described(place, part)} must come after a layer. There is none before it."
            )
        if before.activation != "identity":
            raise ValueError(
                f"{described(place, part)} must come after a layer. It comes after the activation "
                f"{before.activation!r} at {before.end!r}; a Network has one activation per layer."
            )
        stages[-1] = before._replace(activation=name, end=place)
    if not stages:
        raise ValueError(f"module must have a layer. This {type(module).__name__} has none.")
    return stages


def _parts(module: nn.Module, place: str) -> Iterator[tuple[str, nn.Module | str]]:
    """Yield dotted names with modules or, inside a NetworkModule, activation names, in order."""
    check_has_no_hooks(module, place)
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


def is_layer(module: nn.Module) -> bool:
    return any(
        isinstance(module, one) and not has_own_forward(module, one)
        for one in (nn.Linear, *MODULES.values())
    )


def activation_of(module: nn.Module, place: str, *, first: bool) -> str:
    """Return the name of an activation; 'identity' for a module that does nothing."""
    shown = described(place, module)
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


def described(place: str, part: nn.Module | str) -> str:
    """Describe a part of the module in messages."""
    name = f"activation {part!r}" if isinstance(part, str) else type(part).__name__
    return f"the {name} at {place!r}" if place else f"the {name}"


def core_layer(module: Any, shown: str) -> Layer:
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


def check_has_no_hooks(module: nn.Module, place: str) -> None:
    """Raise ValueError if the module has forward hooks."""
    if has_hooks(module, backward=False):
        raise ValueError(
            f"{described(place, module)} has forward hooks, which a Network cannot run: remove "
            "them first (handle.remove(); for weight_norm and the like, make the weights "
            "ordinary parameters)."
        )


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


# ---- the last layer of any network -------------------------------------------------------


# These modules read the weights of their Linear instead of calling it.
READERS = (nn.MultiheadAttention, nn.TransformerEncoderLayer)


def replace_head(
    model: nn.Module, kind: str = "quadratic", *, name: str | None = None
) -> nn.Module:
    """Replace a network's last `torch.nn.Linear` with an initially equivalent layer.

    Quadratic: z = x'Q x + W x + b with Q = 0. Reduced: z = (W x + b)(U x + c) with U = 0, c = 1.
    W and b are copied from the Linear. The new layer has the same device, dtype, training mode and
    requires_grad.

    Parameters
    ----------
    model : Module
        Modified in place. A bare Linear is not modified.
    kind : {'quadratic', 'reduced'}, default='quadratic'
        The kind of the new layer.
    name : str, default=None
        The dotted name of the Linear, as in ``model.named_modules()``. By default, the Linear that
        the model calls last or, if torch.fx cannot trace the model, the last one in that order. If
        the same module is used in several places, it is replaced in each of them.

    Returns
    -------
    Module
        The model itself, or the new layer if the model is a bare Linear.

    Raises
    ------
    ValueError
        If there is no such Linear, or if replacing it would lose something: hooks, tied or
        parametrized weights, or an overridden forward. The message says what to do.

    Notes
    -----
    The parameters are new objects. Create the optimizer and wrap or compile the model afterward.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 10))
    >>> x = torch.randn(5, 64)
    >>> before = model(x)
    >>> replace_head(model)[2]
    Quadratic(in_features=20, out_features=10, bias=True, linear=True)
    >>> torch.equal(model(x), before)
    True
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module. Got {type(model).__name__} instead.")
    check_choice("kind", kind, [other for other in MODULES if other != "linear"])
    place, head = _find(model, name)
    shown = f"the Linear {place!r}" if place else "the Linear"
    _check_linear(head, shown)
    _check_surroundings(model, head, shown)
    layer = _same_function(head, kind)
    if head is model:
        return layer
    for parent in list(model.modules()):
        for key, child in list(parent._modules.items()):
            if child is head:
                setattr(parent, key, layer)
    return model


def _find(model: nn.Module, name: str | None) -> tuple[str, nn.Linear]:
    """Return the dotted name of the Linear, and the Linear."""
    modules = dict(model.named_modules(remove_duplicate=False))
    found = {place: module for place, module in modules.items() if isinstance(module, nn.Linear)}
    if not found:
        raise ValueError(
            "model must contain a torch.nn.Linear, the head to replace. This "
            f"{type(model).__name__} contains none."
        )
    if name is None:
        name = _last_called(model, found) or list(found)[-1]
    if not isinstance(name, str):
        raise TypeError(f"name must be a dotted name, a string. Got {name!r} instead.")
    if name not in found:
        given = f"a {type(modules[name]).__name__}" if name in modules else "which does not exist"
        shown = ", ".join(map(repr, list(found)[-8:])) + (" (the last 8)" if len(found) > 8 else "")
        raise ValueError(
            f"name must be the name of a torch.nn.Linear: {shown}. Got {name!r}, {given}."
        )
    return name, found[name]


class _Calls(Tracer):
    """A tracer that records the calls of every Linear, also of a subclass."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, nn.Linear) or super().is_leaf_module(m, module_qualified_name)


def _last_called(model: nn.Module, found: Mapping[str, nn.Linear]) -> str | None:
    """Return the name of the Linear that the model calls last, or None if that is not known.

    Modules may be declared in another order than they are called. torch.fx records the calls of
    most models. A module that it does not look into may itself call a Linear.
    """
    if len(found) == 1:
        return None
    try:
        graph = _Calls().trace(model)
    except Exception:  # torch.fx cannot trace control flow that depends on the input
        return None
    called = [str(node.target) for node in graph.nodes if node.op == "call_module"]
    last = next(
        (p for p in called[::-1] if any(q == p or q.startswith(f"{p}.") for q in found)), ""
    )
    return last if last in found else None


def _check_linear(head: nn.Linear, shown: str) -> None:
    """Raise ValueError with a remedy if a layer with the same weights would behave differently."""
    refuse(
        shown,
        [
            (
                is_lazy(head.weight),
                "does not know its number of inputs yet (LazyLinear): run a batch through the "
                "model first",
            ),
            (
                parametrize.is_parametrized(head),
                "is parametrized: call torch.nn.utils.parametrize.remove_parametrizations(module, "
                "'weight') first",
            ),
            (
                bool({"weight", "bias"} - head._parameters.keys()),
                "has a weight that is computed from others (weight_norm, spectral_norm, pruning): "
                "call torch.nn.utils.remove_weight_norm, remove_spectral_norm or prune.remove "
                "first",
            ),
            (
                has_own_forward(head, nn.Linear),
                f"is a {type(head).__name__} that overrides forward, which would be lost: put a "
                "plain torch.nn.Linear in its place first, or choose another Linear with the "
                "argument name",
            ),
            (
                has_hooks(head, backward=True) or any(map(_is_hooked, head.parameters())),
                "has hooks, which would be lost: remove them first (handle.remove()), and register "
                "them with the new layer",
            ),
        ],
    )
    for key, tensor in head.named_parameters():
        check_has_values(f"{key} of {shown}", tensor)
    if head.weight.shape != (head.out_features, head.in_features):
        raise ValueError(
            f"{shown} is in pieces (sharded or flattened): replace it before the model is wrapped."
        )


def _is_hooked(tensor: Tensor) -> bool:
    return bool(tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None))


def _check_surroundings(model: nn.Module, head: nn.Linear, shown: str) -> None:
    """Raise ValueError with a remedy if another module of the model needs this Linear."""
    own = [tensor for tensor in (head.weight, head.bias) if tensor is not None]
    for place, module in model.named_modules():
        if isinstance(module, nn.parallel.DistributedDataParallel):
            raise ValueError(
                "model is wrapped in DistributedDataParallel, which does not see new parameters: "
                "replace the head first, and wrap the model afterward."
            )
        if isinstance(module, READERS) and any(child is head for child in module.children()):
            raise ValueError(
                f"{shown} belongs to a {type(module).__name__}, which reads its weight instead of "
                "calling it: put a Linear after that module, or choose another Linear with "
                "the argument name."
            )
        for key, tensor in module._parameters.items():
            if module is not head and any(tensor is mine for mine in own):
                raise ValueError(
                    f"{shown} shares a parameter with {f'{place}.{key}'.lstrip('.')!r} (tied "
                    "weights): give it a parameter of its own first, module.weight = "
                    "torch.nn.Parameter(module.weight.detach().clone()), or choose another Linear "
                    "with the argument name."
                )


def _same_function(head: nn.Linear, kind: str) -> Quadratic | Reduced:
    n, m, weight = head.in_features, head.out_features, head.weight
    if kind == "quadratic" and weight.device.type == "cpu":
        entries = m * n * (n + 1) // 2
        check_limit(
            entries * weight.itemsize,
            f"a quadratic head of {n:,} inputs and {m:,} neurons has {entries:,} entries of Q; it",
            "Use kind='reduced', or put a Linear with fewer neurons in front of the head.",
        )
    # No random numbers are drawn on the meta device, so the global random state does not change.
    layer = MODULES[kind](n, m, device="meta", dtype=weight.dtype)
    if head.bias is None:
        layer.b = None
    layer.to_empty(device=weight.device)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.fill_(1 if name == "c" else 0)
        for copy, original in ((layer.W, weight), (layer.b, head.bias)):
            if copy is not None:
                copy.copy_(original)
                copy.requires_grad_(original.requires_grad)
    return layer.train(head.training)
