"""Models trained on tables in memory: scores, splits and memory limits."""

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris, make_friedman1

import quadric
from quadric.apps.shell.tables import ColumnOptions, Settings, open_table, train
from quadric.apps.shell.tables._evaluation import evaluate
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
    trained = train(
        open_table(iris), ColumnOptions("species"), Settings(test_size=0.4, holdout=True)
    )
    report = trained.report
    assert (report["trained"], report["held_out"]) == (90, 60)
    assert np.sum(report["confusion"], axis=1).tolist() == [20, 20, 20]
    assert trained.model[2].n_samples_seen_ == 90
    again = train(open_table(iris), ColumnOptions("species"), Settings(test_size=0.4, holdout=True))
    assert again.report["scores"] == report["scores"]
    other = train(
        open_table(iris), ColumnOptions("species"), Settings(test_size=0.4, holdout=True, seed=1)
    )
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
    trained = train(source, ColumnOptions("y"), Settings(kind="reduced", holdout=True))
    assert len(trained.schema.columns) == 2_000
    assert trained.report["held_out"] == 4


def friedman(path, rows=300, seed=0):
    X, y = make_friedman1(rows, n_features=5, noise=0.5, random_state=seed)
    pl.DataFrame(X, schema=list("abcde")).with_columns(y=y).write_csv(path)
    return path


def test_by_default_scores_are_cross_validated_and_the_model_is_trained_on_all_rows(iris):
    trained = train(open_table(iris), ColumnOptions("species"), Settings(alpha=1.0))
    report, tested = trained.report, trained.tested
    assert report["how"] == (
        "5-fold cross-validation, repeated 2 times; the saved model is trained on all rows"
    )
    assert (report["folds"], report["repetitions"], len(tested.folds)) == (5, 2, 10)
    assert (report["trained"], report["held_out"]) == (150, 0)
    assert trained.model[2].n_samples_seen_ == 150
    assert np.sum(report["confusion"]) == tested.evaluation.rows == 150
    assert tested.numbers.tolist() == list(range(1, 151))
    again = train(open_table(iris), ColumnOptions("species"), Settings(alpha=1.0))
    assert again.report == report


def test_a_given_share_is_held_out_for_the_scores_of_a_model_trained_on_all_rows(iris):
    shape = {"hidden": (), "alpha": 1.0, "test_size": 0.4}
    options = ColumnOptions("species")
    trained = train(open_table(iris), options, Settings(**shape))
    assert trained.report["how"] == (
        "40% of the rows were held out for these scores; the saved model is trained on all rows"
    )
    assert (trained.report["trained"], trained.model[2].n_samples_seen_) == (150, 150)
    assert np.sum(trained.report["confusion"]) == 60
    apart = train(open_table(iris), options, Settings(**shape, holdout=True))
    assert apart.report["scores"] == trained.report["scores"]
    assert apart.model[2].n_samples_seen_ == 90


@pytest.mark.parametrize(
    ("rare", "how"),
    [(1, "25% of the rows were held out"), (3, "3-fold cross-validation, repeated 2 times")],
)
def test_few_rows_of_a_class_are_scored_with_fewer_folds_or_held_out_rows(rare, how, tmp_path):
    rng = np.random.default_rng(0)
    y = ["common"] * 60 + ["rare"] * rare
    path = tmp_path / "a.csv"
    pl.DataFrame({"x": rng.normal(size=len(y)), "y": y}).write_csv(path)
    trained = train(open_table(path), ColumnOptions("y"), Settings(hidden=(), alpha=1.0))
    assert trained.report["how"] == f"{how}{trained.report['how'][len(how) :]}"
    assert trained.report["trained"] == len(y)


def test_a_slow_cross_validation_is_replaced_by_held_out_rows(tmp_path):
    source = open_table(friedman(tmp_path / "a.csv", 520))
    settings = Settings(hidden=(), alpha=1.0)
    trained = train(source, ColumnOptions("y"), settings)
    assert trained.report["how"].startswith("5-fold cross-validation; ")
    wide = train(source, ColumnOptions("y"), Settings(hidden=(2000,), max_iter=1))
    assert wide.report["how"].startswith("25% of the rows were held out for these scores; ")


def test_the_predictions_of_a_row_are_resampled_together():
    """Repeating every prediction must not make the intervals narrower."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=60)
    predicted = truth + rng.normal(size=60)
    rows = np.arange(60)
    once = evaluate([], truth, predicted, {"mean": 0 * truth})
    twice = evaluate(
        [], np.tile(truth, 2), np.tile(predicted, 2), {"mean": np.zeros(120)}, rows=np.tile(rows, 2)
    )
    assert (once.repetitions, twice.repetitions, twice.rows) == (1, 2, 60)
    assert twice.scores["R²"].low == pytest.approx(once.scores["R²"].low)
    assert twice.scores["R²"].high == pytest.approx(once.scores["R²"].high)


def test_a_network_is_compared_with_the_best_equation_on_the_same_folds(tmp_path):
    source, options = open_table(friedman(tmp_path / "a.csv")), ColumnOptions("y")
    network = train(source, options, Settings(hidden=(8,), cv=2))
    found = network.report["equation"]
    assert not found["saved"]
    assert found["network"] == network.tested.evaluation.scores["R²"].value
    assert found["cost"] == pytest.approx(found["network"] - found["value"])
    assert network.cost_of_equation == (
        f"As one equation: {found['value']:.3f} instead of {found['network']:.3f} (R²); "
        "--equation saves that model instead."
    )
    single = train(source, options, Settings(equation=True, cv=2))
    assert [layer.kind for layer in single.model[-1].network_.layers] in (["linear"], ["quadratic"])
    assert {one["shape"] for one in single.selection} == {"linear output", "quadratic output"}
    other = single.report["equation"]
    assert other["saved"]
    assert other["value"] == single.tested.evaluation.scores["R²"].value
    assert other["value"] == pytest.approx(found["value"])
    assert single.cost_of_equation.startswith(f"As one equation: {other['value']:.3f} instead of ")


def test_a_chosen_equation_costs_nothing(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    path = tmp_path / "a.csv"
    pl.DataFrame({"x": x, "y": 2 * x + 0.5 * rng.normal(size=200)}).write_csv(path)
    trained = train(open_table(path), ColumnOptions("y"), Settings())
    assert len(trained.model[-1].network_.layers) == 1
    assert trained.report["equation"]["cost"] == 0
    assert trained.cost_of_equation == ""
