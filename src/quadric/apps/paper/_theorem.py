"""The cluster theorem: one layer of C quadratic neurons separates C bounded clusters.

The theorem is checked by construction (the smallest ellipsoid around each class) and by training.
Two interleaved moons are shown to be a counterexample, with a proof.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from quadric import QuadraticClassifier, separate
from quadric.apps.paper._experiment import (
    Claim,
    Context,
    Outcome,
    Table,
    Verdict,
    headline,
    new_figure,
)
from quadric.checks import Array
from quadric.convert import separating_quadric
from quadric.plotting import plot_clusters, plot_points

COUNTS = (2, 5, 10, 20, 50)
DIMENSIONS = (2, 3, 5, 10, 20)


PROOF = "no conic separates two interleaved moons, as a proof based on {} points shows"


def bounded_clusters(C: int, d: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Draw training and test points uniformly from C disjoint ellipsoids in d dimensions.

    Returns X and y of the training points, then those of the test points. Both sets have
    30 + 10 d points per cluster.
    """
    centers: list[Array] = []
    box = 1.6 * C ** (1 / d) + 2.0
    while len(centers) < C:  # at least 2.5 apart, with half-lengths of at most 1
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
    points, y = np.stack(parts), np.repeat(np.arange(C), count)
    return points[:, :count].reshape(-1, d), y, points[:, count:].reshape(-1, d), y


def train(C: int, d: int, seed: int) -> dict[str, Any]:
    """Separate clusters by construction and by training; return a row of the table."""
    start = time.perf_counter()
    X, y, X_new, y_new = bounded_clusters(C, d, np.random.default_rng([C, d, seed]))
    separation = separate(X, y)
    model = QuadraticClassifier(
        (),
        layer_kinds="quadratic",
        loss="binary_cross_entropy",
        alpha=1e-6,
        max_iter=500,
        solver="auto",
        random_state=seed,
    ).fit(X, y)
    return {
        "C": C,
        "d": d,
        "seed": seed,
        "ellipsoids disjoint": separation.disjoint,
        "constructed": _by_thresholds(separation.network, X, y),
        "constructed, new points": _by_thresholds(separation.network, X_new, y_new),
        "trained": _by_thresholds(model.network_, X, y),
        "trained, new points": _by_thresholds(model.network_, X_new, y_new),
        "seconds": time.perf_counter() - start,
    }


def _by_thresholds(network: Any, X: Array, y: Array) -> float:
    """Return the percentage of points for which every neuron is correct.

    A point on the surface of an ellipsoid, with z = 0, counts as inside, as in `separate`.
    """
    z = network.logits(X)
    outputs = z.shape[1]
    right = np.eye(outputs, dtype=bool)[y] if outputs > 1 else (y == 1)[:, None]
    return 100 * float(((z >= 0) == right).all(axis=1).mean())


def run(context: Context) -> Outcome:
    """Separate all sets of clusters; a quick run omits the largest counts and dimensions."""
    end = None if context.full else 4
    cases = product(COUNTS[:end], DIMENSIONS[:end], (0,))
    rows: list[dict[str, Any]] = context.map(train, list(cases), "theorem")
    columns = tuple(rows[0])
    X, y = make_moons(200, noise=0.0, random_state=0)
    moons = separating_quadric(X, y)
    weights = np.zeros(len(y)) if moons.weights is None else moons.weights
    support = int((weights > 1e-9).sum())
    separated = moons.quadric is not None
    claims = claims_of(rows, None if separated else support)
    found = f"{sum(row['constructed'] == 100 for row in rows)} of {len(rows)}"
    return Outcome(
        "theorem",
        "The cluster theorem",
        f"{len(rows)} sets of clusters, distributed uniformly in disjoint ellipsoids. They are "
        "separated by the smallest ellipsoid around each class and by one trained layer.",
        [
            Table(
                "theorem",
                "C clusters in d dimensions: points for which every neuron is correct, in percent",
                columns,
                [tuple(row.values()) for row in rows],
                "For two classes, one neuron is trained. New points may fall just outside the "
                "smallest ellipsoid around the training points, especially in many dimensions.",
                dict.fromkeys(columns[4:], ".1f"),
            )
        ],
        claims,
        {"theorem": draw(X, y, weights)},
        {"cases": len(rows)},
        {
            "theorem": "Left: five bounded clusters and the smallest ellipse around each, which is "
            "the boundary of one quadratic neuron. Right: two moons, and the "
            f"{support} points that prove that no conic separates them. With the weights beside "
            "the points, x, y, x², xy and y² have the same mean in both classes. A quadratic "
            "function therefore also has the same mean, so it cannot be positive on one class and "
            "negative on the other."
        },
        [
            f"One layer of C quadratic neurons separates {found} sets of C clusters that lie in "
            "disjoint ellipsoids. The theorem needs this condition"
            + ("." if separated else f": {PROOF.format(support)}.")
        ],
        headline=headline(
            claims, "cluster-theorem", "theorem: cluster sets separated", "all", found
        ),
        descriptions={
            "theorem": "Left: five groups of points, each inside its own ellipse; no two ellipses "
            "overlap. Right: two interleaved half circles of points. Rings mark "
            f"{support} points, {int((weights[y == 0] > 1e-9).sum())} on the upper and "
            f"{int((weights[y == 1] > 1e-9).sum())} on the lower half circle."
        },
    )


