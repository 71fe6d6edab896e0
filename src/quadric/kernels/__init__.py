"""The compiled loops: per-sample SGD, and the quadratic form for a batch.

Only this package imports numba and llvmlite. It does not import any other part of quadric. Its
functions take arrays or addresses, update the numbers there in place and return numbers.

Start with `_sgd`, one epoch of per-sample SGD, and `_layout`, the memory it works on. `_rows` lists
the inputs of a sample, `_blocks` computes the passes of one layer, `_equations` has the equations
of a block of neurons, and `_activations` and `_losses` hold the functions they are named after.
`_quadratic_form` and `_quadratic_form_loops` compute x'Qx for a batch and its gradients, and
`_elementwise` applies activations to arrays. All of these modules use `_lanes`, which works on
numbers in SIMD registers, `_compiling`, which compiles the loops and caches them, and `_denormals`,
which sets the mode in which all loops run: denormal numbers count as zero.
"""

__all__ = ["roundings", "underflows"]


def roundings(n: int) -> int:
    """The largest number of roundings between an input and z = x'Qx, for n inputs."""
    from quadric.kernels import _quadratic_form_loops  # imports numba

    return _quadratic_form_loops.roundings(n)


def underflows(n: int) -> tuple[int, int]:
    """Numbers (a, b) that bound how much flushing denormal numbers to zero changes z = x'Qx.

    Let t be the smallest normal number of the dtype. An operation whose result is denormal returns
    zero, so its error is less than t. In all, these errors change z by less than
    ``(a + b sum_i |x_i|) t``, up to the relative rounding errors that `roundings` counts. In
    addition, an input x_i counts as zero if it is less than t in absolute value, and an entry q_ij
    if it is less than t, or 2 t on the diagonal.
    """
    from quadric.kernels import _quadratic_form_loops  # imports numba

    return _quadratic_form_loops.underflows(n)
