"""Small fitted models of every kind that a model file can store, from fixed seeds."""

import warnings

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from quadric import (
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)

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


def _on_numbers(make):
    X, z = numbers()
    return lambda: (make(X, z), X)


def _on_table(step, last=None):
    def make():
        frame, y = table()
        model = make_pipeline(step(), classifier() if last is None else last())
        return model.fit(frame, y), frame

    return make


def _partly(X, z):
    model = classifier(solver="sgd", learning_rate="invscaling")
    for _ in range(3):
        model.partial_fit(X, _labels(z, ["a", "b"]), classes=["a", "b"])
    return model


MODELS = {
    **{
        f"network {kind} {dtype}": _on_numbers(
            lambda X, z, kind=kind, dtype=dtype: _network(kind, dtype=dtype)
        )
        for kind in KINDS
        for dtype in ("float64", "float32")
    },
    **{
        f"network {activation}": _on_numbers(
            lambda X, z, activation=activation: _network("quadratic", activation)
        )
        for activation in ("identity", "relu", "logistic")
    },
    **{
        f"classifier {kind}": _on_numbers(
            lambda X, z, kind=kind: classifier(layer_kinds=kind).fit(X, _labels(z, [3, 1, 2]))
        )
        for kind in KINDS
    },
    "classes text": _on_numbers(
        lambda X, z: classifier().fit(X, _labels(z, ["na\u00efve", "b", "c"]))
    ),
    "classes objects": _on_numbers(
        lambda X, z: classifier().fit(X, _labels(z, ["a", "bc", ""]).astype(object))
    ),
    "classes bool": _on_numbers(lambda X, z: classifier().fit(X, z > 0)),
    "classes float": _on_numbers(lambda X, z: classifier().fit(X, _labels(z, [0.0, 1.0, 2.0]))),
    "classes int8": _on_numbers(
        lambda X, z: classifier().fit(X, _labels(z, [-1, 0, 1]).astype(np.int8))
    ),
    "classes uint64": _on_numbers(
        lambda X, z: classifier().fit(X, np.where(z > 0, 2**63 + 5, 7).astype(np.uint64))
    ),
    "one class": _on_numbers(
        lambda X, z: classifier(solver="adam", max_iter=2, tol=1e9, n_iter_no_change=1).fit(
            X, ["only"] * len(X)
        )
    ),
    "multi-label": _on_numbers(lambda X, z: classifier().fit(X, X[:, :3] > 0)),
    "one-vs-rest": _on_numbers(
        lambda X, z: classifier(loss="binary_cross_entropy").fit(X, _labels(z, [3, 1, 2]))
    ),
    "two classes, softmax": _on_numbers(
        lambda X, z: classifier(loss="cross_entropy").fit(X, z > 0)
    ),
    "early stopping": _on_numbers(
        lambda X, z: classifier(early_stopping=True, max_iter=300, n_iter_no_change=2).fit(X, z > 0)
    ),
    "class weights": _on_numbers(
        lambda X, z: classifier(class_weight={"x": 2.5, "y": np.float32(0.1)}).fit(
            X, np.where(z > 0, "x", "y")
        )
    ),
    "strange parameters": _on_numbers(
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
    "float32": _on_numbers(lambda X, z: classifier().fit(X.astype(np.float32), z > 0)),
    "partial fit": _on_numbers(_partly),
    "regressor": _on_numbers(
        lambda X, z: QuadraticRegressor((3,), random_state=0).fit(X, 100 * z + 7)
    ),
    "regressor, two outputs": _on_numbers(
        lambda X, z: QuadraticRegressor((), random_state=0).fit(X, np.c_[z, -z])
    ),
    "logistic": _on_numbers(lambda X, z: QuadraticLogisticRegression().fit(X, z > 0)),
    "logistic, no penalty": _on_numbers(
        lambda X, z: QuadraticLogisticRegression(C=np.inf, tol=0.1).fit(
            X.astype(np.float32), _labels(z, ["a", "b", "c"])
        )
    ),
    "logistic, sgd": _on_numbers(
        lambda X, z: QuadraticLogisticRegression(
            solver="sgd", random_state=0, max_iter=50, tol=1e-2, loss="one-vs-rest"
        ).fit(X, _labels(z, [2, 4, 6]))
    ),
    "frame": lambda: _frame_only(),
    "scaler": _on_numbers(lambda X, z: make_pipeline(StandardScaler(), classifier()).fit(X, z > 0)),
    "scaler, nothing to do": _on_numbers(
        lambda X, z: Pipeline(
            [
                ("a b/../c", StandardScaler(with_mean=False, with_std=False)),
                ("none", "passthrough"),
                ("last", classifier()),
            ]
        ).fit(X, z > 0)
    ),
    "min max": _on_numbers(
        lambda X, z: make_pipeline(MinMaxScaler((-1, 1), clip=True), classifier()).fit(X, z > 0)
    ),
    "pca": _on_numbers(
        lambda X, z: make_pipeline(StandardScaler(), PCA(2, whiten=True), classifier()).fit(
            X, z > 0
        )
    ),
    "pca by variance": _on_numbers(
        lambda X, z: make_pipeline(PCA(0.9), QuadraticRegressor((2,), random_state=0)).fit(
            np.asfortranarray(X), z
        )
    ),
    "imputer": _on_numbers(
        lambda X, z: make_pipeline(
            SimpleImputer(strategy="median", add_indicator=True, missing_values=-1),
            StandardScaler(),
            classifier(),
        ).fit(np.where(np.abs(X) < 0.1, -1, X), z > 0)
    ),
    "constant imputer": _on_numbers(
        lambda X, z: make_pipeline(
            SimpleImputer(strategy="constant", fill_value=0.1, keep_empty_features=True),
            classifier(),
        ).fit(np.where(X > 2, np.nan, X), z > 0)
    ),
    "columns": _on_table(_columns),
    "columns, rest as it is": _on_table(lambda: _columns(remainder="passthrough")),
    "columns, rest scaled": _on_table(
        lambda: _columns(remainder=MinMaxScaler(), verbose_feature_names_out=False)
    ),
    "columns by number": _on_table(
        lambda: ColumnTransformer(
            [
                ("a", StandardScaler(), [0]),
                ("gone", "drop", [1]),
                ("all", "passthrough", [-2]),
                ("c", OneHotEncoder(sparse_output=False, drop="if_binary"), slice(2, 5)),
            ],
            transformer_weights={"a": 0.5},
        )
    ),
    "columns by mask": _on_table(
        lambda: ColumnTransformer(
            [
                ("a", StandardScaler(), np.array([True, False, False, True, False])),
                (
                    "b",
                    OneHotEncoder(dtype=np.float32, drop="first"),
                    [False, False, True, False, True],
                ),
            ]
        )
    ),
    "columns by type": _on_table(
        lambda: ColumnTransformer(
            [
                (
                    "a",
                    make_pipeline(SimpleImputer(), StandardScaler()),
                    make_column_selector(dtype_include=np.number),
                ),
                ("b", OneHotEncoder(), make_column_selector(dtype_include=object)),
            ]
        )
    ),
    "columns by index": _on_table(
        lambda: ColumnTransformer([("a", StandardScaler(), pd.Index(["size", "shop"]))])
    ),
    "one column": _on_table(
        lambda: ColumnTransformer(
            [("a", StandardScaler(), ["size"]), ("b", OneHotEncoder(), ["shop", "sale"])]
        )
    ),
    "rare categories": _on_table(
        lambda: ColumnTransformer(
            [
                ("a", StandardScaler(), ["size"]),
                (
                    "b",
                    OneHotEncoder(min_frequency=24, handle_unknown="infrequent_if_exist"),
                    ["colour", "shop"],
                ),
            ]
        )
    ),
    "given categories": _on_table(
        lambda: ColumnTransformer(
            [
                (
                    "b",
                    OneHotEncoder(categories=[[1, 2, 3, 40], [False, True]], drop=[40, True]),
                    ["shop", "sale"],
                ),
                ("a", StandardScaler(), ["size"]),
            ]
        )
    ),
    "pandas inside": _on_table(
        lambda: (
            _columns(sparse_threshold=0)
            .set_params(text__onehotencoder__sparse_output=False)
            .set_output(transform="pandas")
        )
    ),
    "columns, regression": lambda: _regression_on_table(),
}


def _frame_only():
    frame, y = table()
    frame = frame[["size", "shop"]].astype(float)
    return classifier().fit(frame, y), frame


def _regression_on_table():
    frame, _ = table()
    model = make_pipeline(_columns(), QuadraticRegressor((2,), random_state=0))
    return model.fit(frame, frame["size"] ** 2), frame


def make(name):
    """Return the model of this name, and data for its predictions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unscaled on purpose, or stopped early
        return MODELS[name]()


def answers(model, X):
    """Return the predictions of a model for X, by method."""
    methods = ("forward", "logits", "predict", "predict_proba", "decision_function")
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


def main(directory):
    """Load every model in the directory and write its predictions to a file next to it."""
    import pickle
    from pathlib import Path

    from quadric import load

    for path in Path(directory).glob("*.quadric"):
        X = pickle.loads(path.with_suffix(".data").read_bytes())
        path.with_suffix(".answers").write_bytes(pickle.dumps(answers(load(path), X)))


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
