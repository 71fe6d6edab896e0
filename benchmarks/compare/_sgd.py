"""Per-sample SGD: one step of a 784-30-10 network with each kind of output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.compare import _sgd_peers as peers
from benchmarks.compare._peers import is_installed, skipped
from benchmarks.compare._result import OURS, case_of, to_json
from benchmarks.sgd_step import KINDS, make_data, make_network
from benchmarks.timing import seconds_by_round

TITLE = "Per-sample SGD: one step of a 784-30-10 network"
UNIT, PER_SECOND = "µs per step", 1e6
TOLERANCE = 2e-5  # of the parameters in float32, after CHECKED steps
CHECKED = 50


class Contender(NamedTuple):
    """How a peer trains, for which kinds of output, and on how many rows per timed run."""

    train: Callable[..., peers.Training]
    rows: int
    kinds: tuple[str, ...] = KINDS
    needs: str | None = None


CONTENDERS = {
    OURS: Contender(peers.quadric, 10_000),
    "quadric, CSR rows": Contender(peers.quadric_sparse, 10_000),
    "quadric.reference": Contender(peers.reference, 100),
    "JAX, lax.scan": Contender(peers.jax_scan, 1000, needs="JAX"),
    "torch, einsum": Contender(peers.torch_einsum, 100, needs="torch"),
    "torch, nn.Bilinear": Contender(peers.torch_bilinear, 100, ("quadratic",), needs="torch"),
    "MLPClassifier": Contender(peers.sklearn_mlp, 200, ("linear",)),
    "Vowpal Wabbit -q ::": Contender(peers.vowpal_wabbit, 50, ("quadratic",), "Vowpal Wabbit"),
    "river, linear": Contender(peers.river_linear, 50, ("linear",), "river"),
    "river, products": Contender(peers.river_quadratic, 5, ("quadratic",), "river"),
}
NOTES = (
    "784 inputs of which 19 % are not zero, float32, one thread. The time of quadric is that of "
    "`Network.fit` on a dense array of 10 000 rows, with its checks and the compression of the "
    "rows, which later epochs do not need; quadric, CSR rows is the same for a sparse array. The "
    "data of the others are prepared before the timed runs.",
    f"All contenders that train this network have the same parameters after {CHECKED} steps, up to "
    f"{TOLERANCE:g}.",
    "Vowpal Wabbit and river have no such network. They train logistic regressions (Vowpal Wabbit) "
    "or a softmax regression (river) on the inputs, or on all products of two inputs: 11 000 "
    "products per sample, where the quadratic output has 465. Both use only the inputs that are "
    "not zero, as quadric does.",
    "torch, JAX and scikit-learn multiply all inputs.",
)


def run(*, quick: bool) -> dict[str, Any]:
    X, Y = make_data()
    X = X.toarray()
    rounds, budget = (9, 6.0) if quick else (25, 30.0)
    cases = []
    for kind in KINDS:
        start = make_network(kind)
        chosen = {n: c for n, c in CONTENDERS.items() if kind in c.kinds and is_installed(c.needs)}
        check_equal(start, chosen, X[:CHECKED], Y[:CHECKED])
        runs = {n: c.train(start, X[: c.rows], Y[: c.rows]).run for n, c in chosen.items()}
        found = seconds_by_round(runs, rounds=rounds, budget=budget)
        units = {name: contender.rows for name, contender in chosen.items()}
        cases.append(case_of(f"{kind} output", found, units=units))
    return {"cases": to_json(cases), "skipped": skipped([c.needs for c in CONTENDERS.values()])}


def check_equal(start: Any, chosen: dict[str, Contender], X: np.ndarray, Y: np.ndarray) -> None:
    """Raise AssertionError unless all that train the network get the same parameters."""
    trained = {name: contender.train(start, X, Y) for name, contender in chosen.items()}
    same = {name: training for name, training in trained.items() if training.layers}
    for training in same.values():
        training.run()
    ours = same[OURS].layers()
    for name, training in same.items():
        for one, other in zip(ours, training.layers(), strict=True):
            for key, array in one.items():
                message = f"{name} differs from quadric in {key}"
                np.testing.assert_allclose(other[key], array, atol=TOLERANCE, err_msg=message)
