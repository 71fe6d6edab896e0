"""Sparse quadratic models: speed, planted truth, false terms and accuracy.

python -m benchmarks.sparse speed       paths of 50 penalties for 200 inputs and 10 000 rows
python -m benchmarks.sparse large       30 penalties for 1000 inputs and 100 000 rows
python -m benchmarks.sparse rivals      skglm and scikit-learn's saga on expanded features
python -m benchmarks.sparse truth       precision and recall of stable terms in planted models
python -m benchmarks.sparse false       false terms among stable ones, in 100 simulations
python -m benchmarks.sparse use         accuracy of at most 15 terms per class on real data sets

Prints Markdown tables.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from benchmarks import keel
from quadric import QuadraticClassifier, SparseQuadraticClassifier, SparseQuadraticRegressor

BUNDLED = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
}
MOST_TERMS = 15  # per class
WITHIN = 1.5  # percentage points
MOST_OF_EBM = 40  # inputs times classes; more take minutes per fit


# ---- data --------------------------------------------------------------------------------------


def inputs(rng, rows, n, correlation=0.0):
    """Normal inputs, each with the given correlation to every other one."""
    common = np.sqrt(correlation) * rng.normal(size=(rows, 1))
    return common + np.sqrt(1 - correlation) * rng.normal(size=(rows, n))


def planted(rng, n, design, correlation=0.0, count=10, ratio=3.0, rows=None):
    """Inputs, targets with the given signal-to-noise ratio, and the true terms."""
    chosen = rng.permutation(n)[: 2 * count].tolist()
    if design == "hierarchy":  # pairs of inputs that have linear terms as well
        mains = [(i,) for i in sorted(chosen[: count - count // 3 - 1])]
        inputs_of_pairs = [mains[k % len(mains)][0] for k in range(2 * (count // 3))]
        pairs = [tuple(sorted(inputs_of_pairs[2 * k : 2 * k + 2])) for k in range(count // 3)]
        terms = [*mains, *pairs, (mains[0][0], mains[0][0])]
    else:  # products without linear terms
        terms = [tuple(sorted(chosen[2 * k : 2 * k + 2])) for k in range(count)]
    rows = rows or int(20 * len(terms) * np.log(n))
    X = inputs(rng, rows, n, correlation)
    z = np.zeros(rows)
    for term in terms:
        value = X[:, list(term)].prod(axis=1)
        z += rng.choice([-1, 1]) * (value - value.mean()) / value.std()
    return X, z + rng.normal(size=rows) * z.std() / np.sqrt(ratio), set(terms)


def large_data(n, rows, dtype=float):
    """Ten products, ten linear terms and five squares, and as much noise as a quarter of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(size=(rows, n), dtype=dtype)
    z = X[:, :10].sum(axis=1, dtype=float) + (X[:, 10:15].astype(float) ** 2).sum(axis=1)
    for k in range(10):
        z += X[:, 3 * k].astype(float) * X[:, 3 * k + 1]
    z = (z - z.mean()) / z.std()
    return X, z + 0.5 * rng.normal(size=rows)


# ---- speed -------------------------------------------------------------------------------------


def path_line(n, rows, count, eps, task, hierarchy="none", dtype=float):
    X, y = large_data(n, rows, dtype)
    of = SparseQuadraticRegressor if task == "squared" else SparseQuadraticClassifier
    y = y if task == "squared" else y > 0
    of(0.1).fit(X[:50, :5], y[:50])  # compiles
    start, cpu = time.perf_counter(), time.process_time()
    path = of(n_alphas=count, eps=eps, hierarchy=hierarchy).fit_path(X, y)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    last = int(np.count_nonzero(path.coefficients[-1]))
    print(
        f"| {n} | {rows:,} | {task} | {hierarchy} | {count} | {eps:g} | {last} | {seconds:.1f} "
        f"| {cpu:.1f} | {memory:.2f} |",
        flush=True,
    )