def claims_of(rows: Sequence[Mapping[str, Any]], support: int | None) -> list[Claim]:
    """Judge the claims by the sets of clusters.

    `support` is the number of points that prove that no conic separates two moons; None if one
    does.
    """
    values = {name: [row[name] for row in rows] for name in rows[0]}
    pairs = [row["trained"] for row in rows if row["C"] == 2]
    proof = PROOF.format(support)
    separated = support is None
    every = set(values["constructed"]) == {100}
    return [
        Claim(
            "cluster-theorem",
            "an argument that assumes an ellipsoid around each cluster",
            f"{values['constructed'].count(100)} of {len(rows)} sets of clusters in disjoint "
            "ellipsoids are separated by construction (smallest ellipsoids disjoint in "
            f"{sum(values['ellipsoids disjoint'])}), {values['trained'].count(100)} by training; "
            f"{np.mean(values['constructed, new points']):.1f} % and "
            f"{np.mean(values['trained, new points']):.1f} % of new points are classified "
            "correctly. " + ("" if separated else f"The condition is needed: {proof}"),
            Verdict.of(every and separated, partly=every),
            Verdict.CONDITIONALLY,
            "construction, training and linear program",
        ),
        Claim(
            "ellipsoid-always",
            "stated without proof",
            "two moons were separated" if separated else f"counterexample: {proof}",
            Verdict.UNKNOWN if separated else Verdict.FAILS,
            Verdict.UNKNOWN,
            "proof by linear programming",
        ),
        Claim(
            "exactly-C",
            "argued: one neuron for each cluster",
            f"{len(pairs)} pairs of clusters, one neuron: "
            + ", ".join(f"{share:.0f} %" for share in pairs)
            + " of the points are on the correct side",
            Verdict.FAILS if 100 in pairs else Verdict.UNKNOWN,
            Verdict.FAILS,
            "counterexamples by training",
        ),
    ]


def draw(X: Array, y: Array, weights: Array) -> Figure:
    """Draw five clusters with their ellipses, and two moons with the points of the proof."""
    figure, (left, right) = new_figure(9.2, 3.3, 1, 2, width_ratios=(3, 4))
    clusters, labels, *_ = bounded_clusters(5, 2, np.random.default_rng([5, 2, 0]))
    plot_clusters(separate(clusters, labels).network, clusters, labels, left)
    left.set_title("five neurons separate five clusters", fontsize=10)
    plot_points(X, y, right, size=10)
    support = np.flatnonzero(weights > 1e-9)
    right.scatter(*X[support].T, s=110, facecolors="none", edgecolors="#222222", linewidths=1.6)
    centers = np.array([(0.0, 0.0), (1.0, 0.5)])
    for k in support:
        right.annotate(
            f"{weights[k]:.2g}",
            X[k],
            tuple(20 * (X[k] - centers[y[k]])),  # outwards
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
        )
    right.set_title(f"two moons: {len(support)} points prove that no conic can", fontsize=10)
    right.set(aspect="equal")
    right.margins(0.18)
    return figure
