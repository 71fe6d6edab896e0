"""Replace the last linear layer of a network with a quadratic or reduced layer."""

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from quadric.checks import check_choice
from quadric.torch._conversion import check_has_values, has_hooks, has_own_forward, refuse
from quadric.torch._layers import MODULES, Quadratic, Reduced
from quadric.utils import check_limit

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
        The dotted name of the Linear, as in ``model.named_modules()``. By default, the last Linear
        in that order. If the same module is used in several places, it is replaced in each of them.

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
        return list(found.items())[-1]
    if not isinstance(name, str):
        raise TypeError(f"name must be a dotted name, a string. Got {name!r} instead.")
    if name not in found:
        given = f"a {type(modules[name]).__name__}" if name in modules else "which does not exist"
        shown = ", ".join(map(repr, list(found)[-8:])) + (" (the last 8)" if len(found) > 8 else "")
        raise ValueError(
            f"name must be the name of a torch.nn.Linear: {shown}. Got {name!r}, {given}."
        )
    return name, found[name]


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
