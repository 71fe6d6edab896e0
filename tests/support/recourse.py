"""Random problems with bounds for counterfactuals, and an independent solver for them.

The solver shares no code with `quadric.certify`: it draws many inputs within the bounds and starts
SLSQP from the nearest of those with another class, and from random ones.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticLogisticRegression
from quadric.core import Quadratic

KINDS = ("definite", "indefinite", "deficient", "linear")


@dataclass(frozen=True)
class Problem:
    """A model with scores z = (x, 1)' H (x, 1), a row, bounds of its inputs and a metric."""

    model: object
    H: np.ndarray
    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    weights: np.ndarray
    to: int | None

    @property
    def bounds(self):
        """The bounds as `counterfactual` expects them; infinite ones are None."""
        pairs = zip(self.low.tolist(), self.high.tolist(), strict=True)
        limits = [tuple(end if np.isfinite(end) else None for end in pair) for pair in pairs]
        return {i: pair for i, pair in enumerate(limits) if pair != (None, None)}

    def leads(self, X):
        """For each wanted class, its smallest lead over the classes that it must beat."""
        points = np.insert(X, X.shape[1], 1, axis=1)
        z = np.einsum("ni,kij,nj->nk", points, self.H, points)
        if self.to is None:
            own = z[:, [self.own]]
            return np.delete(z - own, self.own, axis=1)
        return (z[:, [self.to]] - np.delete(z, self.to, axis=1)).min(axis=1, keepdims=True)

    @property
    def own(self):
        return int(self.model.predict(self.x[None])[0])

    def length(self, X):
        return np.linalg.norm((X - self.x) * self.weights, axis=-1)


def matrices(rng, kind, count, n):
    if kind == "linear":
        return np.zeros((count, n, n))
    if kind == "deficient":
        B = rng.normal(size=(count, int(rng.integers(1, n + 1)), n))
        signs = rng.choice([-1.0, 1.0], size=B.shape[:2])
        return np.einsum("kri,kr,krj->kij", B, signs, B)
    A = rng.normal(size=(count, n, n))
    if kind == "definite":
        return rng.choice([-1.0, 1.0], size=(count, 1, 1)) * A @ A.transpose(0, 2, 1) / n
    return (A + A.transpose(0, 2, 1)) / 2


def limits(rng, x, scale):
    """Bounds of some inputs: none, a range, or 'may only grow' and 'may only fall'."""
    low, high = np.full((2, len(x)), [[-np.inf], [np.inf]])
    share = rng.choice([0.3, 0.7, 1.0])
    for i in np.flatnonzero(rng.random(len(x)) < share):
        width = scale[i] * rng.exponential(2.0, size=2)
        sort = rng.integers(5)
        if sort in (0, 1):  # may only grow
            low[i], high[i] = x[i], np.inf if sort else x[i] + width[0]
        elif sort == 2:  # may only fall
            high[i] = x[i]
        else:
            low[i], high[i] = x[i] - width[0], x[i] + width[1]
    return low, high


def network(Q, W, b):
    return Network([Quadratic(W, b, Q)], ["logistic" if len(b) == 1 else "softmax"])


def scores(Q, W, b):
    """The matrices [[Q, w/2], [w'/2, b]], one for each class; the first of two has the score 0."""
    H = np.block([[Q, W[:, :, None] / 2], [W[:, None] / 2, b[:, None, None]]])
    return H if len(H) > 1 else np.concatenate([np.zeros_like(H), H])


def change(scale, shift):
    """The matrix that maps (s, 1) to (scale s + shift, 1)."""
    T = np.diag([*scale, 1.0])
    T[:-1, -1] = shift
    return T


def draw(seed):
    """A random problem with up to 8 inputs, 2 to 5 classes and units of 0.001 to 1000."""
    rng = np.random.default_rng([seed, 7])
    n, classes = int(rng.integers(1, 9)), int(rng.integers(2, 6))
    kind, fitted = KINDS[seed % len(KINDS)], seed % 5 == 4
    scale = 10 ** rng.uniform(-3, 3, size=n) if seed % 3 == 0 else np.ones(n)
    if fitted:
        X = rng.normal(size=(80, n)) @ rng.normal(size=(n, n)) * scale
        y = matrices(rng, "indefinite", classes, n)
        z = np.einsum("ni,kij,nj->nk", X / scale, y, X / scale)
        y = np.unique((z + rng.normal(size=(80, classes))).argmax(axis=1), return_inverse=True)[1]
        y[: y.max() + 1] = np.arange(y.max() + 1)
        model = make_pipeline(StandardScaler(), QuadraticLogisticRegression()).fit(X, y)
        layer, scaler = model[-1].network_.layers[0], model[0]
        T = change(1 / scaler.scale_, -scaler.mean_ / scaler.scale_)
        H, x = T.T @ scores(layer.Q, layer.W, layer.b) @ T, X[int(rng.integers(80))]
    else:
        outputs = 1 if classes == 2 else classes
        Q = matrices(rng, kind, outputs, n) / np.outer(scale, scale)
        W, b = rng.normal(size=(outputs, n)) / scale, rng.normal(size=outputs) * 2
        model, x, H = network(Q, W, b), rng.normal(size=n) * scale, scores(Q, W, b)
    low, high = limits(rng, x, scale)
    weights = 1 / scale * np.exp(rng.normal(size=n) if seed % 2 else np.zeros(n))
    problem = Problem(model, H, x, low, high, weights, None)
    if seed % 4 == 3 and len(H) > 2:
        to = int((problem.own + 1 + rng.integers(len(H) - 1)) % len(H))
        problem = replace(problem, to=to)
    return problem


