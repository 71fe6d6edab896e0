"""Cases for memory measurements: few or many classes, wide or long data, all solvers and dtypes."""

import random
from functools import partial

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