def speed(large=False):
    names = "inputs, rows, loss, hierarchy, penalties, smallest, terms, seconds, CPU, GB"
    print("| " + names.replace(", ", " | ") + " |\n" + "|---" * 10 + "|")
    if large:
        path_line(1000, 100_000, 30, 0.1, "squared", dtype=np.float32)
        return
    for task, hierarchy, eps in (
        ("squared", "none", 0.1),
        ("squared", "none", 0.01),
        ("logistic", "none", 0.1),
        ("squared", "strong", 0.1),
    ):
        path_line(200, 10_000, 50, eps, task, hierarchy)


def rivals():
    """One fit for a tenth of the largest penalty, with the time to expand the features."""
    from skglm import Lasso, SparseLogisticRegression

    print("| inputs | rows | loss | model | seconds | objective |\n" + "|---" * 6 + "|")
    for n, rows in ((20, 3000), (60, 3000), (100, 3000), (150, 3000)):
        X, z = large_data(max(n, 31), rows)
        X = X[:, :n]
        for task, y in (("squared", z), ("logistic", z > np.median(z))):
            of = SparseQuadraticRegressor if task == "squared" else SparseQuadraticClassifier
            alpha = 0.1 * float(of(n_alphas=1).fit_path(X, y).alphas[0])

            def expanded(X=X):
                polynomial = PolynomialFeatures(2, include_bias=False)
                steps = make_pipeline(StandardScaler(), polynomial, StandardScaler())
                return np.asfortranarray(steps.fit_transform(X))

            models = {"quadric": of(alpha)}
            if task == "squared":
                models["skglm"] = Lasso(alpha, tol=1e-8)
            else:
                models["skglm"] = SparseLogisticRegression(alpha, tol=1e-8)
                if n <= 60:  # longer than a minute for more
                    models["saga"] = LogisticRegression(
                        C=1 / (alpha * rows), l1_ratio=1, solver="saga", tol=1e-6, max_iter=3000
                    )
            E, best = expanded(), {}
            for _ in range(2):  # the first round compiles
                for name, model in models.items():
                    start = time.perf_counter()
                    model = clone(model).fit(X if name == "quadric" else expanded(), y)
                    seconds = time.perf_counter() - start
                    best[name] = min(seconds, best.get(name, (np.inf,))[0]), model
            for name, (seconds, model) in best.items():
                if name == "quadric":
                    found = model.certificate_.objective
                else:
                    p = E @ np.ravel(model.coef_) + np.ravel(model.intercept_)
                    each = (p - y) ** 2 / 2 if task == "squared" else np.logaddexp(0, p) - y * p
                    found = each.mean() + alpha * np.abs(model.coef_).sum()
                print(f"| {n} | {rows} | {task} | {name} | {seconds:.2f} | {found:.9f} |")
            sys.stdout.flush()


# ---- truth -------------------------------------------------------------------------------------


def truth():
    print("| inputs | rows | planted | correlation | precision | recall | data sets |")
    print("|---" * 7 + "|")
    for n, count in ((50, 10), (100, 10), (200, 5), (500, 3)):
        for design in ("hierarchy", "products"):
            for correlation in (0.0, 0.5):
                found = []
                for seed in range(count):
                    rng = np.random.default_rng(seed)
                    X, y, terms = planted(rng, n, design, correlation)
                    stable = set(SparseQuadraticRegressor(random_state=seed).stability(X, y).stable)
                    found.append((len(stable & terms), len(stable), len(terms)))
                right, stable, true = np.sum(found, axis=0)
                precision = right / stable if stable else np.nan
                line = f"{precision:.3f} | {right / true:.3f} | {count}"
                print(f"| {n} | {len(X)} | {design} | {correlation} | {line} |", flush=True)


def false_terms():
    print("| planted | loss | false terms, mean | most | bound | true terms found |")
    print("|---" * 6 + "|")
    for design, task in (("products", "squared"), ("hierarchy", "logistic")):
        wrong, right, bounds = [], [], []
        for seed in range(100):
            X, y, terms = planted(np.random.default_rng(seed), 50, design, count=6, rows=400)
            of, y = (
                (SparseQuadraticRegressor, y)
                if task == "squared"
                else (SparseQuadraticClassifier, y > np.median(y))
            )
            found = of(random_state=seed).stability(X, y, max_false=1.0)
            wrong.append(len(set(found.stable) - terms))
            right.append(len(set(found.stable) & terms) / len(terms))
            bounds.append(found.expected_false)
        counts = f"{np.mean(wrong):.2f} | {max(wrong)} | {np.mean(bounds):.2f}"
        print(f"| {design} | {task} | {counts} | {np.mean(right):.2f} |", flush=True)


