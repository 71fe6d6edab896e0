"""Multiplications for one layer of m neurons with n inputs, as formulas.

The tests compare them with `_counting.count_layer`; `_as_printed` has the printed counts. "update"
is the cost of one layer's parameter updates, "backward" that of delta^{l-1} from delta^l.
"""

from collections.abc import Callable

Formula = Callable[[int, int], int]

COUNTS: dict[tuple[str, str], Formula] = {
    ("ann", "forward"): lambda m, n: m * n,
    ("ann", "backward"): lambda m, n: m * n + n,
    ("ann", "update"): lambda m, n: m * n + 2 * m,
    # V = A Q without A's zeros, then (W + V) a
    ("qnn", "forward"): lambda m, n: m * n * n + m * n,
    ("qnn", "backward"): lambda m, n: 2 * m * n + n,
    # M(a) is shared by the neurons: n(n+1)/2 products and n(n-1)/2 doublings, once
    ("qnn", "update"): lambda m, n: m * n + 2 * m + n * n + m * n * (n + 1) // 2,
    ("rpqnn", "forward"): lambda m, n: 2 * m * n + m,
    ("rpqnn", "backward"): lambda m, n: 2 * m * n + 2 * m + n,
    ("rpqnn", "update"): lambda m, n: 2 * m * n + 8 * m,
}

# a'Qa by the triangle alone: cheaper than the printed algorithm, but without V
QNN_FORWARD_TRIANGULAR: Formula = lambda m, n: m * (n * n + 3 * n) // 2  # noqa: E731
# A Q as an ordinary product, including A's zeros
QNN_FORWARD_DENSE_BLOCKS: Formula = lambda m, n: m * m * n * n  # noqa: E731

PARAMETERS: dict[str, Formula] = {
    "ann": lambda m, n: m * (n + 1),
    "qnn": lambda m, n: m * (n * (n + 1) // 2 + n + 1),
    "rpqnn": lambda m, n: m * (2 * n + 2),
}
