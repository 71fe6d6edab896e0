"""The lasso over all terms on expanded features: problems, solvers and a check of optimality.

Nothing here uses the code of `quadric.lasso`.
"""

import itertools
import warnings

import numpy as np
from scipy.special import expit, logsumexp, softmax
from sklearn.linear_model import Lasso
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

LOSSES = ("squared", "logistic", "multinomial")


def problem(seed, loss, n=None, samples=None):
    """Correlated inputs, and targets that depend on a few terms, with noise."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(3, 9))
    samples = samples or int(rng.integers(60, 150))
    X = rng.normal(size=(samples, n)) @ (np.eye(n) + 0.3 * rng.normal(size=(n, n))) + rng.normal(
        size=n
    )
    z = X[:, 0] * X[:, 1] + X[:, 2] - 0.5 * X[:, 0] ** 2 + rng.normal(size=samples)
    z = (z - z.mean()) / z.std()
    y = {"squared": 3 * z + 1, "logistic": (z > 0.3).astype(int)}.get(
        loss, np.digitize(z, [-0.6, 0.6])
    )
    return X, y


def expand(X, weight=None):
    """The standardized terms, shape (samples, terms), and the inputs of each: (i,) or (i, j)."""
    S = StandardScaler().fit_transform(X, sample_weight=weight)
    powers = PolynomialFeatures(2, include_bias=False).fit(S)
    terms = [tuple(np.repeat(np.arange(X.shape[1]), row)) for row in powers.powers_]
    return StandardScaler().fit_transform(powers.transform(S), sample_weight=weight), [
        tuple(int(i) for i in term) for term in terms
    ]


def groups_of(terms, hierarchy):
    """The columns of each group."""
    column = {term: c for c, term in enumerate(terms)}
    if hierarchy == "none":
        return [[c] for c in column.values()]
    return [sorted({column[(i,)] for i in term} | {c}) for term, c in column.items()]


def residual_and_loss(z, y, loss, weight):
    """The derivatives of the mean loss with respect to z, and the mean loss."""
    if loss == "squared":
        r = z - y[:, None]
        each = (r**2).sum(axis=1) / 2
    elif loss == "logistic":
        r = expit(z) - y[:, None]
        each = np.logaddexp(0, np.where(y[:, None] == 1, -z, z))[:, 0]
    else:
        r = softmax(z, axis=1) - np.eye(z.shape[1])[y]
        each = logsumexp(z, axis=1) - z[np.arange(len(y)), y]
    return weight[:, None] * r, float(weight @ each)


def dual_value(r, y, loss, weight):
    """The dual objective at residuals r * weight."""
    r = r / weight[:, None]
    if loss == "squared":
        return -float(weight @ (r**2 / 2 + r * y[:, None])[:, 0])
    p = r + (y[:, None] if loss == "logistic" else np.eye(r.shape[1])[y])
    p = np.hstack([p, 1 - p]) if loss == "logistic" else p
    return -float(weight @ np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(axis=1))


def violation(X, y, z, coefficients, *, loss, alpha, hierarchy, penalty=None, weight=None):
    """The largest violation of the optimality conditions by scores z, divided by alpha.

    `coefficients` maps terms to vectors. For hierarchy='strong', `penalty` is the claimed value of
    the penalty; at the optimum it is equal to -gradient'coefficients / alpha.
    """
    weight = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    E, terms = expand(X, weight)
    B = np.array([coefficients.get(term, np.zeros(z.shape[1])) for term in terms])
    shift = z - E @ B
    assert np.abs(shift - shift.mean(axis=0)).max() <= 1e-7 * (1 + np.abs(z).max()), "z != terms"
    r, _ = residual_and_loss(z, y, loss, weight)
    gradient = E.T @ r
    found = [np.abs(r.sum(axis=0)).max()]
    for group in groups_of(terms, hierarchy):
        size = np.sqrt(len(group))
        norms = np.linalg.norm(gradient[group], axis=0) / size
        found.append(max(0.0, norms.max() - alpha))
    if hierarchy == "none":
        found.append(np.abs(gradient + alpha * np.sign(B))[B != 0].max(initial=0.0))
    else:
        found.append(abs(-(gradient * B).sum() - alpha * penalty) / max(1.0, penalty))
    return max(found) / alpha


def optimum(X, y, *, loss, alpha, hierarchy, weight=None):
    """The smallest objective, by scikit-learn's solver or an accelerated gradient method."""
    weight = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    E, terms = expand(X, weight)
    if hierarchy == "none" and loss == "squared":
        model = Lasso(alpha=alpha, tol=1e-15, max_iter=10**6).fit(E, y, weight)
        z, penalty = model.predict(E)[:, None], np.abs(model.coef_).sum()
    else:
        z, penalty = _accelerated(E, y, groups_of(terms, hierarchy), loss, alpha, weight)
    return residual_and_loss(z, y, loss, weight)[1] + alpha * penalty