# ---- use ---------------------------------------------------------------------------------------


def contenders():
    from interpret.glassbox import ExplainableBoostingClassifier

    return {
        "readable": SparseQuadraticClassifier(max_terms=MOST_TERMS, refit=True, random_state=0),
        "readable, strong": SparseQuadraticClassifier(
            max_terms=MOST_TERMS, refit=True, hierarchy="strong", random_state=0
        ),
        "lasso": SparseQuadraticClassifier(max_terms=MOST_TERMS, random_state=0),
        "dense": make_pipeline(StandardScaler(), QuadraticClassifier(random_state=0)),
        # with the usual 14 bags, a fit takes minutes
        "EBM": ExplainableBoostingClassifier(outer_bags=4, random_state=0, n_jobs=1),
        "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }


def size(model):
    """The number of terms of a fitted model: the largest of its outputs."""
    if isinstance(model, SparseQuadraticClassifier):
        return np.count_nonzero(model.coefficients_, axis=0).max(initial=0)
    if isinstance(model, DecisionTreeClassifier):
        return model.get_n_leaves()
    return len(getattr(model, "term_features_", ())) or np.nan


def cell(means):
    accuracy, loss, terms, seconds = means
    count = "" if np.isnan(terms) else f", {terms:.0f} terms"
    return f"{accuracy:.1f}, {loss:.2f}{count}, {seconds:.1f} s"


def use():
    """Accuracy in percent, log-loss, number of terms and CPU seconds of a fit, in three folds."""
    warnings.simplefilter("ignore")
    models = contenders()
    print("| data set | " + " | ".join(models) + " | readable - dense |")
    print("|---" * (len(models) + 2) + "|")
    gaps = {}
    for name, load in (BUNDLED | keel.sets()).items():
        X, y = load()
        y = np.unique(y, return_inverse=True)[1]
        fewest = np.bincount(y).min()
        rows = np.flatnonzero(np.isin(y, np.flatnonzero(np.bincount(y) >= min(3, fewest))))
        scores = {model: [] for model in models}
        if X.shape[1] * len(np.unique(y)) > MOST_OF_EBM:
            del scores["EBM"]
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        for train, test in folds.split(X[rows], y[rows]):
            train, test = rows[train], rows[test]
            for model in scores:
                start = time.process_time()
                fitted = clone(models[model]).fit(X[train], y[train])
                seconds = time.process_time() - start
                known = np.isin(y[test], fitted.classes_)
                P = fitted.predict_proba(X[test])
                loss = log_loss(y[test][known], P[known], labels=fitted.classes_)
                right = 100 * np.mean(fitted.classes_[P.argmax(axis=1)] == y[test])
                scores[model].append((right, loss, size(fitted), seconds))
        means = {model: np.mean(values, axis=0) for model, values in scores.items()}
        gaps[name] = means["readable"][0] - means["dense"][0]
        cells = " | ".join(cell(means[model]) if model in means else "–" for model in models)
        print(f"| {name} | {cells} | {gaps[name]:+.1f} |", flush=True)
    within = sum(gap >= -WITHIN for gap in gaps.values())
    print(f"\n`readable` is within {WITHIN} points of `dense` on {within} of {len(gaps)} sets.")
    print("Losses: " + ", ".join(f"{n} ({g:+.1f})" for n, g in gaps.items() if g < -WITHIN) + ".")


SECTIONS = {
    "speed": speed,
    "large": lambda: speed(large=True),
    "rivals": rivals,
    "truth": truth,
    "false": false_terms,
    "use": use,
}

if __name__ == "__main__":
    for section in sys.argv[1:] or ["speed"]:
        SECTIONS[section]()
