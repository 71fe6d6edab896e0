"""A table with columns of several types."""

import numpy as np
import pytest
from sklearn.datasets import load_iris


@pytest.fixture(scope="module")
def table():
    """Iris with missing values, text and integers."""
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X.astype("float32"), columns=["sepal length", "sepal width", "c", "d"])
    frame.loc[::7, "c"] = np.nan
    frame["color"] = rng.choice(["red", "green", "blue", "violet"], 150, p=[0.5, 0.3, 0.18, 0.02])
    frame.loc[::11, "color"] = np.nan
    frame["size"] = rng.integers(1, 4, 150)
    frame["flag"] = rng.integers(0, 2, 150).astype(bool)
    frame["unused"] = "text"
    return frame, np.array(["setosa", "versicolor", "virginica"])[y]
