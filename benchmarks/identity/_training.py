"""Networks, estimators and pipelines: fits, predictions, model files and ONNX graphs."""

import pickle
from itertools import cycle, product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy.sparse import csr_matrix
from sklearn import (
    compose,
    datasets,
    decomposition,
    feature_selection as selection,
    impute,
    preprocessing as pre,
)
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline

from benchmarks.identity._hashes import Results, outcome, save_and_load
from quadric import (
    Network,
    QuadraticClassifier as Classifier,
    QuadraticLogisticRegression as Logistic,
    QuadraticRegressor as Regressor,
)
from quadric.certify import counterfactual, radius
from quadric.convert import fold
from quadric.explain import explain
from quadric.onnx import export

IRIS, SPECIES = datasets.load_iris(return_X_y=True)
SCALED = (IRIS - IRIS.mean(axis=0)) / IRIS.std(axis=0)
POSITIVE = np.where(SCALED > 0.3, SCALED, 0)
COUNTS = np.round(np.exp(0.5 * SCALED[:, 0]) + SCALED[:, 1] ** 2)
FRAME = pd.DataFrame(IRIS, columns=["sepal length", "sepal width", "petal length", "petal width"])
RNG = np.random.default_rng(5)
WEIGHTS = RNG.integers(0, 4, len(IRIS)).astype(float)

STACKS: dict[str, list[Any]] = {
    "linear": ["linear"],
    "quadratic": ["quadratic"],
    "reduced": ["reduced"],
    "hidden, quadratic": [("linear", 5, "tanh"), "quadratic"],
    "deep, reduced": [("quadratic", 4, "relu"), ("linear", 6, "logistic"), "reduced"],
}
TARGETS = {
    "logistic": np.eye(3)[SPECIES],
    "softmax": np.eye(3)[SPECIES],
    "identity": SCALED[:, :3],
    "exponential": np.eye(3)[SPECIES] + 1,
}
FITS: dict[str, dict[str, Any]] = {
    "sgd": {"solver": "sgd"},
    "sgd l2": {"l2": 0.01, "power_t": 0.2},
    "sgd weights, in order": {"sample_weight": WEIGHTS, "shuffle": False},
    "sgd offset": {"offset": 0.25, "rng": 3},
    "batches": {"batch_size": 16, "l2": 0.001, "clip": 0.5},
    "momentum": {"batch_size": 10, "momentum": 0.9},
    "nesterov": {"batch_size": 32, "momentum": 0.8, "nesterov": True, "sample_weight": WEIGHTS},
    "adam": {"solver": "adam", "batch_size": 20, "beta_1": 0.8, "offset": np.arange(4) / 8},
    "lbfgs": {"solver": "lbfgs", "epochs": 12, "l2": 0.01},
    "lbfgs weights": {"solver": "lbfgs", "epochs": 8, "sample_weight": WEIGHTS},
}


def create(stack: str, last: str, **options: Any) -> Network:
    layers = [(layer, 3, last) if isinstance(layer, str) else layer for layer in STACKS[stack]]
    return Network.create(4, layers, **{"rng": 0, "scale": 0.5, **options})


def networks() -> Results:
    """Train each kind of network with each solver and dtype, and each loss in turn."""
    losses = cycle(TARGETS)
    for stack, fit, dtype in product(STACKS, FITS, ("float64", "float32")):
        last = next(losses)
        net, X, Y = create(stack, last, dtype=dtype), SCALED.astype(dtype), TARGETS[last]
        history = outcome(net.fit, X, Y, learning_rate=0.02, validation=(X, Y), **FITS[fit])
        yield f"{stack}/{fit}/{dtype}/{last}", [history, net, net.forward(X), net.predict(X)]
    for stack, last in product(STACKS, TARGETS):
        net, Y = create(stack, last, init="relinear"), TARGETS[last]
        gradients = net.gradients(POSITIVE, Y, sample_weight=WEIGHTS)
        yield f"{stack}/{last}/gradients", [gradients, net.check_gradients(POSITIVE, Y)]
        history = net.fit(csr_matrix(POSITIVE), Y, offset=0.1, l2=0.01, epochs=3)
        yield f"{stack}/{last}/sparse", [history, net, net.logits(csr_matrix(POSITIVE))]
        file, loaded = save_and_load(net)
        yield f"{stack}/{last}/file", [file, loaded.forward(SCALED), net.summary(), repr(net)]
        yield f"{stack}/{last}/onnx", outcome(onnx_graph, net)
    for init, seed in product(("glorot", "normal", "identity", "relinear"), range(3)):
        net = create("hidden, quadratic", "softmax", init=init, scale=None, rng=seed)
        yield f"{init}/{seed}/created", [net, net.astype("float32"), net.n_parameters]


