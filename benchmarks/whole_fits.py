"""Time complete fits at the default settings in two checkouts: `python -m benchmarks.whole_fits`.

`QuadraticClassifier(random_state=0)` and `QuadraticLogisticRegression()` are fitted to digits
(divided by 16, and standardized) and to generated data with 5000 samples, 64 features and 10
classes. With `--against PATH`, the fits alternate with those in another checkout. Seconds are
medians, "there / here" is the median ratio over the rounds, and accuracy is measured on held-out
data.
"""

from __future__ import annotations

import time
import warnings
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.two_checkouts import in_turns, median_ratio, parse_arguments, start

ROUNDS = 5


def digits() -> list[np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, random_state=0)


def made() -> list[np.ndarray]:
    """Return 5000 training samples and 2500 test samples, with two clusters per class."""
    X, y = make_classification(
        7500,
        64,
        n_informative=20,
        n_redundant=10,
        n_classes=10,
        n_clusters_per_class=2,
        class_sep=1.5,
        random_state=0,
    )
    return train_test_split(X, y, train_size=5000, random_state=0)


def standardized(data: list[np.ndarray]) -> list[np.ndarray]:
    X, X_test, y, y_test = data
    scaler = StandardScaler().fit(X)
    return [scaler.transform(X), scaler.transform(X_test), y, y_test]


DATA = {
    "digits / 16": digits,
    "digits, standardized": lambda: standardized(digits()),
    "5000 x 64, standardized": lambda: standardized(made()),
}
ESTIMATORS = {
    "QuadraticClassifier": {"random_state": 0},
    "QuadraticLogisticRegression": {},
}


class Worker:
    """The process of one checkout. It holds the data and estimator of one case at a time."""

    def prepare(self, data: str, estimator: str) -> dict[str, Any]:
        """Fit once, to import and compile; return the accuracy and the number of iterations."""
        import quadric  # the parent process does not need it

        self.X, X_test, self.y, y_test = DATA[data]()
        self.model = getattr(quadric, estimator)(**ESTIMATORS[estimator])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.model.fit(self.X, self.y)
        return {
            "accuracy": self.model.score(X_test, y_test),
            "iterations": int(np.max(self.model.n_iter_)),
            "warnings": [str(warning.message) for warning in caught],
        }

    def time_fit(self) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # reported by `prepare`
            begin = time.perf_counter()
            self.model.fit(self.X, self.y)
            return time.perf_counter() - begin


def main() -> None:
    options = parse_arguments(__doc__.splitlines()[0], threads=None)
    checkouts = start("benchmarks.whole_fits", options)
    places = ("here", "there")[: len(checkouts)]
    columns = ["data", "estimator", *(f"seconds {place}" for place in places)]
    columns += ["there / here"] * (len(places) == 2)
    columns += [f"{what} {place}" for what in ("accuracy", "n_iter_") for place in places]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    notes = []
    for data in DATA:
        for estimator in ESTIMATORS:
            prepared = [checkout.ask("prepare", data, estimator) for checkout in checkouts]
            times = in_turns(checkouts, ("time_fit",), options.rounds or ROUNDS)
            seconds = [median(found["time_fit"]) for found in times]
            cells = [data, estimator, *(f"{value:.3f}" for value in seconds)]
            if len(places) == 2:
                cells.append(f"{median_ratio(times[1]['time_fit'], times[0]['time_fit']):.2f}")
            cells += [f"{found['accuracy']:.4f}" for found in prepared]
            cells += [str(found["iterations"]) for found in prepared]
            print("| " + " | ".join(cells) + " |", flush=True)
            for place, found in zip(places, prepared, strict=True):
                notes += [f"- {data}, {estimator}, {place}: {text}" for text in found["warnings"]]
    if notes:
        print("\nWarnings:\n\n" + "\n".join(notes))
    for checkout in checkouts:
        checkout.close()


if __name__ == "__main__":
    main()
