"""Measure the memory of calls; cases with few or many classes, wide or long data, and all solvers.

    python -m tests.support.memory < cases.json

This command prints one line of JSON for each case: the limits that were set, from one byte to the
memory that the error requested, and the growth of the process under each limit.
"""

import ctypes
import gc
import json
import random
import sys
import tracemalloc
import warnings
from functools import partial

import numpy as np
from scipy import sparse

import quadric
from quadric import (
    ModelFileError,
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)

# ---- a separate process ------------------------------------------------------------------


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
        with warnings.catch_warnings(action="ignore"):
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
    X, options = inputs(case), case["options"]
    call = case.get("call", "fit")
    if case["model"] == "network":
        layers = [tuple(layer) for layer in case["layers"]]
        net = Network.create(case["n"], layers, rng=0, dtype=case.get("network", "float64"))
        if call == "forward":
            return lambda: net.forward(X)
        Y = np.eye(case["m"])[targets(case)].astype(net.dtype)
        return lambda: getattr(net, call)(X, Y, **options)
    maker, y = partial(MODELS[case["model"]], random_state=0, **options), targets(case)
    if call == "fit":
        return lambda: maker().fit(X, y)
    if call == "partial_fit":
        known = {"classes": np.unique(y)} if case["model"] == "classifier" else {}
        return lambda: maker().partial_fit(X, y, **known)
    few = slice(0, 2 * case["m"] + 40)
    with warnings.catch_warnings(action="ignore"):
        model = maker().fit(X[few].astype(float), y[few])
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


# ---- the cases ---------------------------------------------------------------------------


LINEAR = {"hidden_layer_sizes": [], "layer_kinds": "linear"}
QUADRATIC = {"hidden_layer_sizes": [], "layer_kinds": "quadratic"}
HIDDEN = {"hidden_layer_sizes": [20]}
LBFGS = {"solver": "lbfgs", "alpha": 1.0, "max_iter": 14}  # more iterations than stored pairs
ADAM = {"solver": "adam", "max_iter": 2}
SGD = {"solver": "sgd", "max_iter": 2}
PAPER = {"solver": "sgd", "batch_size": 1, "momentum": 0, "max_iter": 2}
CHOSEN = {"max_iter": 14}
STOPPED = ADAM | {"early_stopping": True}


def of(model, N, n, m, *options, **case):
    """Return a case with N samples, n inputs and m outputs; the options are joined."""
    joined = {key: value for one in options for key, value in one.items()}
    return {"model": model, "N": N, "n": n, "m": m, "options": joined, **case}


classifier, regressor, logistic = (partial(of, m) for m in ("classifier", "regressor", "logistic"))


def network(N, n, layers, *options, **case):
    return of("network", N, n, layers[-1][1], *options, layers=layers, **case)


MANY = [["linear", 2000, "softmax"]]
ONE = [["quadratic", 2, "softmax"]]
WIDE = [["linear", 2, "softmax"]]
TWO = [["linear", 20, "tanh"], ["quadratic", 2, "softmax"]]

FEW_CASES = [
    classifier(3000, 10, 1000, LINEAR, PAPER, dtype="float32"),
    classifier(10_000, 300, 3, HIDDEN, CHOSEN, dtype="float32"),
    classifier(10_000, 300, 3, HIDDEN, ADAM, dtype="uint8"),
    classifier(200, 500, 2, QUADRATIC, ADAM),
    classifier(3000, 10, 1000, LINEAR, call="partial_fit"),
    classifier(10_000, 10, 1000, LINEAR, ADAM, call="predict_proba"),
    logistic(300, 200, 2, {"max_iter": 24}),
    regressor(5000, 10, 300, LINEAR, CHOSEN),
    network(3000, 10, MANY, {"epochs": 14, "solver": "lbfgs"}),
    network(2000, 5000, WIDE, {"epochs": 2, "solver": "lbfgs", "offset": 0.5}, density=0.01),
    network(2000, 5000, WIDE, {"epochs": 1, "solver": "adam", "batch_size": 2000, "offset": 0.5}),
]

