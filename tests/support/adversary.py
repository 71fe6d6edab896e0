"""Random models with everything that can go wrong between `fit` and `predict`, and attacks on them.

`draw(seed)` returns a `Case`: a classifier and rows to query it with. `KINDS` names the kinds of
cases; the documentation refers to them by name. The dtype of `fit`, the dtype of the query, the
scale of the features, their offset and the rank of the matrices vary independently. `attack` and
`attacked` search for inputs of another class within a certified radius.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from quadric import Network, QuadraticClassifier, QuadraticLogisticRegression
from quadric.convert import from_polynomial_logistic, from_qda, truncate
from quadric.core import Linear, Quadratic, Reduced
from quadric.kernels._quadratic_form_loops import J_BLOCK

ROWS = 14
FLOATS = ("float64", "float32")


@dataclass(frozen=True)
class Case:
    """A classifier, and rows of the dtype of the query.

    `scale` is that of the columns, of which the first `moving` may change.
    """

    kind: str
    model: Any
    X: Any
    fit_dtype: str
    query_dtype: str
    scale: float
    moving: int

    @property
    def network(self) -> Network:
        last = self.model[-1] if hasattr(self.model, "steps") else self.model
        return getattr(last, "network_", last)


# ----------------------------------------------------------------------------------- networks


def whole_numbers(rng, *shape):
    """Small integers, whose products and sums are exact."""
    return rng.integers(-3, 4, size=shape).astype(float)


def matrices(rng, count, n, rank):
    """Symmetric matrices of a rank that is exact, because all entries are small integers."""
    B, signs = whole_numbers(rng, count, rank, n), rng.choice([-1.0, 1.0], size=(count, rank, 1))
    return np.swapaxes(B, 1, 2) @ (signs * B)


def one_layer(rng, n, outputs, rank, scale):
    """A quadratic layer for inputs of the given scale; with a rank, its numbers are exact."""
    if rank is None:
        Q, W, b = (rng.normal(size=(outputs, *shape)) for shape in ((n, n), (n,), ()))
    else:
        Q, W, b = (
            matrices(rng, outputs, n, rank),
            whole_numbers(rng, outputs, n),
            rng.normal(size=1),
        )
        b = np.repeat(b, outputs) + whole_numbers(rng, outputs)
    unit = 2.0 ** np.round(np.log2(scale))
    return Quadratic(W / unit, b, Q / unit / unit)


def bilinear(rng, n, outputs, scale):
    """A linear layer, a product of two and a linear layer."""
    h = int(rng.integers(2, 7))
    return [
        Linear(rng.normal(size=(h, n)) / scale, rng.normal(size=h)),
        Reduced(*(rng.normal(size=s) for s in ((h, h), (h,), (h, h), (h,)))),
        Linear(rng.normal(size=(outputs, h)), rng.normal(size=outputs)),
    ]


def hidden(rng, n, outputs, scale):
    """Up to four layers of any kind for a network with activations between them."""
    widths = [n, *rng.integers(2, 7, size=int(rng.integers(1, 4))).tolist(), outputs]
    layers = []
    for l, (n_in, n_out) in enumerate(pairwise(widths)):
        unit = scale if l == 0 else 1.0
        W, b = rng.normal(size=(n_out, n_in)) / unit, rng.normal(size=n_out)
        if rng.random() < 0.5:
            layers.append(Linear(W, b))
        else:
            Q = rng.normal(size=(n_out, n_in, n_in)) / unit / unit
            layers.append(Quadratic(W, b, Q))
    return layers


def last_activation(rng, outputs):
    return "logistic" if outputs == 1 or rng.random() < 0.3 else "softmax"


# ---------------------------------------------------------------------------------- pipelines


STEPS: dict[str, Callable[[int], Any]] = {
    "standard": lambda n: StandardScaler(),
    "minmax": lambda n: MinMaxScaler(),
    "maxabs": lambda n: MaxAbsScaler(),
    "robust": lambda n: RobustScaler(),
    "pca": lambda n: PCA(max(1, n - 1)),
    "incremental": lambda n: IncrementalPCA(max(1, n - 1)),
    "whitened": lambda n: PCA(max(1, n - 1), whiten=True),
    "svd": lambda n: TruncatedSVD(max(1, n - 1)),
    "imputer": lambda n: SimpleImputer(),
    "nested": lambda n: make_pipeline(
        StandardScaler(), make_pipeline(PCA(max(1, n - 1)), RobustScaler())
    ),
    "union": lambda n: FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]),
    "columns": lambda n: make_column_transformer(
        (StandardScaler(), [0]), (MinMaxScaler(), list(range(1, n)))
    ),
    "columns nested": lambda n: make_column_transformer(
        (make_pipeline(StandardScaler(), PCA(1)), list(range(n))), ("passthrough", [0])
    ),
}


def training_rows(rng, n, scale, offset, dtype, classes):
    """Rows about `offset`, with classes that a quadratic function separates."""
    Z = rng.normal(size=(60, n)) * rng.uniform(0.5, 2, size=n)
    y = np.digitize((Z**2).sum(axis=1) + Z[:, 0], np.quantile((Z**2).sum(axis=1), [0.4, 0.7]))
    X = (Z * scale + offset * scale).astype(dtype)
    return X, np.minimum(y, classes - 1)


def pipeline(rng, n, scale, offset, dtype):
    names = list(rng.choice(list(STEPS), size=int(rng.integers(1, 3)), replace=False))
    X, y = training_rows(rng, n, scale, offset, dtype, int(rng.integers(2, 4)))
    steps, width = [], n
    for name in names:
        steps.append(STEPS[name](width))
        width = make_pipeline(*steps).fit_transform(X).shape[1]
        if width < 2:
            break
    last = QuadraticLogisticRegression(max_iter=30, C=float(rng.choice([0.1, 1.0, 100.0])))
    if rng.random() < 0.3:
        last = QuadraticClassifier((), alpha=1e-3, max_iter=20, random_state=0)
    return make_pipeline(*steps, last).fit(X, y), X


def categories(rng, n, scale, offset, dtype):
    """Scaled columns, and a one-hot encoded column of codes at the end."""
    X, y = training_rows(rng, n, scale, offset, dtype, 3)
    codes = rng.integers(0, 3, size=(len(X), 1)).astype(dtype)
    encode = make_column_transformer(
        (StandardScaler(), list(range(n))),
        (OneHotEncoder(dtype=dtype, sparse_output=False), [n]),
    )
    X = np.hstack([X, codes])
    return make_pipeline(encode, QuadraticLogisticRegression(max_iter=30)).fit(X, y), X


# -------------------------------------------------------------------------------------- cases

KINDS = (
    "one layer",
    "low rank",
    "extreme scales",
    "bilinear",
    "hidden layers",
    "pipeline",
    "far from zero",
    "float32 steps",
    "float16 rows",
    "categories",
    "converted",
    "truncated",
)


SAMPLE = range(60)  # the seeds of every run
BLOCKS = [range(start, start + 250) for start in range(0, 5000, 250)]  # those of a full run


def of_kinds(seeds: Iterable[int], *kinds: str) -> list[int]:
    """The seeds whose cases are of these kinds."""
    return [seed for seed in seeds if KINDS[seed % len(KINDS)] in kinds]


def draw(seed: int) -> Case:
    """The case of a seed; its kind is ``KINDS[seed % len(KINDS)]``."""
    with warnings.catch_warnings(action="ignore"):  # short fits are enough
        return _draw(seed)


def _draw(seed: int) -> Case:
    kind, rng = KINDS[seed % len(KINDS)], np.random.default_rng(seed)
    n, outputs = int(rng.integers(1, 9)), int(rng.integers(1, 6))
    scale, offset, rank = 10.0 ** rng.uniform(-4, 4), float(rng.choice([0.0, 0.0, 10.0])), None
    fitted, query = (str(rng.choice(FLOATS)) for _ in range(2))
    model: Any = None
    if kind in ("one layer", "low rank", "extreme scales"):
        if kind == "low rank":
            rank = int(rng.integers(0, n + 1))
        if kind == "extreme scales":
            exponent = (
                rng.uniform(-90, 90) if fitted == query == "float64" else rng.uniform(-12, 12)
            )
            scale, offset = 10.0**exponent, 0.0
        layer = one_layer(rng, n, outputs, rank, scale)
        if kind == "extreme scales" and fitted == "float64":  # of the scores
            factor = 2.0 ** rng.integers(-400, 400)
            layer = Quadratic(*(part * factor for part in (layer.W, layer.b, layer.Q)))
        model = Network([layer], [last_activation(rng, outputs)]).astype(fitted)
    elif kind == "bilinear":
        last = last_activation(rng, outputs)
        model = Network(bilinear(rng, n, outputs, scale), ["identity", "identity", last])
        model = model.astype(fitted)
    elif kind == "hidden layers":
        layers, last = hidden(rng, n, outputs, scale), last_activation(rng, outputs)
        between = rng.choice(["tanh", "relu", "logistic"], size=len(layers) - 1).tolist()
        model = Network(layers, [*between, last]).astype(fitted)
    if model is not None:
        X = (rng.normal(size=(ROWS, n)) + offset) * scale
        return Case(kind, model, X.astype(query), fitted, query, scale, n)
    n = max(n, 2)
    if kind == "far from zero":
        offset = 10.0 ** rng.uniform(2, 7)
    if kind == "float32 steps":
        fitted, query, offset = "float32", "float64", 10.0 ** rng.uniform(0, 3)
    if kind == "float16 rows":
        query, scale, offset = "float16", 10.0 ** rng.uniform(-1, 1), float(rng.choice([0.0, 1.0]))
    if kind == "categories":
        model, T = categories(rng, n, scale, offset, fitted)
    elif kind in ("converted", "truncated"):
        fitted, offset = "float64", 0.0
        T, y = training_rows(rng, n, scale, offset, fitted, 3)
        poly = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(C=10.0))
        if kind == "truncated":
            model = QuadraticLogisticRegression(max_iter=30).fit(T / scale, y)
            rank = int(rng.integers(1, n + 1))
            model, T, scale = truncate(model, rank), T / scale, 1.0
        elif rng.random() < 0.5:
            model = from_qda(QuadraticDiscriminantAnalysis(reg_param=0.1).fit(T, y))
        else:
            model = from_polynomial_logistic(poly.fit(T, y))
    else:
        model, T = pipeline(rng, n, scale, offset, fitted)
    rows = T[rng.choice(len(T), ROWS, replace=False)].astype(float)
    rows[:, :n] += rng.normal(size=(ROWS, n)) * scale / 4
    return Case(kind, model, rows.astype(query), fitted, query, scale, n)


# ---- attacks -----------------------------------------------------------------------------


SHARES = (0.999999, 0.99, 0.5, 0.1, 0.01)  # of the radius, towards the nearest change of class
NEAR = (1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 1e-12, 1e-15, 0.0)  # of the distance


def attack(predict, X, found, *, count=40, share=0.999, seed=0):
    """Return the number of rows and of about `count` points for each row with another label."""
    rng = np.random.default_rng(seed)
    points, rows = attacked(np.asarray(X), found, rng, count=count // 4, share=share)
    flips = int((predict(X) != found.predicted).sum())
    return flips + int((predict(points) != found.predicted[rows]).sum()) if len(points) else flips


def attacked(X, found, rng, *, count=2, share=0.999, moving=None, scale=1.0):
    """Points within the radius of each row, and the numbers of their rows.

    They lie towards the nearest change of class, along single columns and in random directions,
    most of them at `share` of the radius, and a few units in the last place from the row. The first
    `moving` columns may change. A point that the dtype of X rounds to outside the ball is left out.
    """
    k, start = moving or X.shape[1], X.astype(float)
    limit, shape = np.minimum(found.radius, 1e6 * scale)[:, None], (len(X), k)
    toward = unit(found.nearest[:, :k] - start[:, :k])
    steps = [toward * limit * part for part in SHARES]
    directions = [unit(toward + 1e-3 * rng.normal(size=shape)) for _ in range(count)]
    directions += [unit(rng.normal(size=shape)) for _ in range(2 * count)]
    axes = [np.eye(k)[rng.integers(k, size=len(X))] for _ in range(count // 2)]
    directions += [sign * axis for axis in axes for sign in (1, -1)]
    steps += [direction * limit * share for direction in directions]
    with np.errstate(all="ignore"):
        ulp = np.spacing(np.abs(X[:, :k])).astype(float)
    steps += [number * axes[0] * ulp for number in (-2, -1, 1, 2)]
    points, rows = [], []
    for step in steps:
        moved = start.copy()
        moved[:, :k] += np.where(np.isfinite(step), step, 0.0)
        with np.errstate(over="ignore"):  # an infinite point is outside
            moved = moved.astype(X.dtype)
        gap = (moved[:, :k].astype(float) - start[:, :k]).astype(np.longdouble)
        largest = np.abs(gap).max(axis=1, initial=0.0) + np.finfo(float).tiny
        length = largest * np.sqrt(((gap / largest[:, None]) ** 2).sum(axis=1))
        inside = np.flatnonzero(length < found.radius)
        points.append(moved[inside])
        rows.append(inside)
    return np.vstack(points), np.concatenate(rows)


def unit(steps):
    """The steps with length 1; zero if the length is not finite or zero."""
    with np.errstate(all="ignore"):
        scaled = steps / np.abs(steps).max(axis=1, keepdims=True, initial=0.0)
        scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.where(np.isfinite(scaled), scaled, 0.0)


def near_ties(X, found, moving=None):
    """Points close to the change of class, on both sides of it; the first columns may move."""
    there, k = np.isfinite(found.distance), moving or X.shape[1]
    X = X[there].astype(float)
    nearest = X.copy()
    nearest[:, :k] = found.nearest[there][:, :k]
    shares = [sign * share for share in NEAR for sign in (1, -1)]
    return np.vstack([nearest + share * (X - nearest) for share in shares])


# ---- flushed numbers ---------------------------------------------------------------------


def underflows(n):
    """Numbers (a, b) that bound how much flushing denormal numbers to zero changes z = x'Qx.

    Let t be the smallest normal number of the dtype. An operation whose result is denormal returns
    zero, so its error is less than t. In all, these errors change z by less than
    ``(a + b sum_i |x_i|) t``, up to the relative rounding errors that `roundings` counts. In
    addition, an input x_i counts as zero if it is less than t in absolute value, and an entry q_ij
    if it is less than t, or 2 t on the diagonal.

    Without FMA, both the product and the sum may be flushed: for each of n products that are then
    multiplied by x_i, and for each of the products that are added to z. All are doubled in the end.
    """
    return 4 * n * -(-n // J_BLOCK), 4 * n
