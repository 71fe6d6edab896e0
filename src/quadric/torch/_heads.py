"""A quadratic or reduced head for a network that is there: it starts as the same function."""

from typing import NoReturn

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from quadric._utils.checks import check_choice
from quadric._utils.memory import check_limit
from quadric.torch._layers import Quadratic, Reduced
from quadric.torch._module_checks import has_hooks, has_own_forward, lacks_values

KINDS = ("quadratic", "reduced")


def replace_head(
    model: nn.Module, kind: str = "quadratic", *, name: str | None = None
) -> nn.Module:
    """Replace a network's last `torch.nn.Linear` by a layer that is the same function at first.

    Quadratic: z = x'Q x + W x + b with Q = 0. Reduced: z = (W x + b)(U x + c) with U = 0, c = 1.
    W and b are copies of the Linear's, with its device, dtype, training mode and requires_grad.

    Parameters
    ----------
    model : Module
        Changed in place. A bare Linear is left as it is.
    kind : {'quadratic', 'reduced'}
    name : str, optional
        The Linear's dotted name, as in ``model.named_modules()``; by default the last one in
        their order. Where the same object stands at several places, it is replaced at each.

    Returns
    -------
    Module
        The model itself; for a bare Linear the new layer.

    Raises
    ------
    ValueError
        Where there is no such Linear, or where something would be lost with it (hooks, tied or
        parametrised weights, a forward of its own); the message says what to do first.

    Notes
    -----
    The parameters are new objects: make the optimiser, and wrap or compile the model, afterwards.

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
    check_choice("kind", kind, KINDS)
    place, head = _find(model, name)
    check_replaceable(model, head, place)
    layer = _same_function(head, kind)
    if head is model:
        return layer
    for parent in list(model.modules()):
        for key, child in list(parent._modules.items()):
            if child is head:
                setattr(parent, key, layer)
    return model


def _find(model: nn.Module, name: str | None) -> tuple[str, nn.Linear]:
    """The Linear and its dotted name."""
    modules = dict(model.named_modules(remove_duplicate=False))
    found = {place: module for place, module in modules.items() if isinstance(module, nn.Linear)}
    if not found:
        raise ValueError(
            "model must contain a torch.nn.Linear, the head that is replaced. This "
            f"{type(model).__name__} has none."
        )
    if name is None:
        return list(found.items())[-1]
    if not isinstance(name, str):
        raise TypeError(f"name must be a dotted name, as text. Got {name!r} instead.")
    if name not in found:
        there = f", a {type(modules[name]).__name__}" if name in modules else ", which is not there"
        shown = ", ".join(map(repr, list(found)[-8:])) + (" (the last 8)" if len(found) > 8 else "")
        raise ValueError(f"name must be that of a torch.nn.Linear: {shown}. Got {name!r}{there}.")
    return name, found[name]


def _same_function(head: nn.Linear, kind: str) -> Quadratic | Reduced:
    n, m, weight = head.in_features, head.out_features, head.weight
    bias = head.bias is not None
    layer: Quadratic | Reduced
    # built without numbers: none are drawn, and the user's random state stays as it is
    if kind == "quadratic":
        check_memory(n, m, weight)
        layer = Quadratic(n, m, bias, device="meta", dtype=weight.dtype)
    else:
        layer = Reduced(n, m, device="meta", dtype=weight.dtype)
    layer.to_empty(device=weight.device)
    with torch.no_grad():
        for tensor in layer.parameters():
            tensor.zero_()
        if isinstance(layer, Reduced):
            assert layer.c is not None
            layer.c.fill_(1)
            if not bias:
                layer.b = None  # c stays: the second factor is 1 by it
        for copy, original in ((layer.W, weight), (layer.b, head.bias)):
            if copy is not None:
                copy.copy_(original)
                copy.requires_grad_(original.requires_grad)
    return layer.train(head.training)


# They read the weights of their Linear themselves, instead of calling it.
READERS = (nn.MultiheadAttention, nn.TransformerEncoderLayer)


def check_replaceable(model: nn.Module, head: nn.Linear, place: str) -> None:
    """ValueError with what to do first, where replacing `head` would lose or change something."""
    _check_linear(head, place)
    own = [tensor for tensor in (head.weight, head.bias) if tensor is not None]
    for other, module in model.named_modules():
        if isinstance(module, nn.parallel.DistributedDataParallel):
            raise ValueError(
                "model is wrapped in DistributedDataParallel, which would not see the new "
                "parameters: replace the head first, and wrap the model afterwards."
            )
        if isinstance(module, READERS) and any(child is head for child in module.children()):
            _refuse(
                place,
                f"belongs to a {type(module).__name__}, which reads its weight instead of calling "
                "it: put a Linear behind that module, or name another Linear with name=...",
            )
        for key, tensor in module._parameters.items():
            if module is not head and any(tensor is mine for mine in own):
                _refuse(
                    place,
                    f"shares a parameter with {f'{other}.{key}'.lstrip('.')!r} (tied weights): "
                    "give it one of its own first, module.weight = "
                    "torch.nn.Parameter(module.weight.detach().clone()), or name another Linear "
                    "with name=...",
                )


def _check_linear(head: nn.Linear, place: str) -> None:
    if is_lazy(head.weight):
        _refuse(
            place, "does not know its inputs yet (LazyLinear): run a batch through the model first"
        )
    if parametrize.is_parametrized(head):
        _refuse(
            place,
            "is parametrised: call torch.nn.utils.parametrize.remove_parametrizations(module, "
            "'weight') first",
        )
    if {"weight", "bias"} - head._parameters.keys():
        _refuse(
            place,
            "has a weight that is computed from others (weight_norm, spectral_norm, pruning): call "
            "torch.nn.utils.remove_weight_norm, remove_spectral_norm or prune.remove first",
        )
    if has_own_forward(head, nn.Linear):
        _refuse(
            place,
            f"is a {type(head).__name__} with a forward of its own, which would be lost: put a "
            "plain torch.nn.Linear in its place first, or name another Linear with name=...",
        )
    if has_hooks(head) or any(_is_hooked(tensor) for tensor in head.parameters()):
        _refuse(
            place,
            "carries hooks, which would be lost: remove them first (handle.remove()), and register "
            "them with the new layer",
        )
    for key, tensor in head.named_parameters():
        why = lacks_values(tensor)
        if why:
            raise ValueError(f"{key} of {_shown(place)} {why}.")
    if head.weight.shape != (head.out_features, head.in_features):
        _refuse(place, "is in pieces (sharded or flattened): replace it before it is wrapped")


def check_memory(n: int, m: int, weight: torch.Tensor) -> None:
    """MemoryError before anything is allocated: of many inputs, Q is larger than one expects."""
    numbers = m * n * (n + 1) // 2
    needed = numbers * weight.itemsize
    if weight.device.type == "cpu":
        check_limit(
            needed,
            f"a quadratic head of {n:,} inputs and {m:,} neurons has {numbers:,} entries of Q; it",
            "Take kind='reduced', or put a Linear with fewer neurons in front of the head.",
        )


def _is_hooked(tensor: torch.Tensor) -> bool:
    return bool(tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None))


def _shown(place: str) -> str:
    return f"the Linear {place!r}" if place else "the Linear"


def _refuse(place: str, why: str) -> NoReturn:
    raise ValueError(f"{_shown(place)} {why}.")