def _accelerated(E, y, groups, loss, alpha, weight, steps=60_000):
    """FISTA with restarts on copies of the columns, one for each group."""
    K = 1 if loss != "multinomial" else y.max() + 1
    columns = np.concatenate(groups)
    starts = np.cumsum([0, *map(len, groups)])[:-1]
    sizes = np.sqrt(np.array([len(group) for group in groups]))
    A = np.hstack([E[:, columns], np.ones((len(E), 1))])
    bound = {"squared": 1.0, "logistic": 0.25, "multinomial": 0.5}[loss]
    step = 1 / (bound * np.linalg.norm(np.sqrt(weight)[:, None] * A, 2) ** 2)
    x = ahead = np.zeros((A.shape[1], K))
    t = 1.0
    for _ in range(steps):
        r, _ = residual_and_loss(A @ ahead, y, loss, weight)
        new = ahead - step * (A.T @ r)
        norms = np.sqrt(np.add.reduceat(new[:-1] ** 2, starts))
        shrink = np.maximum(0, 1 - step * alpha * sizes[:, None] / np.maximum(norms, 1e-300))
        new[:-1] *= np.repeat(shrink, np.diff([*starts, len(columns)]), axis=0)
        change = np.abs(new - ahead).max()
        if ((ahead - new) * (new - x)).sum() > 0:
            t = 1.0
        later = (1 + np.sqrt(1 + 4 * t * t)) / 2
        x, ahead, t = new, new + (t - 1) / later * (new - x), later
        if change <= 1e-13:
            break
    norms = np.sqrt(np.add.reduceat(x[:-1] ** 2, starts))
    return A @ x, float((sizes[:, None] * norms).sum())


def optimum_by_cones(X, y, *, loss, alpha, hierarchy):
    """The smallest objective, by the interior-point method Clarabel of cvxpy."""
    import cvxpy as cp

    E, terms = expand(X)
    groups, K = groups_of(terms, hierarchy), 1 if loss != "multinomial" else y.max() + 1
    v, intercept = cp.Variable((sum(map(len, groups)), K)), cp.Variable((1, K))
    z = E[:, np.concatenate(groups)] @ v + np.ones((len(y), 1)) @ intercept
    ends = np.cumsum([0, *map(len, groups)]).tolist()
    penalty = sum(
        np.sqrt(b - a) * cp.sum(cp.norm(v[a:b], 2, axis=0)) for a, b in itertools.pairwise(ends)
    )
    values = {
        "squared": lambda: cp.sum_squares(z[:, 0] - y) / 2,
        "logistic": lambda: cp.sum(cp.logistic(z[:, 0]) - cp.multiply(y, z[:, 0])),
        "multinomial": lambda: (
            cp.sum(cp.log_sum_exp(z, axis=1)) - cp.sum(cp.multiply(np.eye(K)[y], z))
        ),
    }
    found = cp.Problem(cp.Minimize(values[loss]() / len(y) + alpha * penalty))
    for tol in (1e-11, 1e-10, 1e-9):  # the first that Clarabel reaches
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            best = found.solve("CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        if found.status == "optimal":
            return best
    raise AssertionError(f"Clarabel does not solve the problem: {found.status}")
