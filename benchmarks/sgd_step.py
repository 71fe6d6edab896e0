"""Time of one step of per-sample SGD on data shaped like MNIST, compared with efficient NumPy.

The networks have 784 inputs (19 % non-zero), 30 hidden neurons and 10 outputs. Steps are timed in
float32 with one thread.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks import numpy_baseline
from benchmarks.timing import best_seconds
from quadric import Network
from quadric.apps.paper._cost import seconds_per_step
from quadric.core import Stack
from quadric.training import Options, Samples, TrainingState
from quadric.training._steppers import PerSample

SAMPLES, NUMPY_SAMPLES, RATE = 10_000, 400, 0.01
KINDS = ("linear", "quadratic", "reduced")
TARGETS = {"linear": 25, "quadratic": 20, "reduced": 25}


def make_data(dtype=np.float32):
    rng = np.random.default_rng(0)
    X = sparse.random_array((SAMPLES, 784), density=0.19, format="csr", rng=rng).astype(dtype)
    Y = np.eye(10, dtype=dtype)[rng.integers(0, 10, SAMPLES)]
    return X, Y


def make_network(kind, dtype="float32"):
    return Network.create(
        784,
        [("linear", 30, "logistic"), (kind, 10, "logistic")],
        init="normal",
        scale=0.05,
        rng=1,
        dtype=dtype,
    )


def stepper(kind, X, Y, offset=None):
    net = make_network(kind, X.dtype.name)
    shift = None if offset is None else np.full(784, offset, X.dtype)
    stack = Stack(net.layers, net.activations, "binary_cross_entropy")
    return PerSample(stack, Samples(X, Y, offset=shift), Options(), TrainingState())


def check_equal(X, Y):
    """Check that both implementations compute the same parameters."""
    rows = slice(0, NUMPY_SAMPLES)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        for kind in KINDS:
            ours, baseline = make_network(kind, dtype), make_network(kind, dtype)
            ours.fit(X[rows], Y[rows], learning_rate=RATE, epochs=1, shuffle=False)
            numpy_baseline.train(baseline, X[rows].toarray().astype(dtype), Y[rows], RATE)
            for one, other in zip(ours.layers, baseline.layers, strict=True):
                for name, array in one.arrays().items():
                    np.testing.assert_allclose(array, other.arrays()[name], atol=tolerance)


def main() -> None:
    X, Y = make_data()
    check_equal(X, Y)
    dense_part = X[:NUMPY_SAMPLES].toarray()
    order = np.arange(SAMPLES)
    dense = X.toarray()

    contenders = {}
    networks = {kind: make_network(kind) for kind in KINDS}
    for kind in KINDS:
        for label, offset in ((kind, None), (f"{kind}, offset -0.5", -0.5)):
            run = stepper(kind, X, Y, offset)
            contenders[label] = lambda run=run: run.run_epoch(order, RATE)
        # a complete call to `fit`, including checks and compression of the dense rows
        contenders[f"{kind}, fit dense"] = lambda net=networks[kind]: net.fit(dense, Y, epochs=1)
    best = best_seconds(contenders, rounds=25)
    baselines = {
        f"{kind}, NumPy": lambda kind=kind: numpy_baseline.train(
            networks[kind], dense_part, Y[:NUMPY_SAMPLES], RATE
        )
        for kind in KINDS
    }
    numpy_best = best_seconds(baselines, rounds=7)

    micro = {name: seconds / SAMPLES * 1e6 for name, seconds in best.items()}
    micro |= {name: seconds / NUMPY_SAMPLES * 1e6 for name, seconds in numpy_best.items()}
    print("per-sample SGD, 784-30-10, 19 % non-zero, float32, one thread: µs per step")
    for kind in KINDS:
        numpy, ours = micro[f"{kind}, NumPy"], micro[kind]
        offset, whole = micro[f"{kind}, offset -0.5"], micro[f"{kind}, fit dense"]
        estimate = 1e6 * seconds_per_step((784, 30, 10), ("linear", kind), nonzero=0.19)
        print(
            f"  {kind:<10} NumPy {numpy:6.1f}   quadric {ours:5.2f}   {numpy / ours:5.1f}x "
            f"(target {TARGETS[kind]}x)   with offset {offset:5.2f} = {offset / ours:4.2f}x "
            f"(at most 1.15)   whole fit(dense, epochs=1) {whole:5.2f}   "
            f"`quadric complexity` {estimate:5.2f} = {estimate / ours:4.2f}x (0.67 to 1.5)"
        )
    print(
        f"  QNN / ANN {micro['quadratic'] / micro['linear']:.2f} (at most 2.3; paper 3.67)   "
        f"RPQNN / ANN {micro['reduced'] / micro['linear']:.2f} (at most 1.15; paper 1.05)"
    )


if __name__ == "__main__":
    main()
