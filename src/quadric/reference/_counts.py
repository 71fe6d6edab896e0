"""Multiplications for one layer of m neurons with n inputs, as formulas.

The tests count the same by running `algorithm1` and `algorithm2` on counting numbers; the
printed counts are in `as_printed`. "update" is the cost of one layer's parameter updates,
"backward" of delta^{l-1} from delta^l.
"""

from collections.abc import Callable

Formula = Callable[[int, int], int]

COUNTS: dict[tuple[str, str], Formula] = {
    ("ann", "forward"): lambda m, n: m * n,
    ("ann", "backward"): lambda m, n: m * n + n,
    ("ann", "update"): lambda m, n: m * n + 2 * m,
    # V = A Q with A's zeros skipped, then (W + V) a
    ("qnn", "forward"): lambda m, n: m * n * n + m * n,
    ("qnn", "backward"): lambda m, n: 2 * m * n + n,
    # M(a) is shared by the neurons: n(n+1)/2 products and n(n-1)/2 doublings, once
    ("qnn", "update"): lambda m, n: m * n + 2 * m + n * n + m * n * (n + 1) // 2,
    ("rpqnn", "forward"): lambda m, n: 2 * m * n + m,
    ("rpqnn", "backward"): lambda m, n: 2 * m * n + 2 * m + n,
    ("rpqnn", "update"): lambda m, n: 2 * m * n + 8 * m,
}

# a'Qa by the triangle alone: cheaper than the printed algorithm, but it does not produce V
QNN_FORWARD_TRIANGULAR: Formula = lambda m, n: m * (n * n + 3 * n) // 2  # noqa: E731
# A Q as an ordinary product, A's zeros multiplied too
QNN_FORWARD_DENSE_BLOCKS: Formula = lambda m, n: m * m * n * n  # noqa: E731

PARAMETERS: dict[str, Formula] = {
    "ann": lambda m, n: m * (n + 1),
    "qnn": lambda m, n: m * (n * (n + 1) // 2 + n + 1),
    "rpqnn": lambda m, n: m * (2 * n + 2),
}
