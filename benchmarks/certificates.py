"""Time of certified radii: `python -m benchmarks.certificates`.

All 10 000 test images of MNIST for one quadratic layer, folded from a bilinear MLP (784 inputs, 10
classes), and 100 000 rows with 20 inputs and 3 classes. Both times include folding, one
eigendecomposition per pair of classes, and the model's own predictions.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from quadric import Network
from quadric.certify import Radii, radius
from quadric.convert import fold
from quadric.datasets import mnist

LAYERS = [("reduced", 64, "identity"), ("linear", 10, "softmax")]
ROWS, N, CLASSES = 100_000, 20, 3


def digits_model(rng: int = 0, images: int = 20_000) -> tuple[Network, np.ndarray, np.ndarray]:
    """A folded bilinear MLP trained for two epochs, and the test images and labels of MNIST."""
    data = mnist()
    X, y = data.X_train[:images] / data.largest, data.y_train[:images]
    network = Network.create(X.shape[1], LAYERS, rng=rng, dtype="float32")
    options = {"solver": "adam", "learning_rate": 2e-3, "batch_size": 100, "epochs": 2}
    network.fit(X.astype("float32"), np.eye(10, dtype="float32")[y], rng=rng, **options)
    return fold(network), data.X_test / data.largest, data.y_test


def random_model(rng: int = 0) -> tuple[Network, np.ndarray]:
    """A random quadratic layer, and standard normal rows."""
    network = Network.create(N, [("quadratic", CLASSES, "softmax")], rng=rng)
    return network, np.random.default_rng(rng).normal(size=(ROWS, N))


def timed(name: str, target: float, compute: Callable[[], Radii]) -> Radii:
    wall, cpu = time.perf_counter(), time.process_time()
    found = compute()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    kept = (found.radius / found.distance)[found.distance > 0]
    print(f"{name}: {wall:.1f} s, {cpu:.1f} s of CPU time (target: at most {target:g} s)")
    print(f"  radius / distance: median {np.median(kept):.9f}, lowest {kept.min():.6f}")
    return found


def main() -> None:
    network, X, y = digits_model()
    radius(network, X[:10])  # compile
    found = timed(f"{len(X)} images, {network}", 60, lambda: radius(network, X))
    right = found.predicted == y
    print(f"  accuracy {right.mean():.4f}, median radius {np.median(found.radius[right]):.3f}")
    single = radius(network.astype("float32"), X[:500])
    kept = np.median(single.radius / single.distance)
    print(f"  for the first 500 images in float32, median of radius / distance {kept:.4f}")
    small, rows = random_model()
    timed(f"{ROWS} rows, {small}", 10, lambda: radius(small, rows))


if __name__ == "__main__":
    main()
