"""Measure the memory of calls in a separate process.

    python -m tests.support.memory_process < cases.json

This command prints one line of JSON for each case: the limits that were set, from one byte to the
memory that the error requested, and the growth of the process under each limit.
"""

import ctypes
import gc
import json
import sys
import warnings

import numpy as np
from scipy import sparse

import quadric
from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)

MODELS = {
    "classifier": QuadraticClassifier,
    "regressor": QuadraticRegressor,
    "logistic": QuadraticLogisticRegression,
}


def resident(name):
    with open("/proc/self/status") as lines:
        return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


def growth(work):
    """Return the peak growth of the process during the work, in bytes, and the error if any."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the peak
    before, error = resident("VmRSS:"), None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()
    except MemoryError as caught:
        error = caught
    return resident("VmHWM:") - before, error


def inputs(case):
    N, n, rng = case["N"], case["n"], np.random.default_rng(0)
    dtype = case.get("dtype", "float64")
    if "density" in case:
        return sparse.random(N, n, density=case["density"], random_state=rng, format="csr").astype(
            dtype
        )
    if np.dtype(dtype).kind != "f":
        return rng.integers(0, 200, (N, n)).astype(dtype)
    X = np.empty((N, n), dtype=dtype)
    for rows in range(0, N, 1000):  # random numbers are drawn in float64
        X[rows : rows + 1000] = rng.standard_normal((len(X[rows : rows + 1000]), n))
    X[:, : n // 2] *= rng.random((1, n // 2)) < case.get("dense", 1.0)
    return np.asfortranarray(X) if case.get("order") == "F" else X


def targets(case):
    N, m, rng = case["N"], case["m"], np.random.default_rng(1)
    if case["model"] == "regressor":
        return rng.standard_normal((N, m)) if m > 1 else rng.standard_normal(N)
    if case.get("multilabel"):
        return (rng.random((N, m)) < 0.2).astype(np.int64)
    labels = rng.permutation(np.arange(N) % max(2, m))
    return np.array([f"class {k:05d}" for k in labels]) if case.get("text") else labels


def make(case):
    """Return a function that does the work of a case."""
    X, options = inputs(case), dict(case.get("options", {}))
    call = case.get("call", "fit")
    if case["model"] == "network":
        layers = [tuple(layer) for layer in case["layers"]]
        net = Network.create(case["n"], layers, rng=0, dtype=case.get("network", "float64"))
        if call == "forward":
            return lambda: net.forward(X)
        Y = np.eye(case["m"])[targets(case)].astype(net.dtype)
        if call == "gradients":
            return lambda: net.gradients(X, Y)
        return lambda: net.fit(X, Y, **options)
    maker, y = MODELS[case["model"]], targets(case)
    if case["model"] != "logistic":
        options.setdefault("random_state", 0)
    if call == "fit":
        return lambda: maker(**options).fit(X, y)
    if call == "partial_fit":
        known = {"classes": np.unique(y)} if case["model"] == "classifier" else {}
        return lambda: maker(**options).partial_fit(X, y, **known)
    few = slice(0, 2 * case["m"] + 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = maker(**options).fit(X[few].astype(float), y[few])
    return lambda: getattr(model, call)(X)


def measure(case):
    """Return the limits, each just sufficient for the next step, and the growth under each."""
    quadric.set_config(max_memory=None)
    work, limit, steps = make(case), case.get("limit", 1), []
    while limit is not None:
        quadric.set_config(max_memory=limit)
        grown, error = growth(work)
        steps.append((limit, grown))
        # a case with its own limit is tried once and does not have to succeed
        limit = None if error is None or "limit" in case else error.needed
    return {"case": case, "steps": steps}


def warm_up():
    """Import and compile everything that is needed once."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    for dtype in ("float32", "float64"):
        for options in (
            {},
            {"solver": "adam"},
            {"solver": "sgd", "batch_size": 1, "momentum": 0},
            {"solver": "adam", "early_stopping": True},
        ):
            for kinds in ("quadratic", "linear"):
                model = QuadraticClassifier(
                    (), layer_kinds=kinds, max_iter=2, dtype=dtype, **options
                )
                model.fit(X.astype(dtype), y).predict_proba(X)
        model.fit(sparse.csr_array(X.astype(dtype)), y).predict(sparse.csr_array(X))
    QuadraticRegressor(max_iter=5).fit(X, y).score(X, y)
    QuadraticLogisticRegression(max_iter=5).fit(X, y + (X[:, 1] > 0))
    a = np.ones((500, 500))
    a @ a  # BLAS allocates buffers at the first large product


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm_up()
    for case in json.load(sys.stdin):
        print(json.dumps(measure(case)), flush=True)
