"""Certificates: seconds per certified input, next to the published times of verifiers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.certificates import digits_model, random_model
from benchmarks.compare._images import missing
from benchmarks.compare._tables import Table, number
from quadric.certify import radius

TITLE = "Certificates: seconds per certified input"
NOTES = (
    "quadric returns the exact distance to the nearest change of class, and a radius that includes "
    "all rounding errors. A verifier answers whether one given radius is safe, so a radius takes "
    "several runs of it. Published times come from other models and machines, and only their order "
    "of magnitude can be compared.",
)
PUBLISHED = [
    [
        "PNVerification (branch and bound, polynomial networks)",
        "whether one radius is safe, for MNIST",
        "5.3 to 5.6",
        "published by megaelius/PNVerification",
    ],
]


def run(*, quick: bool) -> dict[str, Any]:
    rows, skipped = [], missing(["MNIST"])
    if not skipped:
        network, X, _ = digits_model()
        X = X[: 300 if quick else 2000]
        rows.append(row(f"MNIST, {len(X)} images, 784 inputs, 10 classes", network, X))
    network, X = random_model()
    X = X[: 20_000 if quick else len(X)]
    rows.append(row(f"normal data, {len(X)} rows, 20 inputs, 3 classes", network, X))
    return {"rows": rows, "skipped": skipped}


def row(what: str, network: Any, X: np.ndarray) -> dict[str, Any]:
    radius(network, X[:10])  # compile
    start = time.perf_counter()
    found = radius(network, X)
    seconds = (time.perf_counter() - start) / len(X)
    kept = (found.radius / found.distance)[(found.distance > 0) & np.isfinite(found.distance)]
    return {"what": what, "seconds": seconds, "kept": float(np.median(kept))}


def tables(found: dict[str, Any]) -> list[Table]:
    ours = [
        [
            f"quadric: {row['what']}",
            "the largest safe radius",
            number(row["seconds"]),
            f"measured here; {row['kept']:.7f} of the exact distance (median)",
        ]
        for row in found["rows"]
    ]
    return [Table(TITLE, ["verifier", "result", "seconds", "source"], [*ours, *PUBLISHED])]


def rival(found: dict[str, Any]) -> str:
    verifier, result, seconds, source = PUBLISHED[0]
    return (
        f"No other library computes this distance. The closest is {verifier}. It decides {result}: "
        f"{seconds} seconds, {source}."
    )
