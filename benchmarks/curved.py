"""Compare the default with settings made by hand on curved problems: python -m benchmarks.curved

Each problem is generated from several seeds, and scored on 2000 new rows: the accuracy of a
classifier, or R² of a regressor. `--by-hand` searches for the best setting of each problem among
shapes, penalties and numbers of iterations; its scores are optimistic, because the setting with the
best mean score on the new rows is shown. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sk
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticClassifier, QuadraticRegressor

TEST_ROWS = 2000
BY_HAND = Path("results/curved_by_hand.json")


def _moons(rows: int, seed: int):
    return sk.make_moons(rows, noise=0.1, random_state=seed)


def _spirals(rows: int, seed: int):
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, rows)
    t = np.sqrt(rng.random(rows)) * 3 * np.pi
    X = np.where(arm, 1, -1)[:, None] * np.stack([t * np.cos(t), t * np.sin(t)], 1)
    return X + 0.4 * rng.normal(size=X.shape), arm


def _checkerboard(rows: int, seed: int):
    X = np.random.default_rng(seed).uniform(0, 3, (rows, 2))
    return X, X.astype(int).sum(axis=1) % 2


def _ring(rows: int, seed: int):
    """A ring in the first two of ten inputs."""
    X = np.random.default_rng(seed).normal(size=(rows, 10))
    radius = np.hypot(X[:, 0], X[:, 1])
    return X, ((radius > 0.75) & (radius < 1.5)).astype(int)


def _waves(rows: int, seed: int, *, width: float):
    rng = np.random.default_rng(seed)
    U = rng.uniform(-width, width, (rows, 2))
    return U, np.sin(2 * U[:, 0]) * np.cos(2 * U[:, 1]) + 0.1 * rng.normal(size=rows)


def _friedman(make: Callable[..., Any], noise: float):
    return lambda rows, seed: make(rows, noise=noise, random_state=seed)


# the problem, the number of rows for training, and the number of seeds
PROBLEMS: dict[str, tuple[Callable[[int, int], Any], int, int]] = {
    "moons": (_moons, 100, 6),
    "spirals": (_spirals, 600, 4),
    "checkerboard 3 x 3": (_checkerboard, 700, 4),
    "ring in 10 inputs": (_ring, 1000, 4),
    "sin(2u) cos(2v), inputs up to 2": (lambda *args: _waves(*args, width=2.0), 2000, 5),
    "sin(2u) cos(2v), inputs up to 3": (lambda *args: _waves(*args, width=3.0), 2000, 5),
    "friedman 1": (_friedman(sk.make_friedman1, 1.0), 500, 4),
    "friedman 2": (_friedman(sk.make_friedman2, 50.0), 500, 4),
    "friedman 3": (_friedman(sk.make_friedman3, 0.1), 500, 4),
}
HIDDEN = [(), (32,), (64,), (32, 32)]
KINDS = ["linear", "quadratic"]  # of the last layer
ALPHAS = [0.001, 0.01, 0.1, 1.0, 10.0]
ITERATIONS = [200, 1000]


def scores(name: str, **parameters: Any) -> list[float]:
    """Return the score of each seed."""
    make, rows, seeds = PROBLEMS[name]
    found = []
    for seed in range(seeds):
        X, y = make(rows, seed)
        estimator = QuadraticClassifier if y.dtype.kind == "i" else QuadraticRegressor
        model = make_pipeline(StandardScaler(), estimator(random_state=seed, **parameters))
        found.append(float(model.fit(X, y).score(*make(TEST_ROWS, 1000 + seed))))
    return found


def search(name: str) -> dict[str, Any]:
    """Return the best setting made by hand, and its mean score."""
    best: dict[str, Any] = {"score": -np.inf}
    for hidden, kind, alpha, iterations in itertools.product(HIDDEN, KINDS, ALPHAS, ITERATIONS):
        parameters = {
            "hidden_layer_sizes": hidden,
            "layer_kinds": ["linear"] * len(hidden) + [kind],
            "alpha": alpha,
            "max_iter": iterations,
            "solver": "lbfgs",
        }
        score = float(np.mean(scores(name, **parameters)))
        if score > best["score"]:
            best = {"score": score, **parameters}
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by-hand", action="store_true", help=f"search, and write {BY_HAND}")
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    by_hand = json.loads(BY_HAND.read_text(encoding="utf-8")) if BY_HAND.exists() else {}
    print("| problem | default | lowest seed | by hand | difference | CPU time of a fit, s |")
    print("|---|---|---|---|---|---|")
    for name in arguments.problems:
        if arguments.by_hand:
            by_hand[name] = search(name)
            BY_HAND.write_text(json.dumps(by_hand, indent=1) + "\n", encoding="utf-8")
        start = time.process_time()
        found = scores(name)
        seconds = (time.process_time() - start) / len(found)
        best = by_hand.get(name, {"score": np.nan})["score"]
        print(
            f"| {name} | {np.mean(found):.3f} | {min(found):.3f} | {best:.3f} | "
            f"{np.mean(found) - best:+.3f} | {seconds:.2f} |"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
