"""How much the compiled loops change z = x'Qx by counting denormal numbers as zero."""

from quadric.kernels._quadratic_form_loops import J_BLOCK


def underflows(n):
    """Numbers (a, b) that bound how much flushing denormal numbers to zero changes z = x'Qx.

    Let t be the smallest normal number of the dtype. An operation whose result is denormal returns
    zero, so its error is less than t. In all, these errors change z by less than
    ``(a + b sum_i |x_i|) t``, up to the relative rounding errors that `roundings` counts. In
    addition, an input x_i counts as zero if it is less than t in absolute value, and an entry q_ij
    if it is less than t, or 2 t on the diagonal.

    Without FMA, both the product and the sum may be flushed: for each of n products that are then
    multiplied by x_i, and for each of the products that are added to z. All are doubled in the end.
    """
    return 4 * n * -(-n // J_BLOCK), 4 * n
