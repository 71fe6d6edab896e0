"""Prediction of 10 000 rows by a 784-30-10 network, compared with its matrix products alone."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import best_seconds
from quadric import QuadraticClassifier

ROWS, N, HIDDEN, CLASSES = 10_000, 784, 30, 10


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((ROWS, N), dtype=np.float32)
    y = np.arange(ROWS) % CLASSES
    model = QuadraticClassifier((HIDDEN,), activation="logistic", max_iter=1, alpha=1.0).fit(
        X[:200], y[:200]
    )
    first, last = model.network_.layers
    Q = np.ascontiguousarray(last.Q.reshape(CLASSES * HIDDEN, HIDDEN).T)
    W = np.ascontiguousarray(first.W.T)

    def two_products():
        return (X @ W) @ Q

    best = best_seconds(
        {"two products": two_products, "predict": lambda: model.predict(X)}, rounds=40
    )
    ratio = best["predict"] / best["two products"]
    print(f"prediction of {ROWS} rows by {N}-{HIDDEN}-{CLASSES}, float32")
    for name, seconds in best.items():
        print(f"  {name:<14}{seconds * 1e3:7.2f} ms")
    print(f"  predict / two products: {ratio:.2f} (target: at most 1.3)")


if __name__ == "__main__":
    main()
