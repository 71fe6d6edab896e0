"""Complete fits of logistic regression on squares and products: one problem, many solvers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from benchmarks.compare._peers import is_installed, skipped
from benchmarks.compare._result import OURS, case_of, to_json
from benchmarks.timing import seconds_by_round
from quadric import QuadraticLogisticRegression

TITLE = "Logistic regression on squares and products: complete fits"
UNIT, PER_SECOND = "ms per fit", 1e3
C = 1.0
PRECISE = ("quadric, tol=1e-7", "poly-2, lbfgs, tol=1e-7")
CLOSE = 1e-3  # largest distance of PRECISE from the optimum, relative to it
SLOW, FEW_INPUTS = ("poly-2, newton-cholesky", "poly-2, saga", "poly-2, SGDClassifier"), 40
LARGEST_HESSIAN = 5000  # coefficients; more than this takes gigabytes
NOTES = (
    "The objective is the total training loss plus ||coefficients||²/2 (C = 1), without a penalty "
    "on the intercept, for standardized inputs, in float64 and with one thread. All except quadric "
    "expand the inputs first; the expansion is part of the time.",
    "The remark is the distance from the lowest objective that any contender found. With their "
    "default tolerances, the solvers stop at different distances, so quadric and lbfgs also run "
    "with tol=1e-7. These two must come within 0.1 % of the lowest objective before anything is "
    "timed. Solvers may take 1000 iterations, those with tol=1e-7 10 000, and saga 100.",
)
Data = tuple[np.ndarray, np.ndarray]


def digits() -> Data:
    return load_digits(return_X_y=True)


def breast_cancer() -> Data:
    return load_breast_cancer(return_X_y=True)


def generated() -> Data:
    return make_classification(5000, 64, n_informative=20, n_redundant=10, random_state=0)


DATA: dict[str, Callable[[], Data]] = {
    "breast cancer, 569 × 30, 2 classes": breast_cancer,
    "digits, 1797 × 64, 10 classes": digits,
    "generated, 5000 × 64, 2 classes": generated,
}


def run(*, quick: bool) -> dict[str, Any]:
    warnings.simplefilter("ignore")  # constant features of digits, and saga's iterations
    cases = []
    for name, load in DATA.items():
        X, y = load()
        X = StandardScaler().fit_transform(X)
        models, left_out = contenders(*X.shape, len(np.unique(y)))
        if quick and X.shape[1] > FEW_INPUTS:
            left_out |= {who: "only in a full run" for who in SLOW if who in models}
            models = {who: model for who, model in models.items() if who not in SLOW}
        objectives = {who: objective(model.fit(X, y), X, y) for who, model in models.items()}
        remarks = check_close(objectives)
        if len(np.unique(y)) > 2:
            remarks["poly-2, SGDClassifier"] = "another objective: one-vs-rest"
        if quick and X.shape[1] > FEW_INPUTS:  # the precise fits are only checked
            left_out |= dict.fromkeys(PRECISE, "only in a full run")
        fits = {
            who: partial(model.fit, X, y) for who, model in models.items() if who not in left_out
        }
        how = {"rounds": 5, "budget": 2.0, "fewest": 2} if quick else {"rounds": 11, "budget": 90.0}
        found = seconds_by_round(fits, **how)
        cases.append(case_of(name, found, remarks=remarks, left_out=left_out))
    return {"cases": to_json(cases), "skipped": skipped(["skglm"])}


def contenders(samples: int, n: int, classes: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the models, and those that are left out for a reason."""
    expand = PolynomialFeatures(2, include_bias=False)
    coefficients = n * (n + 3) // 2 * (1 if classes == 2 else classes)
    models: dict[str, Any] = {
        OURS: QuadraticLogisticRegression(C=C),
        "quadric, tol=1e-7": QuadraticLogisticRegression(C=C, tol=1e-7, max_iter=10_000),
    }
    left_out = {}
    for solver in ("lbfgs", "newton-cholesky", "saga"):
        if solver == "newton-cholesky" and coefficients > LARGEST_HESSIAN:
            gigabytes = 8 * coefficients**2 / 1e9
            left_out[f"poly-2, {solver}"] = f"its Hessian needs {gigabytes:.1f} GB"
            continue
        steps = 100 if solver == "saga" else 1000
        model = LogisticRegression(C=C, solver=solver, max_iter=steps, random_state=0)
        models[f"poly-2, {solver}"] = make_pipeline(expand, model)
    precise = LogisticRegression(C=C, tol=1e-7, max_iter=10_000)
    models["poly-2, lbfgs, tol=1e-7"] = make_pipeline(expand, precise)
    sgd = SGDClassifier(loss="log_loss", alpha=1 / (C * samples), random_state=0)
    models["poly-2, SGDClassifier"] = make_pipeline(expand, sgd)
    if not is_installed("skglm"):
        return models, left_out
    if classes == 2:
        models["poly-2, skglm"] = make_pipeline(expand, SkglmLogistic())
    else:
        left_out["poly-2, skglm"] = "two classes only"
    return models, left_out


class SkglmLogistic(BaseEstimator):
    """skglm's L-BFGS for the same problem: it averages the loss, and labels are -1 and 1.

    Its L-BFGS has no intercept. A column of tens takes its place, whose coefficient is a tenth of
    the intercept, so that the penalty on it hardly matters.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> SkglmLogistic:
        from skglm.datafits import Logistic
        from skglm.penalties import L2
        from skglm.solvers import LBFGS

        columns = np.hstack([X, np.full((len(X), 1), 10.0)])
        solver = LBFGS(max_iter=1000)
        penalty = L2(1 / (C * len(y)))
        weights, *_ = solver.solve(columns, 2.0 * y - 1, Logistic(), penalty)
        self.coef_, self.intercept_ = weights[:-1], 10 * weights[-1]
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X @ self.coef_ + self.intercept_


def objective(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The training loss of the scores as logits, plus the penalty."""
    z = model.decision_function(X)
    z = np.stack([np.zeros(len(z)), z], 1) if z.ndim == 1 else z
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    loss = log_loss(y, p, normalize=False, labels=np.unique(y))
    return float(loss + penalty(model) / (2 * C))


def penalty(model: Any) -> float:
    """The sum of the squared coefficients of the monomials."""
    if not isinstance(model, QuadraticLogisticRegression):
        return float((model[-1].coef_ ** 2).sum())
    n = model.w_.shape[1]
    rows, columns = np.triu_indices(n)
    monomials = model.Q_[:, rows, columns] * np.where(rows == columns, 1, 2)
    return float((model.w_**2).sum() + (monomials**2).sum())


def check_close(objectives: dict[str, float]) -> dict[str, str]:
    """Return each contender's distance from the optimum; raise if a precise one is far away."""
    best = min(objectives.values())
    gaps = {who: value / best - 1 for who, value in objectives.items()}
    for who in PRECISE:
        if gaps[who] > CLOSE:
            raise AssertionError(f"{who} ends {gaps[who]:.2%} above the optimum")
    return {who: f"{gap:.2%} above the optimum" for who, gap in gaps.items()}
