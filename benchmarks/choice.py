"""What the choice of a shape costs: python -m benchmarks.choice

Compares `QuadraticClassifier()` with each of its shapes, and with logistic regression and the most
frequent class, on the data sets on which the defaults were chosen. "Regret" is the accuracy of the
best shape minus that of the default, in percentage points. A set is significantly worse if a
t-test over repeated folds, corrected for their overlap (Nadeau and Bengio, 2003), rejects after
Holm's correction at 5 %. Prints a Markdown table.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import keel
from benchmarks.collection import CLASSIFICATION
from benchmarks.defaults import parts
from quadric import QuadraticClassifier
from quadric.apps.paper._statistics import ALPHA, adjust

SHAPES = {
    "linear": {"hidden_layer_sizes": (), "layer_kinds": "linear"},
    "quadratic": {"hidden_layer_sizes": (), "layer_kinds": "quadratic"},
    "32, quadratic": {"hidden_layer_sizes": (32,)},
    "32, linear": {"hidden_layer_sizes": (32,), "layer_kinds": "linear"},
}
FEW_ROWS = 500  # with fewer, the mean of two repetitions is off by two points by chance
MODELS = {
    "default": QuadraticClassifier(random_state=0),
    **{name: QuadraticClassifier(random_state=0, **shape) for name, shape in SHAPES.items()},
    "logistic": LogisticRegression(max_iter=1000),
    "most frequent": DummyClassifier(),
}


def worse_by_chance(differences: np.ndarray, test_share: float) -> float:
    """Return the one-sided p-value of the corrected resampled t-test that the mean is negative."""
    variance = differences.var(ddof=1)
    if variance == 0:
        return float(differences.mean() >= 0)
    factor = 1 / len(differences) + test_share / (1 - test_share)
    return float(stats.t.cdf(differences.mean() / np.sqrt(variance * factor), len(differences) - 1))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Return which hypotheses Holm's procedure rejects at 5 %."""
    adjusted = adjust(dict(enumerate(p_values)))
    return np.array([adjusted[k] <= ALPHA for k in range(len(p_values))])


def main() -> None:
    warnings.simplefilter("ignore")
    sets = parts(CLASSIFICATION, "choose") | keel.sets()
    rows, p_values = {}, []
    for name, load in sets.items():
        X, y = load()
        repeats = 10 if len(y) < FEW_ROWS else 2
        cv = RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=0)
        scores = {model: [] for model in MODELS}
        for train, test in cv.split(X, y):
            for model, estimator in MODELS.items():
                pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X[train], y[train])
                scores[model].append(pipeline.score(X[test], y[test]))
        folds = {model: 100 * np.array(values) for model, values in scores.items()}
        baseline = max(("logistic", "most frequent"), key=lambda model: folds[model].mean())
        p_values.append(worse_by_chance(folds["default"] - folds[baseline], 0.2))
        rows[name] = {model: values.mean() for model, values in folds.items()}
        print(name, file=sys.stderr, flush=True)
    significant = holm(np.array(p_values))
    print("| data set | " + " | ".join(MODELS) + " | regret | against the better baseline |")
    print("|---" * (len(MODELS) + 3) + "|")
    regrets = []
    for (name, row), worse in zip(rows.items(), significant, strict=True):
        regrets.append(max(row[shape] for shape in SHAPES) - row["default"])
        gap = row["default"] - max(row["logistic"], row["most frequent"])
        cells = " | ".join(f"{value:.1f}" for value in row.values())
        note = " (significantly worse)" if worse else ""
        print(f"| {name} | {cells} | {regrets[-1]:+.1f} | {gap:+.1f}{note} |")
    print(f"\nMean regret: {np.mean(regrets):.2f} percentage points.")


if __name__ == "__main__":
    main()