def onnx_graph(model: Any, **options: Any) -> bytes:
    return export(model, **options).SerializeToString(deterministic=True)


# name: estimator, data
DATA: dict[str, tuple[Any, Any]] = {
    "iris": (SCALED, SPECIES),
    "two": (SCALED[50:], np.array(["no", "yes"])[SPECIES[50:] - 1]),
    "few": (SCALED[::8], SPECIES[::8]),
    "rare": (SCALED[:110], SPECIES[:110]),
    "single": (SCALED.astype("float32"), SPECIES),
    "sparse": (csr_matrix(POSITIVE), SPECIES),
    "frame": (FRAME, SPECIES),
    "labels": (SCALED, (SCALED[:, :3] > 0).astype(int)),
    "width": (SCALED[:, :3], IRIS[:, 3]),
    "petals": (SCALED[:, :2], IRIS[:, 2:]),
    "counts": (SCALED, COUNTS),
}
BINARY, SGD = "binary_cross_entropy", {"solver": "sgd", "max_iter": 9}
ESTIMATORS: dict[str, tuple[Any, str]] = {
    "auto": (Classifier(), "iris"),
    "auto, two classes": (Classifier(), "two"),
    "auto, float32": (Classifier(), "single"),
    "auto, few rows": (Classifier(), "few"),
    "auto penalty": (Classifier((8,)), "iris"),
    "two hidden": (Classifier((8, 4), alpha=0.01), "iris"),
    "no hidden": (Classifier((), alpha=0.1), "iris"),
    "all quadratic": (Classifier((5,), layer_kinds="quadratic", alpha=1), "iris"),
    "kinds": (Classifier((5,), layer_kinds=["reduced", "linear"], alpha=1), "iris"),
    "sgd": (Classifier((6,), alpha=0.01, **SGD), "iris"),
    "paper": (Classifier((6,), "logistic", batch_size=1, momentum=0, loss=BINARY, **SGD), "iris"),
    "adam": (Classifier((6,), "relu", solver="adam", alpha=0.01, max_iter=15), "iris"),
    "invscaling": (Classifier((6,), learning_rate="invscaling", alpha=0, **SGD), "iris"),
    "adaptive": (Classifier((6,), learning_rate="adaptive", alpha=0, **SGD), "iris"),
    "early stopping": (Classifier((6,), early_stopping=True, alpha=0.01, max_iter=30), "iris"),
    "balanced": (Classifier((), alpha=0.1, class_weight="balanced"), "rare"),
    "class weights": (Classifier((), alpha=0.1, class_weight={0: 1, 1: 5, 2: 0.5}), "iris"),
    "multi-label": (Classifier((4,), alpha=0.1), "labels"),
    "sparse": (Classifier((), alpha=0.1), "sparse"),
    "diverging": (Classifier((), learning_rate_init=50, alpha=0, **SGD), "iris"),
    "frame": (Classifier((), alpha=0.1), "frame"),
    "regressor auto": (Regressor(), "width"),
    "regressor": (Regressor((7,), alpha=0.1), "width"),
    "regressor adam": (Regressor((7,), solver="adam", alpha=0.1, max_iter=12), "width"),
    "regressor two outputs": (Regressor((5,), alpha=0.1), "petals"),
    "regressor poisson": (Regressor((), loss="poisson", alpha=0.1), "counts"),
    "regressor float32": (Regressor((), layer_kinds="reduced", dtype="float32"), "counts"),
    "regressor early": (Regressor((5,), early_stopping=True, alpha=0, max_iter=20), "counts"),
    "logistic": (Logistic(), "iris"),
    "logistic C": (Logistic(0.01), "two"),
    "logistic no penalty": (Logistic(penalty=None, max_iter=40), "two"),
    "logistic one per class": (Logistic(loss="one-vs-rest"), "iris"),
    "logistic no intercept": (Logistic(fit_intercept=False), "iris"),
    "logistic sgd": (Logistic(**SGD), "iris"),
    "logistic balanced": (Logistic(class_weight="balanced"), "rare"),
    "logistic float32": (Logistic(), "single"),
    "logistic l1": (Logistic(penalty="l1"), "iris"),
}


