"""The cluster theorem: one layer of C quadratic neurons separates C bounded clusters.

Checked by construction (the smallest ellipsoid around each class) and by training. Two interleaved
moons are a counterexample, with a proof.
"""

import time
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_moons

from quadric._utils.arrays import Array
from quadric.convert._separation import separate, separating_quadric
from quadric.estimators import QuadraticClassifier
from quadric.paper.experiments._experiment import Claim, Context, Outcome, Table, run_cases

COUNTS = (2, 5, 10, 20, 50)
DIMENSIONS = (2, 3, 5, 10, 20)
COLUMNS = (
    "C",
    "d",
    "seed",
    "ellipsoids disjoint",
    "constructed",
    "constructed, new points",
    "trained",
    "trained, new points",
    "seconds",
)


class SeparatedClusters(NamedTuple):
    """C clusters in d dimensions: points, in percent, on which every neuron is right."""

    C: int
    d: int
    seed: int
    disjoint: bool
    constructed: float
    constructed_new: float
    trained: float
    trained_new: float
    seconds: float


def bounded_clusters(C: int, d: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Draw training and test points, uniform in C disjoint ellipsoids."""
    centers: list[Array] = []
    box = 1.6 * C ** (1 / d) + 2.0
    while len(centers) < C:  # at least 2.5 apart; half-lengths are at most 1
        candidate = rng.uniform(-box, box, d)
        if all(np.linalg.norm(candidate - center) > 2.5 for center in centers):
            centers.append(candidate)
        box *= 1.002
    count = 30 + 10 * d
    parts: list[Array] = []
    for center in centers:
        R, _ = np.linalg.qr(rng.normal(size=(d, d)))
        A = R * rng.uniform(0.3, 1.0, d)
        directions = rng.normal(size=(2 * count, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        parts.append(center + (directions * rng.random((2 * count, 1)) ** (1 / d)) @ A.T)
    y = np.repeat(np.arange(C), count)
    halves = (slice(count), slice(count, None))
    train, test = (np.concatenate([part[half] for part in parts]) for half in halves)
    return train, y, test, y


def train(C: int, d: int, seed: int) -> SeparatedClusters:
    """Separate clusters by construction and by training."""
    start = time.perf_counter()
    X, y, X_new, y_new = bounded_clusters(C, d, np.random.default_rng([C, d, seed]))
    found = separate(X, y)
    model = QuadraticClassifier(
        (),
        layer_kinds="quadratic",
        loss="binary_cross_entropy",
        alpha=1e-6,
        max_iter=500,
        solver="auto",
        random_state=seed,
    ).fit(X, y)
    made, made_new, trained, trained_new = (
        _by_thresholds(network, points, labels, C)
        for network in (found.network, model.network_)
        for points, labels in ((X, y), (X_new, y_new))
    )
    scores = (made, made_new, trained, trained_new)
    return SeparatedClusters(C, d, seed, found.disjoint, *scores, time.perf_counter() - start)


def _by_thresholds(network: Any, X: Array, y: Array, C: int) -> float:
    z = network.logits(X)
    if z.shape[1] == 1:  # two classes, one neuron
        return 100 * float(((z[:, 0] > 0) == (y == 1)).mean())
    return 100 * float(((z > 0) == np.eye(C, dtype=bool)[y]).all(axis=1).mean())


def run(context: Context) -> Outcome:
    """Separate all sets of clusters; a quick run omits the largest counts and dimensions."""
    end = None if context.full else 4
    cases = list(product(COUNTS[:end], DIMENSIONS[:end], (0,)))
    rows: list[SeparatedClusters] = run_cases(context, train, cases, "theorem")
    X, y = make_moons(200, noise=0.0, random_state=0)
    moons = separating_quadric(X, y)
    support = 0 if moons.weights is None else int((moons.weights > 1e-9).sum())
    disjoint = sum(row.disjoint for row in rows)
    constructed = sum(row.constructed == 100 for row in rows)
    trained = sum(row.trained == 100 for row in rows)
    new = float(np.mean([row.constructed_new for row in rows]))
    trained_new = float(np.mean([row.trained_new for row in rows]))
    pairs = [row.trained for row in rows if row.C == 2]
    claims = [
        Claim(
            "C bounded clusters are separated by a layer of C quadratic neurons",
            "proved",
            f"{constructed} of {len(rows)} data sets by construction (ellipsoids disjoint in "
            f"{disjoint}), {trained} by training; {new:.1f} % and {trained_new:.1f} % of new "
            "points are classified correctly",
            constructed == len(rows),
        ),
        Claim(
            "... for any bounded clusters",
            "stated",
            "two interleaved moons: no conic separates them; the proof has weight on "
            f"{support} points"
            if moons.quadric is None
            else "two moons were separated",
            moons.quadric is not None,
            erratum=True,
        ),
        Claim(
            "exactly C neurons are needed",
            "stated",
            "two clusters, one neuron: " + ", ".join(f"{share:.0f} %" for share in pairs),
            not all(share == 100 for share in pairs),
            erratum=True,
        ),
    ]
    table = Table(
        "theorem",
        "C clusters in d dimensions: points on which every neuron is right, in percent",
        COLUMNS,
        rows,
        "Two classes are trained as one neuron. New points may fall just outside the smallest "
        "ellipsoid around the training points, above all in many dimensions.",
        dict.fromkeys(COLUMNS[4:], ".1f"),
    )
    return Outcome(
        "theorem",
        "The cluster theorem",
        f"{len(rows)} sets of clusters, uniform in disjoint ellipsoids; separated by the smallest "
        "ellipsoid of each class and by training one layer.",
        [table],
        claims,
        {},
        {"cases": len(rows)},
    )
