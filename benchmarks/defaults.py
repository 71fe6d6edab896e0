"""Compare estimators with scikit-learn's, all with default settings: python -m benchmarks.defaults

Every model follows a StandardScaler and is not tuned. Scores come from repeated cross-validation
on the data sets of `collection.py`. The defaults were chosen on one half of them ("choose") and are
evaluated on the other half ("report"). The output is Markdown tables with all results.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.collection import CLASSIFICATION, REGRESSION, half
from quadric import QuadraticClassifier, QuadraticRegressor

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


def score(model, X, y, splits) -> tuple[float, float]:
    """Return the mean test score and mean fit time; the score is NaN if fitting fails."""
    scores, times = [], []
    for train, test in splits:
        pipeline = make_pipeline(StandardScaler(), clone(model))
        start = time.perf_counter()
        try:
            pipeline.fit(X[train], y[train])
        except np.linalg.LinAlgError:  # QDA with singular covariance matrices
            return np.nan, np.nan
        times.append(time.perf_counter() - start)
        scores.append(pipeline.score(X[test], y[test]))
    return float(np.mean(scores)), float(np.mean(times))


def ranks(scores: np.ndarray) -> np.ndarray:
    """Rank scores: 1 is best, ties share their mean rank, and a model that failed is last."""
    filled = np.where(np.isnan(scores), -np.inf, scores)
    above = (filled[None, :] > filled[:, None] + 1e-12).sum(axis=1)
    equal = (np.abs(filled[None, :] - filled[:, None]) <= 1e-12).sum(axis=1)
    equal = np.where(np.isinf(filled), np.isinf(filled).sum(), equal)
    return above + (equal + 1) / 2


def table(models, sets, cv, which) -> None:
    names = half(sets, which)
    print(f"| data set ({which}) | " + " | ".join(models) + " |")
    print("|---" * (len(models) + 1) + "|")
    all_ranks, all_times = [], []
    for name in names:
        X, y = sets[name]()
        splits = list(cv.split(X, y))
        results = [score(model, X, y, splits) for model in models.values()]
        scores = np.array([result[0] for result in results])
        place = ranks(scores)
        all_ranks.append(place)
        all_times.append([result[1] for result in results])
        cells = [
            "failed" if np.isnan(s) else f"**{s:.3f}**" if p == place.min() else f"{s:.3f}"
            for s, p in zip(scores, place, strict=True)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")
        sys.stdout.flush()
    mean = np.mean(all_ranks, axis=0)
    print("| **mean rank** | " + " | ".join(f"**{r:.2f}**" for r in mean) + " |")
    seconds = np.nanmean(all_times, axis=0)
    print("| mean fit time, s | " + " | ".join(f"{t:.3f}" for t in seconds) + " |\n")


def main() -> None:
    warnings.simplefilter("ignore")
    for title, models, sets, cv in (
        (
            "Classification: accuracy, 5-fold cross-validation repeated twice",
            CLASSIFIERS,
            CLASSIFICATION,
            RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0),
        ),
        (
            "Regression: R², 5-fold cross-validation repeated twice",
            REGRESSORS,
            REGRESSION,
            RepeatedKFold(n_splits=5, n_repeats=2, random_state=0),
        ),
    ):
        print(f"## {title}\n")
        for which in ("report", "choose"):
            table(models, sets, cv, which)


if __name__ == "__main__":
    main()
