"""What a transform of columns with long tails changes: python -m benchmarks.tails

Compares transforms in front of the default estimators, on the data sets on which the defaults were
chosen if they have columns with long tails, and on generated ones. Numbers are differences from a
StandardScaler for all columns, with standard errors corrected for the overlap of the folds (Nadeau
and Bengio, 2003): of the accuracy or R² in percentage points, and of the log-loss or the squared
error in percent. "auto" is the power transform if `with_scaling` chooses it, and "share" how often.
Prints a Markdown table.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from benchmarks import keel
from benchmarks.collection import CLASSIFICATION, REGRESSION
from benchmarks.defaults import parts
from quadric import QuadraticClassifier, QuadraticRegressor, with_scaling
from quadric.estimators import long_tails, power_steps

KINDS = ("log-normal", "log-normal, linear", "counts", "counts above 0", "Student", "outliers")


class SmoothClip(TransformerMixin, BaseEstimator):
    """z / sqrt(1 + (z / 3)^2), which is between -3 and 3."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X / np.sqrt(1 + (X / 3) ** 2)

    def __sklearn_is_fitted__(self):
        return True


TRANSFORMS = {
    "Yeo-Johnson": [PowerTransformer()],
    "power": power_steps(),
    "quantiles": [QuantileTransformer(output_distribution="normal", n_quantiles=200)],
    "smooth clipping": [RobustScaler(), SmoothClip(), StandardScaler()],
}


def generated(kind, seed, classify):
    """600 rows and six columns in random units, in which a function of the columns decides."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(600, 6))
    counts = rng.poisson(np.exp(1 + 1.2 * Z)) * (rng.random(Z.shape) < 0.4)
    match kind:
        case "log-normal":
            X, f = np.exp(1.2 * Z), Z[:, 0] * Z[:, 1] + Z[:, 2]
        case "log-normal, linear":
            X, f = np.exp(Z), np.exp(Z) @ [1, -1, 0.5, 0, 0, 0]
        case "counts":
            X, f = counts, np.log1p(counts) @ [1, -1, 0, 0, 0, 0] + np.log1p(counts[:, 2:4]).prod(1)
        case "counts above 0":
            X, f = counts, (counts > 0) @ [1, 1, 1, 0, 0, 0] - 1.2 * (counts[:, 3:5] > 0).all(1)
        case "Student":
            X = rng.standard_t(2, Z.shape)
            f = np.tanh(X[:, 0]) * np.tanh(X[:, 1]) + np.tanh(X[:, 2])
        case _:
            X, f = Z * np.where(rng.random(Z.shape) < 0.01, 50, 1), Z[:, 0] * Z[:, 1] + Z[:, 2]
    X, f = X * 10.0 ** rng.integers(-3, 4, 6), (f - np.median(f)) / f.std()
    if classify:
        return X, (rng.random(600) < 1 / (1 + np.exp(-4 * f))).astype(int)
    return X, f + 0.3 * rng.normal(size=600)


def measure(model, X, y, train, test):
    """Return the score, the loss and the CPU time of a fit."""
    start = time.process_time()
    model.fit(X[train], y[train])
    seconds = time.process_time() - start
    if hasattr(model, "predict_proba"):
        loss = log_loss(y[test], model.predict_proba(X[test]), labels=model.classes_)
    else:
        loss = np.mean((model.predict(X[test]) - y[test]) ** 2)
    return 100 * model.score(X[test], y[test]), loss, seconds


def compare(X, y, classify):
    """Return scores, losses and times (folds x models x 3), and how often 'auto' transforms."""
    estimator = (QuadraticClassifier if classify else QuadraticRegressor)(random_state=0)
    folds = RepeatedStratifiedKFold if classify else RepeatedKFold
    rows, used = [], []
    for train, test in folds(n_splits=5, n_repeats=2, random_state=0).split(X, y):
        models = [with_scaling(clone(estimator), tails="keep"), with_scaling(clone(estimator))]
        columns = long_tails(X[train])
        for steps in TRANSFORMS.values():
            part = [("tails", make_pipeline(*map(clone, steps)), columns)]
            scaler = ColumnTransformer(part, remainder=StandardScaler())
            models.append(make_pipeline(scaler, clone(estimator)))
        rows.append([measure(model, X, y, train, test) for model in models])
        used.append(bool(models[1].tails_ and models[1].tails_["transformed"]))
    return np.array(rows), np.mean(used)


def shown(differences):
    error = differences.std(ddof=1) * np.sqrt(1 / len(differences) + 0.25)
    return f"{differences.mean():+.1f} ± {error:.1f}"


def main() -> None:
    warnings.simplefilter("ignore")
    sets = {name: (True, load) for name, load in parts(CLASSIFICATION, "choose").items()}
    sets |= {name: (False, load) for name, load in parts(REGRESSION, "choose").items()}
    sets |= {f"KEEL: {name}": (True, load) for name, load in keel.sets().items()}
    for seed, (classify, word) in enumerate([(True, "classes of"), (False, "values of")]):
        for kind in KINDS:
            sets[f"{word} {kind}"] = (
                classify,
                lambda k=kind, s=seed, c=classify: generated(k, s, c),
            )
    names = ["auto", *TRANSFORMS]
    print(
        "| data set | " + " | ".join(f"{n}: score | loss, %" for n in names) + " | share | time |"
    )
    print("|---" * (2 * len(names) + 3) + "|")
    scores, losses, slower = [], [], []
    for name, (classify, load) in sets.items():
        X, y = load()
        X = np.asarray(X, dtype=float)
        if not long_tails(X) or name == "digits":  # an image has no tails, and takes minutes
            continue
        results, share = compare(X, y, classify)
        score = results[:, 1:, 0] - results[:, :1, 0]
        base = results[:, 0, 1].mean()
        loss = 100 * (results[:, 1:, 1] - results[:, :1, 1]) / base
        slower.append(results[:, 1, 2].sum() / results[:, 0, 2].sum())
        cells = [f"{shown(s)} | {shown(q)}" for s, q in zip(score.T, loss.T, strict=True)]
        print(f"| {name} | {' | '.join(cells)} | {share:.1f} | {slower[-1]:.1f} |", flush=True)
        scores.append(score.mean(axis=0))
        losses.append(loss.mean(axis=0))
        print(name, file=sys.stderr, flush=True)
    means = zip(np.mean(scores, axis=0), np.mean(losses, axis=0), strict=True)
    cells = " | ".join(f"{s:+.1f} | {q:+.1f}" for s, q in means)
    print(f"| **mean** | {cells} | | {np.mean(slower):.1f} |")


if __name__ == "__main__":
    main()
