"""`quadric train` and `quadric predict` on a cluster."""

import numpy as np
import pytest
from typer.testing import CliRunner

import quadric
from quadric.apps.shell import app

pl = pytest.importorskip("polars")
pytest.importorskip("distributed")

pytestmark = pytest.mark.slow  # the tests start clusters


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code != 0
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.fixture
def parts(tmp_path):
    """The pattern of three files, one of them in another number of rows."""
    rng = np.random.default_rng(0)
    (tmp_path / "parts").mkdir()
    for k, rows in enumerate((900, 300, 1200)):
        X, city = rng.normal(size=(rows, 2)), rng.choice(["Bern", "Oslo", "Rome"], rows)
        y = X[:, 0] * X[:, 1] + (city == "Oslo") > 0.3 * rng.normal(size=rows)
        columns = {"u": X[:, 0], "v": X[:, 1], "city": city, "y": np.where(y, "yes", "no")}
        pl.DataFrame(columns).write_parquet(tmp_path / "parts" / f"{k}.parquet")
    return tmp_path / "parts" / "*.parquet"


def test_training_and_predicting_on_a_cluster(new_cluster, parts, tmp_path):
    one, files = new_cluster(1), []
    for name in ("first", "second"):
        path = tmp_path / f"{name}.quadric"
        options = ["-t", "y", "--hidden", "none", "--dask", one.address, "-o", path]
        shown = run("train", parts, *options)
        assert "which the saved model was not trained on" in shown
        files.append(path.read_bytes())
        one.add_worker(threads=2).wait(2)
    assert files[0] == files[1]
    assert not list(tmp_path.glob("*.checkpoint"))
    model, out = tmp_path / "first.quadric", tmp_path / "out"
    frame = pl.concat([pl.read_parquet(file) for file in sorted(parts.parent.iterdir())])
    assert quadric.load(model).score(frame.drop("y"), frame["y"].to_list()) > 0.8
    run("predict", model, parts, "-o", out, "--proba", "--dask", one.address)
    run("predict", model, parts, "-o", tmp_path / "alone.parquet", "--proba")
    found = pl.concat([pl.read_parquet(file) for file in sorted(out.iterdir())])
    assert found.equals(pl.read_parquet(tmp_path / "alone.parquet"))
    message = refused("predict", model, parts, "-o", out, "--dask", one.address)
    assert "exists and is not an empty directory" in message
    assert not list(tmp_path.glob(".quadric-*"))


def test_options_and_addresses_are_checked_first(parts, tmp_path):
    given = ["train", parts, "-t", "y", "-o", tmp_path / "m.quadric"]
    nobody = "tcp://127.0.0.1:1"
    assert "cannot be combined with --stream" in refused(*given, "--stream", "--dask", nobody)
    assert "cannot be combined with --workers" in refused(*given, "--workers", 2, "--dask", nobody)
    assert "'here' is not the address of a Dask scheduler" in refused(*given, "--dask", "here")
    assert "--resume needs --stream, --dask or --workers" in refused(*given, "--resume")
