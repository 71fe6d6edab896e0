"""The compiled loops: per-sample SGD, and the quadratic form for a batch.

Only this package imports numba and llvmlite. It does not import any other part of quadric. Its
functions take arrays or addresses, update the numbers there in place and return numbers. Names are
imported on first use (PEP 562), because importing numba takes long.

Start with `_sgd`, one epoch of per-sample SGD, and `_layout`, the memory it works on. `_blocks` has
the equations and the passes of one layer. `_quadratic_form` computes x'Qx for a batch and its
gradients with a team of threads, in one of two forms (`_quadratic_form_loops`,
`_loops_over_neurons`), which `_forms` chooses. All of these modules use `_lanes`, which
works on numbers in SIMD registers, and `_compiling`, which compiles the loops and caches them. All
loops run in a mode in which denormal numbers count as zero (`_denormals`).
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadric.kernels._announcement import watch_compilation
    from quadric.kernels._quadratic_form_loops import roundings

__all__ = ["roundings", "watch_compilation"]

_NAMES = {
    "_announcement": ("watch_compilation",),
    "_block_descent": ("block_descent",),
    "_box_search": ("minimize_over_box",),
    "_chi_square": ("chi_square_below",),
    "_activations_and_losses": ("apply_elementwise",),
    "_compiling": ("JIT_ALLOWED",),
    "_lanes": ("UNIT_BYTES",),
    "_layout": (
        "ACTIVATION_CODES",
        "ADDED_TO_INPUTS",
        "CSR",
        "DENSE",
        "FOLDED_INTO_WEIGHTS",
        "KIND_CODES",
        "LAYER",
        "LOSS_CODES",
        "NO_OFFSET",
        "Memory",
        "SampleArrays",
        "Step",
    ),
    "_quadratic_form": (
        "OpenMPThreads",
        "PythonThreads",
        "gradients",
        "run_quadratic_form",
        "values",
    ),
    "_quadratic_form_loops": ("roundings",),
    "_sgd": ("compress_rows", "count_nonzeros", "sgd_epoch"),
    "_two_loop": ("two_loop",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'quadric.kernels' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"quadric.kernels.{_HOMES[name]}"), name)
    globals()[name] = value  # so that this function is called only once for each name
    return value
