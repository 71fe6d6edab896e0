"""Small fitted models: of every kind that a file can store, with every step, and of a shop.

    python -m tests.support.fitted_models DIRECTORY

This command loads every model in the directory and writes its predictions to a file next to it.
All models and data are drawn from fixed seeds.
"""

import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import (
    RFE,
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    SparseQuadraticClassifier,
    SparseQuadraticRegressor,
    load,
)
from quadric.models import TableColumns

# ---- every kind that a model file can store ----------------------------------------------


KINDS = ("linear", "quadratic", "reduced")


def numbers(n=80, p=4):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] * X[:, 1] + X[:, 2]


def table():
    """Return a data frame with numbers, text, booleans and missing values."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=90),
            "weight": rng.normal(3, 2, size=90),
            "colour": rng.choice(["blue", "red", "gr\u00fcn"], 90),
            "shop": rng.choice([1, 2, 3, 40], 90),
            "sale": rng.choice([True, False], 90),
        }
    )
    frame["colour"] = frame["colour"].astype(object)
    frame.loc[::11, "weight"] = np.nan
    frame.loc[::13, "colour"] = np.nan
    y = np.where(frame["size"] > 0.4, "large", np.where(frame["size"] < -0.4, "small", "middling"))
    return frame, y


def classifier(**settings):
    return QuadraticClassifier(**{"hidden_layer_sizes": (3,), "random_state": 0, **settings})


def _columns(**settings):
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size", "weight"]),
            (
                "text",
                make_pipeline(
                    SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
                ),
                ["colour"],
            ),
        ],
        **settings,
    )


def _labels(z, names):
    return np.asarray(names)[np.digitize(z, [-0.4, 0.4][: len(names) - 1])]


def _network(kind, activation="tanh", dtype="float64"):
    layers = [(kind, 3, activation), (kind, 2, "softmax" if kind == "quadratic" else "logistic")]
    return Network.create(4, layers, init="normal", scale=0.7, rng=0, dtype=dtype)


def _partly(X, z):
    model = classifier(solver="sgd", learning_rate="invscaling")
    for _ in range(3):
        model.partial_fit(X, _labels(z, ["a", "b"]), classes=["a", "b"])
    return model


ON_NUMBERS = {
    **{
        f"network {kind} {dtype}": (
            lambda X, z, kind=kind, dtype=dtype: _network(kind, dtype=dtype)
        )
        for kind in KINDS
        for dtype in ("float64", "float32")
    },
    **{
        f"network {activation}": (
            lambda X, z, activation=activation: _network("quadratic", activation)
        )
        for activation in ("identity", "relu", "logistic")
    },
    **{
        f"classifier {kind}": (
            lambda X, z, kind=kind: classifier(layer_kinds=kind).fit(X, _labels(z, [3, 1, 2]))
        )
        for kind in KINDS
    },
    "classes text": lambda X, z: classifier().fit(X, _labels(z, ["na\u00efve", "b", "c"])),
    "classes objects": (
        lambda X, z: classifier().fit(X, _labels(z, ["a", "bc", ""]).astype(object))
    ),
    "classes bool": lambda X, z: classifier().fit(X, z > 0),
    "classes float": lambda X, z: classifier().fit(X, _labels(z, [0.0, 1.0, 2.0])),
    "classes int8": lambda X, z: classifier().fit(X, _labels(z, [-1, 0, 1]).astype(np.int8)),
    "classes uint64": (
        lambda X, z: classifier().fit(X, np.where(z > 0, 2**63 + 5, 7).astype(np.uint64))
    ),
    "one class": (
        lambda X, z: classifier(solver="adam", max_iter=2, tol=1e9, n_iter_no_change=1).fit(
            X, ["only"] * len(X)
        )
    ),
    "multi-label": lambda X, z: classifier().fit(X, X[:, :3] > 0),
    "one-vs-rest": (
        lambda X, z: classifier(loss="binary_cross_entropy").fit(X, _labels(z, [3, 1, 2]))
    ),
    "two classes, softmax": lambda X, z: classifier(loss="cross_entropy").fit(X, z > 0),
    "early stopping": (
        lambda X, z: classifier(early_stopping=True, max_iter=300, n_iter_no_change=2).fit(X, z > 0)
    ),
    "class weights": (
        lambda X, z: classifier(class_weight={"x": 2.5, "y": np.float32(0.1)}).fit(
            X, np.where(z > 0, "x", "y")
        )
    ),
    "strange parameters": (
        lambda X, z: classifier(
            hidden_layer_sizes=[np.int64(2), 3],
            layer_kinds=("linear", "reduced", "quadratic"),
            alpha=0.1 + 0.2,
            n_iter_no_change=np.inf,
            tol=np.float64(1e-5),
            max_iter=7,
            solver="auto",
        ).fit(X, z > 0)
    ),
    "float32": lambda X, z: classifier().fit(X.astype(np.float32), z > 0),
    "partial fit": _partly,
    "regressor": lambda X, z: QuadraticRegressor((3,), random_state=0).fit(X, 100 * z + 7),
    "regressor, two outputs": (
        lambda X, z: QuadraticRegressor((), random_state=0).fit(X, np.c_[z, -z])
    ),
    "logistic": lambda X, z: QuadraticLogisticRegression().fit(X, z > 0),
    "logistic, no penalty": (
        lambda X, z: QuadraticLogisticRegression(C=np.inf, tol=0.1).fit(
            X.astype(np.float32), _labels(z, ["a", "b", "c"])
        )
    ),
    "logistic, sgd": (
        lambda X, z: QuadraticLogisticRegression(
            solver="sgd", random_state=0, max_iter=50, tol=1e-2, loss="one-vs-rest"
        ).fit(X, _labels(z, [2, 4, 6]))
    ),
    "sparse": lambda X, z: SparseQuadraticClassifier(max_terms=2).fit(X, z > 0),
    "sparse, three classes": (
        lambda X, z: SparseQuadraticClassifier(alpha=0.05, hierarchy="strong").fit(
            X, _labels(z, ["a", "b", "c"])
        )
    ),
    "sparse, no terms": lambda X, z: SparseQuadraticRegressor(alpha=1e6).fit(X, z),
    "sparse regressor": (
        lambda X, z: make_pipeline(StandardScaler(), SparseQuadraticRegressor(alpha=0.1)).fit(
            X, 10 * z
        )
    ),
    "scaler": lambda X, z: make_pipeline(StandardScaler(), classifier()).fit(X, z > 0),
    "scaler, nothing to do": (
        lambda X, z: Pipeline(
            [
                ("a b/../c", StandardScaler(with_mean=False, with_std=False)),
                ("none", "passthrough"),
                ("last", classifier()),
            ]
        ).fit(X, z > 0)
    ),
    "min max": (
        lambda X, z: make_pipeline(MinMaxScaler((-1, 1), clip=True), classifier()).fit(X, z > 0)
    ),
    "pca": (
        lambda X, z: make_pipeline(StandardScaler(), PCA(2, whiten=True), classifier()).fit(
            X, z > 0
        )
    ),
    "pca by variance": (
        lambda X, z: make_pipeline(PCA(0.9), QuadraticRegressor((2,), random_state=0)).fit(
            np.asfortranarray(X), z
        )
    ),
    "imputer": (
        lambda X, z: make_pipeline(
            SimpleImputer(strategy="median", add_indicator=True, missing_values=-1),
            StandardScaler(),
            classifier(),
        ).fit(np.where(np.abs(X) < 0.1, -1, X), z > 0)
    ),
    "constant imputer": (
        lambda X, z: make_pipeline(
            SimpleImputer(strategy="constant", fill_value=0.1, keep_empty_features=True),
            classifier(),
        ).fit(np.where(X > 2, np.nan, X), z > 0)
    ),
}

STEPS = {  # before a classifier
    "columns": _columns(),
    "columns, rest as it is": _columns(remainder="passthrough"),
    "columns, rest scaled": _columns(remainder=MinMaxScaler(), verbose_feature_names_out=False),
    "columns by number": ColumnTransformer(
        [
            ("a", StandardScaler(), [0]),
            ("gone", "drop", [1]),
            ("all", "passthrough", [-2]),
            ("c", OneHotEncoder(sparse_output=False, drop="if_binary"), slice(2, 5)),
        ],
        transformer_weights={"a": 0.5},
    ),
    "columns by mask": ColumnTransformer(
        [
            ("a", StandardScaler(), np.array([True, False, False, True, False])),
            (
                "b",
                OneHotEncoder(dtype=np.float32, drop="first"),
                [False, False, True, False, True],
            ),
        ]
    ),
    "columns by type": ColumnTransformer(
        [
            (
                "a",
                make_pipeline(SimpleImputer(), StandardScaler()),
                make_column_selector(dtype_include=np.number),
            ),
            ("b", OneHotEncoder(), make_column_selector(dtype_include=object)),
        ]
    ),
    "columns by index": ColumnTransformer([("a", StandardScaler(), pd.Index(["size", "shop"]))]),
    "one column": ColumnTransformer(
        [("a", StandardScaler(), ["size"]), ("b", OneHotEncoder(), ["shop", "sale"])]
    ),
    "rare categories": ColumnTransformer(
        [
            ("a", StandardScaler(), ["size"]),
            (
                "b",
                OneHotEncoder(min_frequency=24, handle_unknown="infrequent_if_exist"),
                ["colour", "shop"],
            ),
        ]
    ),
    "given categories": ColumnTransformer(
        [
            (
                "b",
                OneHotEncoder(categories=[[1, 2, 3, 40], [False, True]], drop=[40, True]),
                ["shop", "sale"],
            ),
            ("a", StandardScaler(), ["size"]),
        ]
    ),
    "target encoding": ColumnTransformer(
        [
            ("a", StandardScaler(), ["size"]),
            ("b", make_pipeline(TargetEncoder(), StandardScaler()), ["colour", "shop"]),
            (
                "ordinal",
                OrdinalEncoder(
                    categories=[["red", "gr\u00fcn", "blue", np.nan]], encoded_missing_value=-1
                ),
                ["colour"],
            ),
        ]
    ),
    "pandas inside": (
        _columns(sparse_threshold=0)
        .set_params(text__onehotencoder__sparse_output=False)
        .set_output(transform="pandas")
    ),
}
ON_TABLE = {
    "frame": classifier(),
    "encoder": make_pipeline(OneHotEncoder(), classifier()),
    **{name: make_pipeline(step, classifier()) for name, step in STEPS.items()},
    "table columns": make_pipeline(
        TableColumns(
            [
                {"name": "size", "kind": "number", "form": [",", ".", "EUR"]},
                {"name": "colour", "kind": "category", "numbers": False},
                {"name": "shop", "kind": "category", "numbers": True},
                {"name": "weight", "kind": "number", "form": [".", "", ""]},
            ]
        ),
        ColumnTransformer(
            [
                ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [0, 3]),
                (
                    "categories",
                    make_pipeline(
                        SimpleImputer(
                            missing_values=None, strategy="constant", fill_value="missing"
                        ),
                        OneHotEncoder(handle_unknown="ignore"),
                    ),
                    [1, 2],
                ),
            ]
        ),
        classifier(),
    ),
    "columns, regression": make_pipeline(_columns(), QuadraticRegressor((2,), random_state=0)),
}
FEW_COLUMNS = {"frame": ["size", "shop"], "encoder": ["shop", "sale"]}
MODELS = [*ON_NUMBERS, *ON_TABLE]


def make(name):
    """Return the model of this name, and data for its predictions."""
    with warnings.catch_warnings(action="ignore"):  # unscaled on purpose, or stopped early
        if name in ON_NUMBERS:
            X, z = numbers()
            return ON_NUMBERS[name](X, z), X
        frame, y = table()
        if name in FEW_COLUMNS:
            frame = frame[FEW_COLUMNS[name]].astype(float)
        model = clone(ON_TABLE[name])
        return model.fit(frame, y if is_classifier(model) else frame["size"] ** 2), frame


def answers(model, X):
    """Return the predictions of a model for X, by method."""
    methods = ("forward", "logits", "predict", "predict_proba", "decision_function")
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


# ---- every supported step ----------------------------------------------------------------


# scikit-learn 1.6 has no such parameter, and later versions warn if it is not given
QUANTILES = {
    name: "averaged_inverted_cdf"
    for name in KBinsDiscretizer().get_params()
    if name == "quantile_method"
}
RNG = np.random.default_rng(5)
NUMBERS = RNG.normal([0, 3, -1, 100], [1, 2, 0.1, 5], size=(120, 4))
POSITIVE = np.exp(NUMBERS[:, :3])
GAPS = np.where(RNG.uniform(size=NUMBERS.shape) < 0.1, np.nan, NUMBERS)
EMPTY = np.column_stack([GAPS, np.full(len(GAPS), np.nan)])
TABLE = pd.DataFrame(
    {
        "size": GAPS[:, 0],
        "weight": NUMBERS[:, 1],
        "colour": RNG.choice(["red", "blue", "gr\u00fcn", "mauve"], 120, p=[0.4, 0.3, 0.28, 0.02]),
        "shop": RNG.choice([1, 2, 40], 120),
    }
)
TEXT = pd.DataFrame(
    {
        "colour": TABLE["colour"].astype(object),
        "grade": RNG.choice(["a", "b", "c"], 120).astype(object),
    }
)
TEXT_GAPS = TEXT.mask(RNG.uniform(size=TEXT.shape) < 0.1, None).astype(object)
WHOLE = pd.DataFrame({"shop": TABLE["shop"], "hour": RNG.integers(0, 4, 120)})
Y = np.where(NUMBERS[:, 0] ** 2 + NUMBERS[:, 1] > 4, "yes", "no")
# the folds of a TargetEncoder, for the same result in every fit; scikit-learn 1.9 takes a splitter
FOLDS = (
    {"cv": KFold(3, shuffle=True, random_state=1)}
    if TargetEncoder().random_state == "deprecated"
    else {"cv": 3, "random_state": 1}
)
# the targets of steps that depend on them, if they are not Y
TARGETS = {
    "TargetEncoder multiclass": np.where(NUMBERS[:, 0] > 1, "lots", Y),
    "TargetEncoder continuous": (Y == "yes").astype(int),
}


def _plain_columns(**settings):
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size", "weight"]),
            ("text", OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ],
        **settings,
    )


# name: step, data, whether it is affine (None if it has both affine and other branches)
CASES = {
    "StandardScaler": (StandardScaler(), NUMBERS, True),
    "StandardScaler scale only": (StandardScaler(with_mean=False), NUMBERS, True),
    "StandardScaler nothing": (StandardScaler(with_mean=False, with_std=False), NUMBERS, True),
    "MinMaxScaler": (MinMaxScaler((-1, 2)), NUMBERS, True),
    "MinMaxScaler clip": (MinMaxScaler(clip=True), NUMBERS, False),
    "MaxAbsScaler": (MaxAbsScaler(), NUMBERS, True),
    "RobustScaler": (RobustScaler(), NUMBERS, True),
    "RobustScaler center only": (RobustScaler(with_scaling=False), NUMBERS, True),
    "PowerTransformer": (PowerTransformer(), NUMBERS, False),
    "PowerTransformer box-cox": (PowerTransformer("box-cox", standardize=False), POSITIVE, False),
    "PCA": (PCA(2), NUMBERS, True),
    "PCA whiten": (PCA(0.9999, whiten=True), NUMBERS, True),
    "IncrementalPCA": (IncrementalPCA(2), NUMBERS, True),
    "TruncatedSVD": (TruncatedSVD(2, random_state=0), NUMBERS, True),
    "SimpleImputer": (SimpleImputer(), GAPS, True),
    "SimpleImputer marks": (SimpleImputer(strategy="median", add_indicator=True), GAPS, None),
    "SimpleImputer empty column": (SimpleImputer(), EMPTY, True),
    "SimpleImputer of -1": (SimpleImputer(missing_values=-1), np.nan_to_num(GAPS, nan=-1), False),
    "OneHotEncoder": (OneHotEncoder(), TEXT, False),
    "OneHotEncoder drop": (OneHotEncoder(drop="first", sparse_output=False), TEXT, False),
    "OneHotEncoder drop given": (OneHotEncoder(drop=["red", "b"]), TEXT, False),
    "OneHotEncoder rare": (
        OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist"),
        TEXT,
        False,
    ),
    "OneHotEncoder rare, two left": (
        OneHotEncoder(max_categories=2, drop="if_binary"),
        TEXT,
        False,
    ),
    "OneHotEncoder missing": (OneHotEncoder(), TEXT_GAPS, False),
    "OneHotEncoder whole numbers": (OneHotEncoder(handle_unknown="ignore"), WHOLE, False),
    "OrdinalEncoder": (OrdinalEncoder(), TEXT, False),
    "OrdinalEncoder unknown": (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        TEXT,
        False,
    ),
    "OrdinalEncoder rare": (OrdinalEncoder(min_frequency=10), TEXT, False),
    "OrdinalEncoder missing": (
        OrdinalEncoder(encoded_missing_value=-2, min_frequency=10),
        TEXT_GAPS.fillna(np.nan),
        False,
    ),
    "OrdinalEncoder whole numbers": (OrdinalEncoder(), WHOLE, False),
    "TargetEncoder": (TargetEncoder(**FOLDS), TEXT, False),
    "TargetEncoder missing": (TargetEncoder(smooth=2.0, **FOLDS), TEXT_GAPS, False),
    "TargetEncoder whole numbers": (TargetEncoder(**FOLDS), WHOLE, False),
    "TargetEncoder multiclass": (TargetEncoder(**FOLDS), TEXT, None),
    "TargetEncoder continuous": (
        TargetEncoder(target_type="continuous", **FOLDS),
        TEXT,
        False,
    ),
    "KBinsDiscretizer": (KBinsDiscretizer(3, **QUANTILES), NUMBERS, False),
    "KBinsDiscretizer ordinal": (
        KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
        NUMBERS,
        False,
    ),
    "KBinsDiscretizer dense": (
        KBinsDiscretizer([2, 3, 2, 5], encode="onehot-dense", strategy="kmeans", random_state=0),
        NUMBERS,
        False,
    ),
    "SelectKBest": (SelectKBest(k=2), NUMBERS, True),
    "SelectKBest chi2": (SelectKBest(chi2, k=1), POSITIVE, True),
    "SelectPercentile": (SelectPercentile(percentile=60), NUMBERS, True),
    "SelectFpr": (SelectFpr(alpha=0.5), NUMBERS, True),
    "SelectFdr": (SelectFdr(alpha=0.9), NUMBERS, True),
    "SelectFwe": (SelectFwe(alpha=0.9), NUMBERS, True),
    "GenericUnivariateSelect": (GenericUnivariateSelect(mode="k_best", param=3), NUMBERS, True),
    "VarianceThreshold": (VarianceThreshold(0.5), NUMBERS, True),
    "RFE": (RFE(LogisticRegression(), n_features_to_select=2), NUMBERS, True),
    "SelectFromModel": (SelectFromModel(LogisticRegression()), NUMBERS, True),
    "SelectKBest own score": (SelectKBest(lambda X, y: np.abs(X).sum(axis=0), k=2), NUMBERS, True),
    "FunctionTransformer": (FunctionTransformer(), NUMBERS, True),
    "Pipeline": (make_pipeline(StandardScaler(), "passthrough", PCA(3)), NUMBERS, True),
    "FeatureUnion": (
        FeatureUnion(
            [("a", StandardScaler()), ("b", PCA(1)), ("c", "passthrough")],
            transformer_weights={"b": 0.5},
        ),
        NUMBERS,
        True,
    ),
    "ColumnTransformer": (_plain_columns(), TABLE, None),
    "ColumnTransformer affine, weighted": (
        ColumnTransformer(
            [("a", StandardScaler(), [0, 2]), ("b", "passthrough", [3]), ("gone", "drop", [1])],
            transformer_weights={"a": 3.0},
        ),
        NUMBERS,
        True,
    ),
    "ColumnTransformer rest": (_plain_columns(remainder="passthrough"), TABLE, None),
    "ColumnTransformer rest scaled": (
        _plain_columns(remainder=StandardScaler(), verbose_feature_names_out=False),
        TABLE,
        None,
    ),
    "ColumnTransformer weighted": (
        _plain_columns(transformer_weights={"numbers": 3.0}),
        TABLE,
        None,
    ),
    "ColumnTransformer no columns": (
        ColumnTransformer([("none", StandardScaler(), []), ("a", PCA(2), [0, 1, 2])]),
        NUMBERS,
        True,
    ),
    "ColumnTransformer inside": (
        ColumnTransformer(
            [
                ("in", ColumnTransformer([("a", MinMaxScaler(), [1, 0])]), [0, 2]),
                ("bins", KBinsDiscretizer(3, strategy="uniform"), [1]),
            ]
        ),
        NUMBERS,
        None,
    ),
}


def fitted_case(name):
    step, X, _ = CASES[name]
    model = make_pipeline(
        clone(step), StandardScaler(with_mean=False), QuadraticLogisticRegression()
    )
    with warnings.catch_warnings(action="ignore"):  # features without values, few iterations
        return model.fit(X, TARGETS.get(name, Y)), X


# ---- a table of a shop -------------------------------------------------------------------


def shop(library="pandas", n=400):
    """Return a table of two numbers and two categories, and prices, which ignore `size`."""
    module = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    color, size = rng.choice(["red", "green", "blue"], n), rng.choice(["s", "m"], n)
    age, income = rng.normal(10, 3, n), rng.gamma(2, 2, n)
    price = 5 * age + 2 * (age - 10) ** 2 + 10 * (color == "red") * income
    frame = module.DataFrame({"age": age, "income": income, "color": color, "size": size})
    return frame, price


def shop_model(frame, price, hidden=()):
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
        (OneHotEncoder(), ["color", "size"]),
    )
    return make_pipeline(columns, QuadraticRegressor(hidden, random_state=0)).fit(frame, price)


if __name__ == "__main__":
    for path in Path(sys.argv[1]).glob("*.quadric"):
        X = pickle.loads(path.with_suffix(".data").read_bytes())
        path.with_suffix(".answers").write_bytes(pickle.dumps(answers(load(path), X)))
