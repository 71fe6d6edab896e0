"""Random models with everything that can go wrong between `fit` and `predict`.

`draw(seed)` returns a `Case`: a classifier and rows to query it with. `KINDS` names the kinds of
cases; the documentation refers to them by name. The dtype of `fit`, the dtype of the query, the
scale of the features, their offset and the rank of the matrices vary independently.
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

ROWS = 14
FLOATS = ("float64", "float32")


@dataclass(frozen=True)
class Case:
    """A classifier, and rows of the dtype of the query.

    `moving` are the columns that may change; `scale` and `offset` are those of the columns, and
    `rank` is that of the quadratic part (None if it is not restricted).
    """

    kind: str
    model: Any
    X: Any
    fit_dtype: str
    query_dtype: str
    scale: float
    offset: float
    rank: int | None
    moving: tuple[int, ...]

    def predict(self, X: Any) -> Any:
        """The labels that a user gets."""
        return self.model.predict(X)

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


def nested(rng, n):
    return make_pipeline(StandardScaler(), make_pipeline(PCA(max(1, n - 1)), RobustScaler()))


STEPS: dict[str, Callable[[Any, int], Any]] = {
    "standard": lambda rng, n: StandardScaler(),
    "minmax": lambda rng, n: MinMaxScaler(),
    "maxabs": lambda rng, n: MaxAbsScaler(),
    "robust": lambda rng, n: RobustScaler(),
    "pca": lambda rng, n: PCA(max(1, n - 1)),
    "incremental": lambda rng, n: IncrementalPCA(max(1, n - 1)),
    "whitened": lambda rng, n: PCA(max(1, n - 1), whiten=True),
    "svd": lambda rng, n: TruncatedSVD(max(1, n - 1)),
    "imputer": lambda rng, n: SimpleImputer(),
    "nested": nested,
    "union": lambda rng, n: FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]),
    "columns": lambda rng, n: make_column_transformer(
        (StandardScaler(), [0]), (MinMaxScaler(), list(range(1, n)))
    ),
    "columns nested": lambda rng, n: make_column_transformer(
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
        steps.append(STEPS[name](rng, width))
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
    with warnings.catch_warnings():  # short fits are enough
        warnings.simplefilter("ignore")
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
        return Case(
            kind, model, X.astype(query), fitted, query, scale, offset, rank, tuple(range(n))
        )
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
    return Case(
        kind, model, rows.astype(query), fitted, query, scale, offset, rank, tuple(range(n))
    )


# ------------------------------------------------------------------------------------ attacks

NEAR = (1e-3, 1e-5, 1e-7, 1e-9, 1e-12, 1e-15, 0.0)  # of the distance


def near_ties(case: Case, found: Any) -> Any:
    """Rows close to the nearest change of class, on both sides of it, in the query's dtype."""
    rows = np.flatnonzero(np.isfinite(found.distance))
    if not len(rows):
        return case.X[:0]
    X, k = case.X[rows].astype(float), len(case.moving)
    step = X[:, :k] - found.nearest[rows][:, :k]
    made = []
    for number, share in enumerate(NEAR):
        moved = X.copy()
        moved[:, :k] = found.nearest[rows][:, :k] + (-1) ** number * share * step
        made.append(moved[number % 2 :: 2])
    return np.vstack(made).astype(case.X.dtype)
