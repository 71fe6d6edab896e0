"""Models trained on tables in memory: scores, splits and memory limits."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import quadric
from quadric.apps.shell.tables import ColumnOptions, Settings, open_table, train
from quadric.errors import TableError
from quadric.explain import boundary
from tests.support.tables import write


@pytest.mark.slow
def test_training_on_iris(iris):
    trained = train(open_table(iris), ColumnOptions("species"), Settings(cv=5))
    scores = trained.report["scores"]
    assert scores["this model"] > 0.94
    assert scores["most frequent class"] == pytest.approx(1 / 3)
    assert scores["logistic regression"] > 0.9
    confusion = np.array(trained.report["confusion"])
    assert confusion.sum() == 150
    assert np.trace(confusion) / 150 == pytest.approx(scores["this model"])
    single = train(open_table(iris), ColumnOptions("species"), Settings(hidden=(), cv=5))
    tie = boundary(single.model, "versicolor", "virginica")  # in the user's units: centimeters
    X = load_iris().data[50:]
    right = (tie.value(X) > 0) == (np.arange(100) < 50)
    assert right.mean() > 0.95


@pytest.mark.slow
def test_held_out_rows_are_not_used(iris):
    trained = train(open_table(iris), ColumnOptions("species"), Settings(test_size=0.4))
    report = trained.report
    assert (report["trained"], report["held_out"]) == (90, 60)
    assert np.sum(report["confusion"], axis=1).tolist() == [20, 20, 20]
    assert trained.model[1].n_samples_seen_ == 90
    again = train(open_table(iris), ColumnOptions("species"), Settings(test_size=0.4))
    assert again.report["scores"] == report["scores"]
    other = train(open_table(iris), ColumnOptions("species"), Settings(test_size=0.4, seed=1))
    assert other.report["confusion"] != report["confusion"]


@pytest.mark.slow
def test_regression_beats_the_mean(iris):
    trained = train(open_table(iris), ColumnOptions("petal_width"), Settings(cv=5))
    scores = trained.report["scores"]
    assert scores["this model"] > 0.9
    assert scores["the mean"] < 0.05
    assert trained.report["mean_absolute_error"] < 0.2


@pytest.mark.slow
def test_thousands_of_columns_need_reduced_neurons(tmp_path):
    rng = np.random.default_rng(0)
    rows = [",".join(row) for row in rng.normal(size=(16, 2_000)).round(3).astype(str)]
    header = ",".join(f"c{i}" for i in range(2_000))
    body = "".join(f"{row},{'ab'[i % 2]}\n" for i, row in enumerate(rows))
    path = write(tmp_path / "wide.csv", f"{header},y\n{body}")
    source = open_table(path)
    quadric.set_config(max_memory=2**25)
    try:
        with pytest.raises(TableError, match=r"Use --kind reduced, --hidden 30, or fewer columns"):
            train(source, ColumnOptions("y"), Settings(hidden=()))
        trained = train(source, ColumnOptions("y"), Settings())
        assert any("skipped" in one for one in trained.selection)
    finally:
        quadric.set_config(max_memory=None)
    trained = train(source, ColumnOptions("y"), Settings(kind="reduced"))
    assert len(trained.schema.columns) == 2_000
    assert trained.report["held_out"] == 4