def seeded(name: str, seed: int = 0) -> tuple[Any, Any, Any]:
    estimator, data = ESTIMATORS[name]
    return clone(estimator).set_params(random_state=seed), *DATA[data]


def estimators() -> Results:
    """Fit every kind of estimator; also with weights, in several calls, from a pickle."""
    for name in ESTIMATORS:
        model, X, y = seeded(name)
        yield f"{name}/fit", outcome(model.fit, X, y)
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(model, method):
                yield f"{name}/{method}", outcome(getattr(model, method), X)
        yield f"{name}/score", outcome(model.score, X, y)
        yield f"{name}/file", outcome(file_and_predictions, model, X)
        graphs = [outcome(onnx_graph, model, dtype=dtype) for dtype in ("float32", "float64")]
        yield f"{name}/onnx", graphs
    for name in ("two hidden", "sgd", "regressor adam", "logistic"):
        for seed in range(1, 4):
            model, X, y = seeded(name, seed)
            yield f"{name}/seed {seed}", outcome(model.fit, X, y)
        yield f"{name}/weights", outcome(model.fit, X, y, sample_weight=WEIGHTS)
        model.set_params(warm_start=True, max_iter=4)
        yield f"{name}/warm start", [outcome(model.fit, X[::2], y[::2]), model.predict(X)]
        yield f"{name}/pickle", pickle.loads(pickle.dumps(model)).predict(X)
    for solver, kind in product(("sgd", "adam"), ("quadratic", "reduced", "auto")):
        model = Classifier((4,), layer_kinds=kind, solver=solver, alpha=0.01, random_state=0)
        for rows in (slice(0, 60), slice(40, 150)):
            model.partial_fit(SCALED[rows], SPECIES[rows], classes=[0, 1, 2])
        yield f"partial_fit/{solver}/{kind}", model
        _, loaded = save_and_load(model)
        yield f"partial_fit/{solver}/{kind}/loaded", loaded.partial_fit(SCALED, SPECIES)


def file_and_predictions(model: Any, X: Any) -> Any:
    """Return the content of a model's file, and the predictions of the loaded model."""
    file, loaded = save_and_load(model, extra={"target": "y"})
    return [file, loaded.predict(X)]


NUMBERS = RNG.normal([0, 3, -1, 100], [1, 2, 0.1, 5], size=(120, 4))
GAPS = np.where(RNG.uniform(size=NUMBERS.shape) < 0.1, np.nan, NUMBERS)
COLOURS = RNG.choice(["red", "blue", "gr\u00fcn", "mauve"], 120, p=[0.4, 0.3, 0.28, 0.02])
TEXTS = pd.DataFrame({"colour": COLOURS, "grade": RNG.choice(["a", "b"], 120)}).astype(object)
WHOLE = pd.DataFrame({"shop": RNG.choice([1, 2, 40], 120), "hour": RNG.integers(0, 4, 120)})
TABLE = pd.DataFrame({"size": GAPS[:, 0], "weight": NUMBERS[:, 1], "colour": TEXTS["colour"]})
YES = np.where(NUMBERS[:, 0] ** 2 + NUMBERS[:, 1] > 4, "yes", "no")


def by_column(**options: Any) -> Any:
    numbers = make_pipeline(impute.SimpleImputer(), pre.StandardScaler())
    encoder = pre.OneHotEncoder(handle_unknown="ignore")
    parts = [("numbers", numbers, ["size", "weight"]), ("text", encoder, ["colour"])]
    return compose.ColumnTransformer(parts, **options)


