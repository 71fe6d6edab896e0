"""The errors in the printed text, each implemented once, for the tests and the ablation only.

The gradients are those that the printed updates subtract (``theta <- theta - eta * gradient``). The
counts are the printed numbers of multiplications for a layer of m neurons with n inputs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from quadric.reference._algorithms import update_qnn, update_rpqnn
from quadric.reference._counts import COUNTS, EXTRA_MEMORY, PARAMETERS
from quadric.reference._pieces import Array, M, Parameters, sigma


def w_gradient(Q: Array, w: Array, b: Any, x: Array, y: Any) -> Array:
    """Section II, vector form: w <- w - eta (y - yhat) x. The sign is wrong."""
    return (y - sigma(x @ Q @ x + w @ x + b)) * x


def update_swapped(
    layer: Parameters, delta: Array, v1: Array, v2: Array | None, a: Array, eta: Any
) -> None:
    """Algorithm 2: b is updated with delta . v1 and c with delta . v2. The two are swapped."""
    before = dict(layer)
    update_rpqnn(layer, delta, v1, v2, a, eta)
    if v2 is not None:  # Algorithm 2 has no linear layers
        layer["b"] = before["b"] - eta * (delta * v1)
        layer["c"] = before["c"] - eta * (delta * v2)


def _update_qnn(
    layer: Parameters, delta: Array, a: Array, eta: Any, matrix: Callable[[Array], Array]
) -> None:
    """Update a layer as Algorithm 1 does, with another matrix instead of M(a)."""
    before = dict(layer)
    update_qnn(layer, delta, a, eta)
    if "Q" in layer:
        layer["Q"] = before["Q"] - (eta * delta)[:, None, None] * matrix(a)


# The printed updates, by what is wrong with them. Only the first one is that of an RPQNN.
PRINTED_UPDATES: dict[str, Callable[..., None]] = {
    "b and c swapped": update_swapped,
    # section V: Q is upper triangular and is updated with the upper triangle of M(a)
    "upper triangular Q": partial(_update_qnn, matrix=lambda a: np.triu(M(a))),
    # section II: the derivative with respect to all n^2 entries of Q
    "aa'": partial(_update_qnn, matrix=lambda a: np.outer(a, a)),
}
# Forms that the paper does not print, to compare with those that it prints.
OTHER_UPDATES: dict[str, Callable[..., None]] = {
    # as M(a), but with twice its diagonal
    "2aa'": partial(_update_qnn, matrix=lambda a: 2 * np.outer(a, a)),
}
# (kind, step): the printed count. An "extra" count is added to the ANN's for the same step.
PRINTED_COUNTS: dict[tuple[str, str], Any] = {
    ("ann", "forward"): lambda m, n: m * n,
    ("ann", "backward"): lambda m, n: m * n + n,
    ("ann", "update"): lambda m, n: m * n + m + n,
    ("qnn", "extra forward"): lambda m, n: m * (n * (n + 1) // 2 + n),
    ("qnn", "extra backward"): lambda m, n: m * n,
    ("qnn", "extra update"): lambda m, n: m * n * (n + 1) // 2 + m * n,
    ("qnn", "extra memory"): lambda m, n: m * n * (n + 1) // 2 + 2 * m * n,
    ("qnn", "extra parameters"): lambda m, n: m * n * (n + 1) // 2,
    ("rpqnn", "extra forward"): lambda m, n: m * n + m,
    ("rpqnn", "extra backward"): lambda m, n: m * n + 2 * m,
    ("rpqnn", "extra update"): lambda m, n: 3 * m * n - n + 7 * m,
    ("rpqnn", "extra memory"): lambda m, n: m * n + 3 * m,
    ("rpqnn", "text forward"): lambda m, n: 2 * m * n + m,
    ("rpqnn", "text backward and update"): lambda m, n: 4 * m * n + 6 * m + n,
    ("rpqnn", "extra parameters, abstract"): lambda m, n: m * n,
    ("rpqnn", "extra parameters, section IV"): lambda m, n: m * 2 * n,
}

WHY_COUNTS_DIFFER = {
    ("ann", "update"): "not an error: mn + m + n if eta scales a, mn + 2m if it scales delta twice",
    ("qnn", "forward"): "printed: a'Qa from the triangle, without computing V; counted: V, mn²",
    ("qnn", "update"): "M(a) is shared by all neurons: n² once, not mn; eta scales delta again: m",
    ("rpqnn", "update"): "printed 3mn; the two outer products take 2mn, of which mn is extra",
    ("qnn", "extra memory"): "Q and V are mn(n+1)/2 + mn numbers; the printed count has mn more",
    ("rpqnn", "extra parameters, abstract"): "printed n per neuron; U and c have n + 1",
    ("rpqnn", "extra parameters, section IV"): "printed 2n per neuron; U and c have n + 1",
}


class CountComparison(NamedTuple):
    """A count of the paper, as printed and as counted.

    Parameters
    ----------
    kind : str
        The model: 'ann', 'qnn' or 'rpqnn'.
    quantity : str
        A step, whose count is the total of the layer, or what the layer stores beyond an ANN's.
    printed : int
        The printed count.
    counted : int
        The count of the algorithms, line by line.
    why : str
        Why the two formulas differ; empty if they do not.
    """

    kind: str
    quantity: str
    printed: int
    counted: int
    why: str


def printed_count(kind: str, step: str, m: int, n: int) -> int:
    """Return the printed multiplications of a step: the ANN's and the extra ones of Table I.

    Parameters
    ----------
    kind : {'ann', 'qnn', 'rpqnn'}
        The model.
    step : {'forward', 'backward', 'update'}
        The step.
    m : int
        Number of neurons.
    n : int
        Number of inputs.

    Returns
    -------
    int
        The number of multiplications of one layer for one sample.
    """
    extra = 0 if kind == "ann" else PRINTED_COUNTS[kind, f"extra {step}"](m, n)
    return int(PRINTED_COUNTS["ann", step](m, n) + extra)


def compare_counts(m: int, n: int) -> list[CountComparison]:
    """Return the paper's Tables I and II for a layer, as printed and as counted.

    Parameters
    ----------
    m : int
        Number of neurons.
    n : int
        Number of inputs.

    Returns
    -------
    list of CountComparison
        The multiplications of each model and step, then the extra memory and parameters of the QNN
        and the RPQNN, of which the abstract and section IV print different numbers.

    Examples
    --------
    >>> from quadric.reference import compare_counts
    >>> for line in compare_counts(10, 30)[4:6]:
    ...     print(line.kind, line.quantity, line.printed, line.counted)
    qnn backward 630 630
    qnn update 5290 5880
    """
    lines = [
        (kind, step, printed_count(kind, step, m, n), formula(m, n))
        for (kind, step), formula in COUNTS.items()
    ]
    for (kind, quantity), formula in PRINTED_COUNTS.items():
        if quantity == "extra memory":
            lines.append((kind, quantity, formula(m, n), EXTRA_MEMORY[kind](m, n)))
        elif quantity.startswith("extra parameters"):
            extra = PARAMETERS[kind](m, n) - PARAMETERS["ann"](m, n)
            lines.append((kind, quantity, formula(m, n), extra))
    return [CountComparison(*line, WHY_COUNTS_DIFFER.get(line[:2], "")) for line in lines]
