"""Compile all loops before they are needed, by calls of tiny networks that use them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from quadric.kernels import watch_compilation
from quadric.network._network import Network

ROWS = 4
MANY = 4000  # rows; SGD compresses X only if it has many entries, most of them zeros


def compile_loops(report: Callable[[int, int], None] | None = None) -> int:
    """Compile the loops that are not in the cache yet, and return their number.

    The compiled code is cached in the directory NUMBA_CACHE_DIR, or else next to the installed
    package, so that later processes do not compile again.

    Parameters
    ----------
    report : callable, optional
        Called as report(done, total) before each of the steps and at the end.

    Examples
    --------
    >>> from quadric.network import compile_loops
    >>> _ = compile_loops()
    >>> compile_loops()  # everything is there
    0
    """
    steps = [step for dtype in ("float32", "float64") for step in _steps(dtype)]
    compiled: list[None] = []
    with watch_compilation(lambda: compiled.append(None)):
        for done, step in enumerate(steps):
            if report:
                report(done, len(steps))
            step()
    if report:
        report(len(steps), len(steps))
    return len(compiled)


def _steps(dtype: str) -> Iterator[Callable[[], object]]:
    """Yield calls that use each of the loops: predictions, gradients, L-BFGS and SGD."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(ROWS, 3)).astype(dtype), np.eye(2, dtype=dtype)[[0, 1, 0, 1]]
    zeros = np.zeros((MANY, 3), dtype)
    layers = [("quadratic", 2, "logistic"), ("quadratic", 2, "softmax")]

    def network() -> Network:
        return Network.create(3, layers, rng=0, dtype=dtype)

    yield lambda: network().forward(X)
    yield lambda: network().gradients(X, Y)
    yield lambda: network().fit(X, Y, solver="lbfgs", epochs=3)
    for inputs in (X, zeros, sparse.csr_array(X)):
        targets = np.resize(Y, (len(Y) * inputs.shape[0] // ROWS, 2))
        yield partial(_fit_by_sgd, network, inputs, targets)


def _fit_by_sgd(network: Callable[[], Network], X: Any, Y: Any) -> None:
    network().fit(X, Y, solver="sgd", epochs=1, rng=0)
