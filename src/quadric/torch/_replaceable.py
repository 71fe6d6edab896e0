"""Whether a layer with the same weights would do all that a Linear does where it stands."""

from typing import NoReturn

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from quadric._utils.memory import check_limit
from quadric.torch._inspection import has_hooks, has_own_forward, lacks_values

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
