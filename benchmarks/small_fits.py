"""CPU time of fits on fewer than 300 rows in two checkouts: `python -m benchmarks.small_fits`.

The shape and the penalty are given. With `--against PATH`, the fits alternate with those in another
checkout, and "there / here" is the ratio of the shortest times: greater than 1 if this checkout is
faster. The last line is the geometric mean of these ratios.
"""

from __future__ import annotations

import time
import warnings
from math import exp, log
from statistics import mean, median

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.preprocessing import StandardScaler

from benchmarks.two_checkouts import parse_arguments, start

ROUNDS = 3
REPETITIONS = 25
GIVEN = {"alpha": 1.0, "solver": "lbfgs", "max_iter": 100, "random_state": 0}
TABLES = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "moons, 100 rows": make_moons(100, noise=0.1, random_state=0),
    "moons, 250 rows": make_moons(250, noise=0.2, random_state=0),
}
MODELS = ("quadratic logistic regression", "32 hidden, quadratic output", "8 hidden, linear output")


class Worker:
    """The process of one checkout."""

    def fit(self, table: str, name: str) -> tuple[float, int]:
        """Return the median CPU time of a fit in milliseconds, and its number of iterations."""
        from quadric import QuadraticClassifier, QuadraticLogisticRegression

        warnings.simplefilter("ignore")
        models = (
            QuadraticLogisticRegression(),
            QuadraticClassifier((32,), **GIVEN),
            QuadraticClassifier((8,), layer_kinds="linear", **GIVEN),
        )
        model = models[MODELS.index(name)]
        X, y = TABLES[table]
        X = StandardScaler().fit_transform(X)
        model.fit(X, y)  # compile, and fill the caches
        times = []
        for _ in range(REPETITIONS):
            begin = time.process_time()
            fitted = clone(model).fit(X, y)
            times.append(time.process_time() - begin)
        return 1e3 * median(times), int(np.max(fitted.n_iter_))


def main() -> None:
    options = parse_arguments(__doc__.partition(":")[0], threads=1)
    checkouts = start("benchmarks.small_fits", options)
    titles = ["here", *(["there", "there / here"] if options.against else [])]
    print(f"| table | model | iterations | ms, {' | '.join(titles)} |")
    print("|---" * (3 + len(titles)) + "|")
    ratios = []
    for table in TABLES:
        for model in MODELS:
            runs = [
                [checkout.ask("fit", table, model) for checkout in checkouts]
                for _ in range(options.rounds or ROUNDS)
            ]
            iterations = " and ".join(str(count) for _, count in runs[0])
            shortest = [min(ms for ms, _ in of_one) for of_one in zip(*runs, strict=True)]
            shown = [f"{ms:.2f}" for ms in shortest]
            if options.against:
                ratios.append(shortest[1] / shortest[0])
                shown.append(f"{ratios[-1]:.2f}")
            print(f"| {table} | {model} | {iterations} | {' | '.join(shown)} |", flush=True)
    if ratios:
        print(f"\nthere / here: {exp(mean(map(log, ratios))):.2f} (geometric mean)")
    for checkout in checkouts:
        checkout.close()


if __name__ == "__main__":
    main()
