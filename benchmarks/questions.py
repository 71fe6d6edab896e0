"""Times of the questions to a model: attributions, flip probabilities and extrema.

python -m benchmarks.questions [attributions | flips | boxes]

Prints one line per measurement, and ratios to the strongest alternative in the same run.
"""

import sys
import time

import numpy as np

from quadric import Network
from quadric.certify import Box, extremum, flip_probability
from quadric.core import Quadratic
from quadric.explain import attribute


def random_network(n: int, seed: int = 0) -> Network:
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(1, n, n))
    return Network(
        [Quadratic(rng.normal(size=(1, n)), [0.5], Q + Q.transpose(0, 2, 1))], ["logistic"]
    )


def attributions(rows: int = 1000, n: int = 20, background: int = 100) -> None:
    """Compare with shap's kernel explainer, with its default number of samples."""
    import shap

    network, rng = random_network(n), np.random.default_rng(1)
    X, others = rng.normal(size=(rows, n)), rng.normal(size=(background, n))
    attribute(network, X, others)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        found = attribute(network, X, others)
        times.append(time.perf_counter() - start)
    explainer = shap.KernelExplainer(lambda z: network.logits(z)[:, 0], others)
    start = time.perf_counter()
    estimated = explainer.shap_values(X, silent=True)
    slow = time.perf_counter() - start
    error = np.abs(estimated - found.values).max() / np.abs(found.values).max()
    print(
        f"attributions: {rows} rows, {n} inputs: {min(times) * 1e3:.2f} ms; KernelExplainer "
        f"{slow:.1f} s, {slow / min(times):.0f} times as long; largest difference {error:.1e}"
    )


def flips(rows: int = 10_000, n: int = 20) -> None:
    """Probabilities that noise of several levels changes one of two classes."""
    network, X = random_network(n), np.random.default_rng(1).normal(size=(rows, n))
    flip_probability(network, X[:2], 0.1)
    for level in (0.01, 0.1, 1.0):
        start = time.perf_counter()
        found = flip_probability(network, X, level)
        seconds = time.perf_counter() - start
        print(
            f"flips: {rows} rows, {n} inputs, noise {level}: {seconds:.2f} s, "
            f"largest error {found.error.max():.1e}"
        )


def boxes(count: int = 50, n: int = 20) -> None:
    """Maxima of random indefinite functions over boxes."""
    extremum(random_network(2), Box(-np.ones(2), np.ones(2)))
    seconds, gaps = [], []
    for seed in range(count):
        network = random_network(n, seed)
        start = time.perf_counter()
        gaps.append(extremum(network, Box(-np.ones(n), np.ones(n))).gap)
        seconds.append(time.perf_counter() - start)
    print(
        f"boxes: {count} problems, {n} inputs: median {np.median(seconds):.2f} s, longest "
        f"{max(seconds):.2f} s, largest gap {max(gaps):.0e}"
    )


MEASURES = {"attributions": attributions, "flips": flips, "boxes": boxes}


def main(names: list[str]) -> None:
    for name in names or MEASURES:
        MEASURES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
