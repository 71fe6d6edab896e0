"""Time of fits on few rows with a given shape and penalty: python -m benchmarks.small_fits

PYTHONPATH selects the code, so that two checkouts can be compared: run them alternately. Prints the
median CPU time of each fit and its number of iterations.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.preprocessing import StandardScaler

from quadric import QuadraticClassifier, QuadraticLogisticRegression

REPETITIONS = 25
GIVEN = {"alpha": 1.0, "solver": "lbfgs", "max_iter": 100, "random_state": 0}
TABLES = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "moons, 100 rows": make_moons(100, noise=0.1, random_state=0),
    "moons, 250 rows": make_moons(250, noise=0.2, random_state=0),
}
MODELS = {
    "quadratic logistic regression": QuadraticLogisticRegression(),
    "32 hidden, quadratic output": QuadraticClassifier((32,), **GIVEN),
    "8 hidden, linear output": QuadraticClassifier((8,), layer_kinds="linear", **GIVEN),
}


def main() -> None:
    warnings.simplefilter("ignore")
    print("| table | model | ms | iterations |\n|---|---|---|---|")
    for table, (X, y) in TABLES.items():
        X = StandardScaler().fit_transform(X)
        for name, model in MODELS.items():
            model.fit(X, y)  # compile, and fill the caches
            times = []
            for _ in range(REPETITIONS):
                start = time.process_time()
                fitted = clone(model).fit(X, y)
                times.append(time.process_time() - start)
            iterations = int(np.max(fitted.n_iter_))
            print(f"| {table} | {name} | {1e3 * np.median(times):.2f} | {iterations} |")


if __name__ == "__main__":
    main()