# name: step, data. Some steps cannot be saved, explained or exported: then the error is compared.
STEPS: dict[str, tuple[Any, Any]] = {
    "StandardScaler": (pre.StandardScaler(), NUMBERS),
    "StandardScaler, no mean": (pre.StandardScaler(with_mean=False), NUMBERS),
    "StandardScaler, float32": (pre.StandardScaler(), NUMBERS.astype("float32")),
    "MinMaxScaler": (pre.MinMaxScaler((-1, 2)), NUMBERS),
    "MinMaxScaler, clip": (pre.MinMaxScaler(clip=True), NUMBERS),
    "MaxAbsScaler": (pre.MaxAbsScaler(), NUMBERS),
    "RobustScaler": (pre.RobustScaler(), NUMBERS),
    "PowerTransformer": (pre.PowerTransformer(), NUMBERS),
    "QuantileTransformer": (pre.QuantileTransformer(n_quantiles=20), NUMBERS),
    "Normalizer": (pre.Normalizer(), NUMBERS),
    "PolynomialFeatures": (pre.PolynomialFeatures(2), NUMBERS[:, :2]),
    "FunctionTransformer": (pre.FunctionTransformer(), NUMBERS),
    "KBinsDiscretizer": (pre.KBinsDiscretizer(3, strategy="uniform"), NUMBERS),
    "KBins, ordinal": (pre.KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), NUMBERS),
    "PCA": (decomposition.PCA(2), NUMBERS),
    "PCA, whiten": (decomposition.PCA(0.9999, whiten=True), NUMBERS),
    "PCA, float32": (decomposition.PCA(3), NUMBERS.astype("float32")),
    "TruncatedSVD": (decomposition.TruncatedSVD(2, random_state=0), NUMBERS),
    "SimpleImputer": (impute.SimpleImputer(), GAPS),
    "SimpleImputer, marks": (impute.SimpleImputer(strategy="median", add_indicator=True), GAPS),
    "KNNImputer": (impute.KNNImputer(), GAPS),
    "OneHotEncoder": (pre.OneHotEncoder(), TEXTS),
    "OneHotEncoder, drop": (pre.OneHotEncoder(drop="first", sparse_output=False), TEXTS),
    "OneHotEncoder, rare": (pre.OneHotEncoder(min_frequency=10), TEXTS),
    "OneHotEncoder, integers": (pre.OneHotEncoder(), WHOLE),
    "OrdinalEncoder": (pre.OrdinalEncoder(), TEXTS),
    "OrdinalEncoder, rare": (pre.OrdinalEncoder(min_frequency=10), TEXTS),
    "TargetEncoder": (pre.TargetEncoder(random_state=0), TEXTS),
    "SelectKBest": (selection.SelectKBest(k=2), NUMBERS),
    "SelectPercentile": (selection.SelectPercentile(percentile=60), NUMBERS),
    "VarianceThreshold": (selection.VarianceThreshold(0.5), NUMBERS),
    "RFE": (selection.RFE(LogisticRegression(), n_features_to_select=2), NUMBERS),
    "SelectFromModel": (selection.SelectFromModel(LogisticRegression()), NUMBERS),
    "Pipeline": (make_pipeline(pre.StandardScaler(), "passthrough", decomposition.PCA(3)), NUMBERS),
    "FeatureUnion": (
        FeatureUnion([("a", pre.StandardScaler()), ("b", decomposition.PCA(1))]),
        NUMBERS,
    ),
    "columns": (by_column(), TABLE),
    "columns, Polars": (by_column(), pl.from_pandas(TABLE)),
    "columns, remainder": (by_column(remainder="passthrough"), TABLE.assign(shop=WHOLE["shop"])),
    "columns, weights": (by_column(transformer_weights={"numbers": 3.0}), TABLE),
    "columns, positions": (
        compose.ColumnTransformer([("a", pre.StandardScaler(), [0, 2]), ("b", "passthrough", [3])]),
        NUMBERS,
    ),
}


def explained(model: Any, X: Any) -> Any:
    """Return an explanation as text, as data and as a page."""
    found = explain(model, X)
    return [str(found), found.to_dict(), found._repr_html_()]


def pipelines() -> Results:
    """Put every kind of step before a model: predictions, files, explanations, radii, graphs."""
    for name, (step, X) in STEPS.items():
        model = make_pipeline(clone(step), pre.StandardScaler(with_mean=False), Logistic())
        outcome(model.fit, X, YES)
        yield f"{name}/network", model[-1].network_
        yield f"{name}/predict", [outcome(model.predict, X), outcome(model.predict_proba, X)]
        yield f"{name}/file", outcome(file_and_predictions, model, X)
        yield f"{name}/explain", outcome(explained, model, X)
        yield f"{name}/radius", outcome(radius, model, X[:25])
        yield f"{name}/counterfactual", outcome(counterfactual, model, X[3:4])
        yield f"{name}/fold", outcome(fold, model)
        yield f"{name}/onnx", outcome(onnx_graph, model)
    for name, frame in {"pandas": FRAME, "polars": pl.from_pandas(FRAME)}.items():
        regressor = Regressor((4,), alpha=0.1, random_state=0)
        model = make_pipeline(pre.StandardScaler(), regressor).fit(frame, COUNTS)
        yield f"regression/{name}/predict", model.predict(frame)
        yield f"regression/{name}/file", file_and_predictions(model, frame)
        yield f"regression/{name}/explain", outcome(explained, model, frame)
