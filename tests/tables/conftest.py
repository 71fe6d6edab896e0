"""Tables for several test modules."""

import signal

import numpy as np
import polars as pl
import pytest

from tests.support.commands import write_iris


@pytest.fixture
def mixed(tmp_path):
    """Numbers, a boolean, a category and missing values, as CSV and as Parquet."""
    rng = np.random.default_rng(0)
    n = 240
    x, z = rng.normal(5, 2, n), rng.normal(size=n)
    colour = rng.choice(["red", "green", "blue"], n).tolist()
    frame = pl.DataFrame(
        {
            "x": [None if i % 11 == 3 else v for i, v in enumerate(x)],
            "z": z,
            "flag": rng.random(n) < 0.5,
            "colour": [None if i % 17 == 1 else v for i, v in enumerate(colour)],
            "label": np.where((x - 5) ** 2 / 4 + z**2 < 1.2, "in", "out"),
        }
    )
    frame.write_csv(tmp_path / "mixed.csv")
    frame.write_parquet(tmp_path / "mixed.parquet", row_group_size=50)
    return tmp_path


@pytest.fixture
def iris(tmp_path):
    return write_iris(tmp_path / "iris.csv")


@pytest.fixture
def no_hang():
    """Fail if a test takes ten minutes."""

    def end(*_):
        raise AssertionError("the run does not end")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(600)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
