"""Write the model files on which the tests of forged files are based.

python -m tests.support.forging.make_fixtures
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from quadric import Network, QuadraticClassifier, QuadraticRegressor, save
from quadric.apps.shell import app

FIXTURES = Path(__file__).parents[2] / "fixtures"


def rows(n=40):
    """Return numbers with missing values, text and integers."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "weight": np.where(np.arange(n) % 7, rng.normal(3, 2, size=n), np.nan),
            "colour": np.array(["blue", "green", "red"], dtype=object)[np.arange(n) % 3],
            "shop": rng.choice([1, 2], n),
        }
    )
    frame.loc[n - 1, "colour"] = "yellow"  # a rare category
    return frame


def data():
    """Return the inputs of each fixture by name."""
    frame = rows()
    text = frame[["colour", "shop"]].astype(object)
    text.loc[len(text) - 1, "colour"] = "red"
    numbers = frame[["size", "weight", "shop"]].fillna(0.0).to_numpy()
    return {
        "encoder": text,
        "rare": frame[["size", "colour", "shop"]],
        "columns": frame,
        "numbers": numbers,
        "network": numbers,
        "trained": frame[["size", "colour"]],
    }


def classifier():
    return QuadraticClassifier((2,), random_state=0, max_iter=20)


def models():
    """Return the fitted model of each fixture."""
    X, z = data(), rows()["size"].to_numpy()
    labels = np.where(z > 0.4, "large", np.where(z < -0.4, "small", "middling"))
    rare = ColumnTransformer(
        [
            ("a", StandardScaler(), ["size"]),
            (
                "b",
                OneHotEncoder(min_frequency=5, handle_unknown="infrequent_if_exist"),
                ["colour", "shop"],
            ),
        ]
    )
    columns = ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
                ["size", "weight"],
            ),
            ("text", OneHotEncoder(drop="first", sparse_output=False), ["colour"]),
        ],
        remainder=MinMaxScaler(),
    )
    network = Network.create(3, [("reduced", 2, "tanh"), ("quadratic", 3, "softmax")], rng=0)
    return {
        "encoder": make_pipeline(OneHotEncoder(), classifier()).fit(X["encoder"], labels),
        "rare": make_pipeline(rare, classifier()).fit(X["rare"], labels),
        "columns": make_pipeline(columns, classifier()).fit(X["columns"], labels),
        "numbers": make_pipeline(
            StandardScaler(), PCA(2), QuadraticRegressor((), random_state=0)
        ).fit(X["numbers"], z),
        "network": network,
    }


def train(path):
    """Write a file with `quadric train`, which includes the description of the table."""
    frame = data()["trained"]
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "table.csv"
        frame.assign(sign=np.where(frame["size"] > 0, "+", "-")).to_csv(table, index=False)
        result = CliRunner().invoke(app, ["train", str(table), "-t", "sign", "-o", str(path)])
    assert result.exit_code == 0, result.output


def main():
    about = {"columns": ["a", "b", "c"], "classes": ["large", "middling", "small"], "target": "y"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopped early, unscaled
        for name, model in models().items():
            path = FIXTURES / f"forgery_{name}.quadric"
            save(model, path, extra=about if name == "network" else None)
    train(FIXTURES / "forgery_trained.quadric")


if __name__ == "__main__":
    main()