def nearest(problem, *, samples=20_000, starts=24, seed=0):
    """The smallest length at which a wanted class is reached within the bounds; inf if none."""
    rng = np.random.default_rng(seed)
    unit = 1 / problem.weights
    reach = unit * 10 ** rng.uniform(-1.5, 1.5, size=(samples, 1))
    X = problem.x + reach * rng.normal(size=(samples, len(unit)))
    stay = rng.random(X.shape) < rng.random((samples, 1)) ** 2  # many inputs unchanged
    X = np.where(stay, problem.x, X).clip(problem.low, problem.high)
    inside = np.isfinite(problem.low) & np.isfinite(problem.high)
    spread = rng.uniform(size=X.shape) * np.where(inside, problem.high - problem.low, 0.0)
    X = np.where(inside & (rng.random(X.shape) < 0.5), problem.low + spread, X)
    leads = problem.leads(X)
    best = np.inf
    for k in range(leads.shape[1]):
        there = X[leads[:, k] > 0]
        near = there[np.argsort(problem.length(there))[: starts // 2]]
        some = X[rng.choice(samples, starts - len(near), replace=False)]
        for start in np.vstack([near, some]):
            best = min(best, _descend(problem, k, start))
    return best


def _descend(problem, k, start):
    """The length that SLSQP reaches from a start; inf if its end does not have the lead."""
    unit = 1 / problem.weights
    others = np.delete(np.arange(len(problem.H)), problem.own if problem.to is None else problem.to)
    rivals, wanted = ([problem.own], others[k]) if problem.to is None else (others, problem.to)
    T = change(unit, problem.x)
    H = T.T @ (problem.H[wanted] - problem.H[rivals]) @ T
    H /= np.abs(H).max()
    ends = list(
        zip((problem.low - problem.x) / unit, (problem.high - problem.x) / unit, strict=True)
    )
    solved = minimize(
        lambda s: (s @ s, 2 * s),
        (start - problem.x) / unit,
        jac=True,
        method="SLSQP",
        bounds=ends,
        constraints=[
            {
                "type": "ineq",
                "fun": lambda s: H @ np.append(s, 1) @ np.append(s, 1),
                "jac": lambda s: 2 * (H @ np.append(s, 1))[:, :-1],
            }
        ],
        options={"maxiter": 300, "ftol": 1e-12},
    )
    s = solved.x.clip(*np.array(ends).T)
    if not np.isfinite(s).all():
        return np.inf
    # the end may be outside by the solver's tolerance: go inwards until the model agrees
    point = problem.x + s * unit
    slopes = H @ np.append(s, 1)
    slope = 2 * slopes[(slopes @ np.append(s, 1)).argmin(), :-1] * unit
    for past in (0.0, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5):
        step = past * slope * unit / max(np.abs(slope).max(), 1e-300) * max(np.abs(s).max(), 1e-9)
        moved = (point + step).clip(problem.low, problem.high)
        found = int(problem.model.predict(moved[None])[0])
        if found == problem.to or (problem.to is None and found != problem.own):
            return float(problem.length(moved))
    return np.inf


def with_many_bounds(seed, n):
    """A random problem with n inputs, most of which are bounded."""
    rng = np.random.default_rng([seed, n])
    classes = int(rng.integers(2, 5))
    outputs = 1 if classes == 2 else classes
    Q = matrices(rng, KINDS[seed % len(KINDS)], outputs, n) / np.sqrt(n)
    W, b = rng.normal(size=(outputs, n)), 2 * rng.normal(size=outputs)
    model, x = network(Q, W, b), rng.normal(size=n)
    low, high = limits(rng, x, np.full(n, 0.3))
    problem = Problem(model, scores(Q, W, b), x, low, high, np.ones(n), None)
    if seed % 3 == 2 and classes > 2:
        problem = replace(problem, to=(problem.own + 1) % classes)
    return problem
