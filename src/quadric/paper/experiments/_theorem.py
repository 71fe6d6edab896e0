"""The cluster theorem: C bounded clusters, one layer of C quadratic neurons.

By construction (the smallest ellipsoid around each class) and by training; and the case in which
it does not hold, two interleaved moons, with the proof.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import make_moons

from quadric._utils.arrays import Array
from quadric._utils.blas_threads import one_blas_thread
from quadric.convert._separation import separate, separating_quadric
from quadric.estimators import QuadraticClassifier
from quadric.paper.experiments._outcome import Claim, Outcome, Progress, Table, silent

COUNTS = (2, 5, 10, 20, 50)
DIMENSIONS = (2, 3, 5, 10, 20)


@dataclass(frozen=True)
class Row:
    """C clusters in d dimensions, a seed; accuracies in percent, every neuron by itself."""

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
    """Points to train and to test with, uniform in C ellipsoids that do not meet."""
    centers: list[Array] = []
    box = 1.6 * C ** (1 / d) + 2.0
    while len(centers) < C:  # at least 2.5 apart; half-lengths are at most 1
        candidate = rng.uniform(-box, box, d)
        if all(np.linalg.norm(candidate - center) > 2.5 for center in centers):
            centers.append(candidate)
        box *= 1.002
    parts: list[tuple[Array, Array]] = []
    for center in centers:
        R, _ = np.linalg.qr(rng.normal(size=(d, d)))
        A = R * rng.uniform(0.3, 1.0, d)
        count = 30 + 10 * d
        directions = rng.normal(size=(2 * count, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        points = center + (directions * rng.random((2 * count, 1)) ** (1 / d)) @ A.T
        parts.append((points[:count], points[count:]))
    y = np.repeat(np.arange(C), len(parts[0][0]))
    train, test = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return train, y, test, y


def train(C: int, d: int, seed: int) -> Row:
    """Separate them by construction and by training."""
    start = time.perf_counter()
    X, y, X_new, y_new = bounded_clusters(C, d, np.random.default_rng([C, d, seed]))
    found = separate(X, y)
    model = QuadraticClassifier(
        (), layer_kinds="quadratic", loss="binary_cross_entropy", alpha=1e-6, max_iter=500,
        solver="auto", random_state=seed,
    ).fit(X, y)  # fmt: skip
    made, made_new, trained, trained_new = (
        _by_thresholds(network, points, labels, C)
        for network in (found.network, model.network_)
        for points, labels in ((X, y), (X_new, y_new))
    )
    seconds = time.perf_counter() - start
    return Row(C, d, seed, found.disjoint, made, made_new, trained, trained_new, seconds)


def _by_thresholds(network: Any, X: Array, y: Array, C: int) -> float:
    z = network.logits(X)
    if z.shape[1] == 1:  # two classes, one neuron
        return 100 * float(((z[:, 0] > 0) == (y == 1)).mean())
    return 100 * float(((z > 0) == np.eye(C, dtype=bool)[y]).all(axis=1).mean())


def run(*, full: bool = False, jobs: int = 2, progress: Progress = silent) -> Outcome:
    """All numbers of clusters and dimensions; a quick run leaves out the largest of both."""
    counts = COUNTS if full else COUNTS[:4]
    dimensions = DIMENSIONS if full else DIMENSIONS[:4]
    cases = [(C, d, seed) for C in counts for d in dimensions for seed in (0,)]
    rows: list[Row] = []
    tasks = [delayed(train)(*case) for case in cases]
    with one_blas_thread():
        for row in Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(tasks):
            rows.append(row)
            progress(len(rows), len(cases), f"theorem: {row.C} clusters in {row.d} dimensions")
    X, y = make_moons(200, noise=0.0, random_state=0)
    moons = separating_quadric(X, y)
    assert moons.weights is not None or moons.quadric is not None
    support = 0 if moons.weights is None else int((moons.weights > 1e-9).sum())
    disjoint = sum(row.disjoint for row in rows)
    constructed = sum(row.constructed == 100 for row in rows)
    trained = sum(row.trained == 100 for row in rows)
    new = float(np.mean([row.constructed_new for row in rows]))
    trained_new = float(np.mean([row.trained_new for row in rows]))
    claims = [
        Claim(
            "C bounded clusters are separated by a layer of C quadratic neurons", "proved",
            f"{constructed} of {len(rows)} data sets by construction (ellipsoids disjoint in "
            f"{disjoint}), {trained} by training; of new points {new:.1f} % and "
            f"{trained_new:.1f} % fall right",
            constructed == len(rows),
        ),
        Claim(
            "... whatever the bounded clusters are", "stated",
            "two interleaved moons: no conic separates them; the proof has weight on "
            f"{support} points" if moons.quadric is None else "two moons were separated",
            moons.quadric is not None, erratum=True,
        ),
        Claim(
            "exactly C neurons are needed", "stated",
            "two clusters, one neuron: "
            + ", ".join(f"{row.trained:.0f} %" for row in rows if row.C == 2),
            not all(row.trained == 100 for row in rows if row.C == 2), erratum=True,
        ),
    ]  # fmt: skip
    columns = ("C", "d", "seed", "ellipsoids disjoint", "constructed", "constructed, new points",
               "trained", "trained, new points", "seconds")  # fmt: skip
    table = Table(
        "theorem", "C clusters in d dimensions: points on which every neuron is right, in percent",
        columns, [tuple(row.__dict__.values()) for row in rows],
        "Two classes are trained as one neuron. New points may fall just outside the smallest "
        "ellipsoid around the training points, above all in many dimensions.",
        dict.fromkeys(columns[4:], ".1f"),
    )  # fmt: skip
    return Outcome(
        "theorem", "The cluster theorem",
        f"{len(rows)} sets of clusters, uniform in ellipsoids that do not meet; separated by the "
        "smallest ellipsoid of each class and by training one layer.",
        [table], claims, {}, {"cases": len(rows)},
    )  # fmt: skip
