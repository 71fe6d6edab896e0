"""What torch does not offer publicly: all private names of torch that this package uses.

They are tested with torch 2.6 and 2.13. Where another version lacks a name, the layers use torch
operations, which are slower but right everywhere.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.autograd import Function, forward_ad

_C: Any = torch._C


def _is_forward_mode() -> bool:
    level: Any = getattr(forward_ad, "_current_level", 0)
    return level >= 0


def _unknown() -> bool:
    return True


def _one() -> int:
    return 1


are_transforms_active: Callable[[], bool] = getattr(
    _C, "_are_functorch_transforms_active", _unknown
)
count_dispatch_modes: Callable[[], int] = getattr(_C, "_len_torch_dispatch_stack", _one)
is_autocast_active: Callable[[], bool] = getattr(_C, "_is_any_autocast_enabled", _unknown)
is_forward_mode = _is_forward_mode
is_tracing: Callable[[], bool] = getattr(_C, "_is_tracing", _unknown)
# slower, but compilers know its value
is_tracing_for_compilers: Callable[[], bool] = getattr(torch.jit, "is_tracing", _unknown)


def without_transforms() -> AbstractContextManager[Any]:
    """Return a context in which no transform of torch.func is active."""
    try:
        from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
    except ImportError:
        return nullcontext()
    return temporarily_clear_interpreter_stack()


def direct_apply(function: type[Function]) -> Any:
    """Return `function.apply` without its support for torch.func, which takes time."""
    above: Any = super(Function, function)
    return getattr(above, "apply", function.apply)
