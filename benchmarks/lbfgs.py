"""Compare our L-BFGS with SciPy's L-BFGS-B on the same objectives: python -m benchmarks.lbfgs

The objectives are those of the estimators: single layers (convex) and networks with hidden neurons,
on the data sets on which the defaults were chosen, with several penalties. Both start at the same
point, use ten correction pairs, and stop at the same gradient or after the same number of
iterations. Prints, for convex and other objectives, the geometric mean of the ratio of evaluations,
the largest difference of the losses, and the ratio of CPU times.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
from scipy import optimize
from sklearn.preprocessing import StandardScaler

from benchmarks import keel
from benchmarks.collection import CLASSIFICATION
from benchmarks.defaults import parts
from quadric.core import Stack, draw_layers
from quadric.training import Options, Samples, TrainingState, train
from quadric.training._lbfgs import Objective, _to_vector
from quadric.utils import one_blas_thread

SHAPES = {
    "linear": [],
    "quadratic": [],
    "32, linear": [("linear", 32)],
    "32, quadratic": [("linear", 32)],
}
ALPHAS = (0.1, 1.0, 10.0)
MOST_ROWS = 1000
TOLERANCE = 1e-7  # of the gradient of a convex objective
ITERATIONS = 100  # of other objectives, whose local optima may differ


def problem(load) -> Samples:
    X, y = load()
    classes, codes = np.unique(y[:MOST_ROWS], return_inverse=True)
    return Samples(StandardScaler().fit_transform(X[:MOST_ROWS]), np.eye(len(classes))[codes])


def new_stack(samples: Samples, shape: str) -> Stack:
    hidden = SHAPES[shape]
    layers = [*hidden, (shape.split(", ")[-1], samples.Y.shape[1])]
    drawn = draw_layers(
        samples.X.shape[1],
        layers,
        init="relinear",
        rng=np.random.default_rng(0),
        dtype=np.dtype(float),
    )
    return Stack(drawn, ["tanh"] * len(hidden) + ["softmax"], "cross_entropy")


def ours(samples: Samples, shape: str, options: Options) -> tuple[int, float, float]:
    """Return the number of evaluations, the loss and the CPU time."""
    stack, state, start = new_stack(samples, shape), TrainingState(), time.process_time()
    train(stack, samples, options, state)
    return state.call.evaluations, state.history.loss[-1], time.process_time() - start


def scipys(samples: Samples, shape: str, options: Options) -> tuple[int, float, float]:
    """The same for SciPy."""
    stack, start = new_stack(samples, shape), time.process_time()
    with one_blas_thread():
        objective = Objective(stack, samples, options)
        result = optimize.minimize(
            objective,
            _to_vector(stack.layers) * objective.scales,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": options.epochs,
                "maxfun": options.max_evaluations,
                "maxcor": options.pairs,
                "gtol": options.tol,
                "ftol": 0.0,
            },
        )
    return result.nfev, result.fun, time.process_time() - start


def main() -> None:
    sets = parts(CLASSIFICATION, "choose") | keel.sets()
    rows = {True: [], False: []}
    for name, load in sets.items():
        samples = problem(load)
        for shape, alpha in product(SHAPES, ALPHAS):
            convex = not SHAPES[shape]
            options = Options(
                solver="lbfgs",
                l2=alpha,
                by_weight=True,
                penalty="monomials",
                tol=TOLERANCE if convex else 1e-4,
                epochs=5000 if convex else ITERATIONS,
            )
            ours(samples, shape, options)  # compile, and fill the caches
            rows[convex].append((ours(samples, shape, options), scipys(samples, shape, options)))
        print(name, len(samples), flush=True)
    print("| objectives | fits | evaluations, ratio | largest excess of the loss | time, ratio |")
    print("|---|---|---|---|---|")
    for convex, title in ((True, "convex"), (False, "hidden neurons")):
        numbers = np.array(rows[convex])  # fits x (ours, SciPy's) x (evaluations, loss, time)
        evaluations, seconds = (numbers[:, 0, k] / numbers[:, 1, k] for k in (0, 2))
        excess = numbers[:, 0, 1] - numbers[:, 1, 1]
        print(
            f"| {title} | {len(numbers)} | {np.exp(np.log(evaluations).mean()):.3f} | "
            f"{excess.max():.1e} | {np.exp(np.log(seconds).mean()):.2f} |"
        )
    both = np.array(rows[True] + rows[False])
    ratios = both[:, 0, 0] / both[:, 1, 0]
    print(f"| all | {len(both)} | {np.exp(np.log(ratios).mean()):.3f} | | |")


if __name__ == "__main__":
    main()
