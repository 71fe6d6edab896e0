"""Prediction of 10 000 rows, compared with its matrix products, and of one row, with MLPClassifier.

The products and the prediction take turns, and so do the classifiers. Times of one row are those of
the CPU, which other processes change less than the time of a clock.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.timing import best_seconds, seconds_by_round
from quadric import QuadraticClassifier

ROWS, N, HIDDEN, CLASSES = 10_000, 784, 30, 10
ONE_ROW = ((4, 3, "float64"), (20, 2, "float64"), (N, CLASSES, "float32"))  # inputs and classes


def main() -> None:
    warnings.simplefilter("ignore")  # few iterations are enough to time predictions
    with threadpool_limits(1):
        many_rows()
        one_row()


def many_rows() -> None:
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


def one_row() -> None:
    print("predict_proba of one row, µs of CPU time, and MLPClassifier / quadric (target: above 1)")
    for n, classes, dtype in ONE_ROW:
        rng = np.random.default_rng(0)
        X = rng.random((500, n)).astype(dtype)
        y = np.arange(len(X)) % classes
        for pipeline in (False, True):
            seconds = row_seconds(X, y, pipeline)
            ratio = median(m / q for q, m in zip(*seconds.values(), strict=True))
            times = ", ".join(f"{who} {1e6 * median(s):.0f}" for who, s in seconds.items())
            where = "after a StandardScaler" if pipeline else "alone"
            print(f"  {n}-{HIDDEN}-{classes}, {dtype}, {where}: {times}: {ratio:.2f}")


def row_seconds(X: np.ndarray, y: np.ndarray, pipeline: bool) -> dict[str, list[float]]:
    """Return the CPU seconds of a call in every round, for quadric and for MLPClassifier."""
    options: dict[str, Any] = {"activation": "logistic", "max_iter": 5, "random_state": 0}
    models = {
        "quadric": QuadraticClassifier((HIDDEN,), alpha=1.0, **options),
        "MLPClassifier": MLPClassifier((HIDDEN,), solver="lbfgs", **options),
    }
    if pipeline:
        models = {name: make_pipeline(StandardScaler(), model) for name, model in models.items()}
    calls = {name: partial(model.fit(X, y).predict_proba, X[:1]) for name, model in models.items()}
    return seconds_by_round(calls, rounds=41, at_least=0.01, clock=time.process_time)


if __name__ == "__main__":
    main()
