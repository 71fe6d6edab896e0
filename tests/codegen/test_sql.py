"""Generated SQL gives what the models predict in SQLite, DuckDB and PostgreSQL."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

from quadric import Network
from quadric.codegen import generate
from tests.support.generated_code import PostgreSQL, run_duckdb, run_sqlite


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # socket paths must be short
        server = PostgreSQL(Path(folder))
        yield server
        server.stop()


@pytest.fixture(params=["sqlite", "duckdb", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request):
    if request.param == "postgresql":
        return "postgresql", request.getfixturevalue("postgresql")
    return request.param, {"sqlite": run_sqlite, "duckdb": run_duckdb}[request.param]


def columns(found, prefix):
    names, rows = found
    places = [i for i, name in enumerate(names) if name.startswith(prefix)]
    return np.array([[float(row[i]) for i in places] for row in rows])


def test_sql(case_for_databases, database):
    model, X, probabilities, labels = case_for_databases
    dialect, run = database
    names = list(getattr(X, "columns", [f"x{i}" for i in range(X.shape[1])]))
    found = run(generate(model, dialect, keep=["id"]), X, names)
    prefix = "value" if isinstance(model, Network) else "probability"
    np.testing.assert_allclose(columns(found, prefix), probabilities, atol=1e-9, rtol=0)
    place = found[0].index("label")
    assert [str(row[place]) for row in found[1]] == list(map(str, labels))
