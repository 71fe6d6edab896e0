"""A table with numbers and categories, and a model of it."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadric import QuadraticRegressor


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
