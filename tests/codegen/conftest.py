"""Fitted models and their rows."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from quadric import Network, QuadraticClassifier, QuadraticLogisticRegression

LOADERS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}


def mixed_table():
    """Numbers and texts with missing values, and whole numbers that are categories."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "size": rng.normal(10, 3, 200).astype("float32").astype(float),
            'the "weight"': rng.normal(-1, 2, 200),
            "color": rng.choice(["red", "grün", "it's blue"], 200),
            "shop": rng.choice([1, 2, 7], 200),
            "unused": 0.0,
        }
    )
    y = np.where(frame["size"] > 10, frame["color"], "none")
    frame.loc[::9, "size"] = np.nan
    frame.loc[::11, "color"] = None
    return frame, y


def mixed_model():
    fill = make_pipeline(SimpleImputer(), StandardScaler())
    color = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="red"),
        OneHotEncoder(handle_unknown="ignore"),
    )
    columns = ColumnTransformer(
        [
            ("fill", fill, ["size", 'the "weight"']),
            ("color", color, ["color"]),
            ("shop", OrdinalEncoder(), ["shop"]),
        ]
    )
    return make_pipeline(columns, QuadraticLogisticRegression(max_iter=200))


@cache
def fitted(name):
    """A float64 model and its table: of one layer, or with a hidden layer for 'hidden ...'."""
    with warnings.catch_warnings(action="ignore"):
        if name == "mixed":
            X, y = mixed_table()
            return mixed_model().fit(X, y), X
        if name == "784-30-10":
            layers = [("linear", 30, "logistic"), ("quadratic", 10, "logistic")]
            net = Network.create(784, layers, init="normal", scale=0.05, rng=0)
            return net, np.random.default_rng(0).uniform(size=(30, 784)).round(3)
        hidden = name.startswith("hidden ")
        X, y = LOADERS[name.removeprefix("hidden ")](return_X_y=True)
        last = (
            QuadraticClassifier((6,), random_state=0, max_iter=30)
            if hidden
            else QuadraticLogisticRegression(max_iter=30)
        )
        return make_pipeline(StandardScaler(), last).fit(X, y), X


ALL = [
    *("iris", "mixed"),
    *(pytest.param(n, marks=pytest.mark.slow) for n in ("wine", "breast cancer", "hidden wine")),
]
LARGE = ["digits", "784-30-10"]


def expected(model, X):
    """The probabilities or outputs, and the labels."""
    if isinstance(model, Network):
        return model.forward(X), model.predict(X).tolist()
    return model.predict_proba(X), model.predict(X).tolist()


@pytest.fixture(params=[*ALL, *(pytest.param(n, marks=pytest.mark.slow) for n in LARGE)])
def case(request):
    """The model, its rows, and what it predicts."""
    model, X = fitted(request.param)
    return model, X, *expected(model, X)


@pytest.fixture(
    params=[*ALL, *(pytest.param(n, marks=[pytest.mark.slow, pytest.mark.full]) for n in LARGE)]
)
def case_for_databases(request):
    """The same; large models take databases several seconds."""
    model, X = fitted(request.param)
    return model, X, *expected(model, X)