MORE_CASES = [
    classifier(6890, 926, 5, {"hidden_layer_sizes": [], "layer_kinds": ["reduced"]}, ADAM),
    classifier(10_000, 1000, 3, HIDDEN, LBFGS, density=0.05),
    classifier(3000, 10, 1000, LINEAR, LBFGS),
    classifier(10_000, 1500, 3, HIDDEN, CHOSEN, density=0.05),
    classifier(6000, 10, 1000, LINEAR, call="partial_fit"),
    classifier(20_000, 10, 1000, LINEAR, ADAM, call="predict_proba"),
    *(classifier(6000, 10, 2000, LINEAR, solver) for solver in (LBFGS, ADAM, SGD, PAPER, STOPPED)),
    classifier(6000, 10, 2000, LINEAR, ADAM, dtype="float32"),
    classifier(6000, 10, 2000, LINEAR, LBFGS, dtype="float32"),
    classifier(6000, 10, 1000, QUADRATIC, CHOSEN),
    classifier(6000, 10, 1000, {"hidden_layer_sizes": [8]}, CHOSEN, text=True),
    classifier(2000, 4, 5000, LINEAR, ADAM),
    classifier(20_000, 5, 500, LINEAR, ADAM, multilabel=True),
    classifier(20_000, 5, 300, LINEAR, STOPPED, multilabel=True),
    classifier(10_000, 500, 3, HIDDEN, CHOSEN),
    classifier(10_000, 500, 3, HIDDEN, ADAM, {"dtype": "float32"}),
    classifier(10_000, 500, 3, HIDDEN, ADAM, order="F"),
    classifier(10_000, 500, 3, HIDDEN, STOPPED),
    classifier(30_000, 500, 3, HIDDEN, PAPER, dense=0.0),
    classifier(20_000, 2000, 3, HIDDEN, ADAM, density=0.05),
    classifier(20_000, 2000, 3, HIDDEN, PAPER, density=0.05),
    *(
        classifier(200, n, m, QUADRATIC, solver)
        for solver in (LBFGS, ADAM, SGD, PAPER)
        for n, m in ((700, 2), (300, 10), (100, 60))
    ),
    classifier(200, 1200, 2, QUADRATIC, ADAM, dtype="float32"),
    classifier(200, 1000, 2, QUADRATIC, ADAM, {"init": "normal"}),
    classifier(200, 1000, 2, QUADRATIC, ADAM, {"init": "glorot"}, dtype="float32"),
    classifier(200, 3000, 2, {"hidden_layer_sizes": [400], "layer_kinds": "linear"}, LBFGS),
    classifier(200, 3000, 2, {"hidden_layer_sizes": [400], "layer_kinds": "reduced"}, ADAM),
    classifier(30_000, 300, 4, {"hidden_layer_sizes": [2000], "layer_kinds": "linear"}, ADAM),
    classifier(4000, 3000, 4, {"hidden_layer_sizes": [30], "layer_kinds": "reduced"}, LBFGS),
    logistic(300, 150, 8, {"max_iter": 24}),
    logistic(6000, 5, 1000, {"max_iter": 24}),
    logistic(20_000, 100, 3, {"max_iter": 24}),
    logistic(20_000, 1000, 3, {"max_iter": 3}, density=0.02, limit=600 * 2**20),
    logistic(200, 700, 2, {"solver": "sgd", "max_iter": 2}),
    regressor(15_000, 10, 300, LINEAR, ADAM),
    regressor(15_000, 10, 300, LINEAR, CHOSEN, dtype="float32"),
    regressor(10_000, 300, 1, {"hidden_layer_sizes": [16]}, CHOSEN),
    regressor(10_000, 10, 200, QUADRATIC, call="partial_fit"),
    *(
        classifier(20_000, 10, 1000, LINEAR, ADAM, call=call)
        for call in ("predict", "decision_function", "predict_log_proba")
    ),
    classifier(60_000, 500, 3, LINEAR, ADAM, dtype="uint8", call="predict"),
    classifier(30_000, 1000, 3, LINEAR, ADAM, density=0.05, dtype="float32", call="predict_proba"),
    regressor(40_000, 10, 300, LINEAR, ADAM, call="predict"),
    network(6000, 10, MANY, {"epochs": 1, "batch_size": 100}),
    network(6000, 10, MANY, {"epochs": 1}),
    network(200, 700, ONE, {"epochs": 14, "solver": "lbfgs"}),
    network(200, 700, ONE, {"epochs": 2, "solver": "adam", "batch_size": 50}),
    network(200, 700, ONE, call="gradients"),
    network(20_000, 500, TWO, {"epochs": 1, "solver": "adam", "batch_size": 50}, dtype="float32"),
    network(20_000, 500, TWO, {"epochs": 14, "solver": "lbfgs", "offset": 0.5}),
    network(2000, 5000, WIDE, {"epochs": 1, "batch_size": 2000, "offset": 0.5}, density=0.05),
    *(network(2000, 5000, WIDE, {"epochs": 1, "offset": 0.5}, dense=share) for share in (1.0, 0.0)),
    network(30_000, 500, TWO, {"epochs": 1}, dense=0.0),
    network(20_000, 10, [["linear", 1000, "softmax"]], call="forward"),
    network(4000, 10, [["linear", 1000, "softmax"]], call="gradients"),
    network(20_000, 2000, TWO, call="forward", density=0.05),
]


def random_cases(count, seed=0):
    """Return fits of random shapes that need up to a few hundred megabytes."""
    rng, cases = random.Random(seed), []
    while len(cases) < count:
        kind = rng.choice(("linear", "quadratic", "reduced"))
        n, m = round(10 ** rng.uniform(0.3, 3)), round(10 ** rng.uniform(0.3, 3))
        hidden = [] if rng.random() < 0.6 else [round(10 ** rng.uniform(0.3, 2.5))]
        N = round(10 ** rng.uniform(2, 4.5))
        last = hidden[-1] if hidden else n
        size = {"linear": last, "quadratic": last * last / 2, "reduced": 2 * last}[kind] * m
        size += n * sum(hidden)
        solver = rng.choice((LBFGS, CHOSEN, ADAM, SGD, PAPER, STOPPED))
        if not 2e6 < N * (n + m) + 30 * size < 3e7 or (solver is PAPER and N * size > 2e9):
            continue
        shape = {"hidden_layer_sizes": hidden, "layer_kinds": ["linear"] * len(hidden) + [kind]}
        make = rng.choice((classifier, classifier, regressor))
        if 20 * m > N and (solver is STOPPED or make is classifier):
            continue  # every class needs several samples
        dtype = rng.choice(("float32", "float64", "float64"))
        cases.append(make(N, n, m, shape, solver, dtype=dtype))
        if rng.random() < 0.25:
            cases[-1]["density"] = rng.choice((0.01, 0.1, 0.3))
    return cases


# ---- one call ----------------------------------------------------------------------------


def peak(action):
    """Return the peak of memory, in bytes, and the result or the ModelFileError."""
    tracemalloc.start()
    try:
        found = action()
    except ModelFileError as error:
        found = error
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size, found


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        warm_up()
    for case in json.load(sys.stdin):
        print(json.dumps(measure(case)), flush=True)
