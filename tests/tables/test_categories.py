"""Columns with many categories, ordered categories, and targets that cannot be predicted."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import quadric
from quadric.apps.shell.tables import ColumnOptions, Settings, open_table, train
from quadric.apps.shell.tables._ordinals import RANKS, ordered
from quadric.apps.shell.tables._preprocessing import encoded_for_training, fitted_to_moments
from quadric.apps.shell.tables._schema import Schema, features, labeled_rows
from quadric.errors import TableError
from quadric.explain import dependence, explain
from quadric.models import ModelView
from tests.support.commands import command
from tests.support.tables import schema_of

FAST = Settings(hidden=(), kind="quadratic", alpha=1.0, max_iter=20, test_size=0.3, tails="keep")
REGIONS = 140


def churn(tmp_path, n=1200, strength=1.2, seed=0, **more):
    """Write a table of customers, whose churn depends on the region by `strength`."""
    rng = np.random.default_rng(seed)
    region, answer, x = rng.integers(0, REGIONS, n), rng.integers(0, 5, n), rng.normal(size=n)
    z = rng.normal(0, strength, REGIONS)[region] - 0.5 * (answer - 2) + 0.5 * x
    words = np.array(["Never", "Rarely", "Sometimes", "Often", "Always"])
    path = tmp_path / "churn.csv"
    pl.DataFrame(
        {
            "customer": [f"C{i:05d}" for i in rng.permutation(n)],
            "region": [f"region {r}" for r in region],
            "complains": words[4 - answer],
            "x": x,
            "churned": np.where(rng.random(n) < 1 / (1 + np.exp(-z)), "yes", "no"),
            "bill": 20 + z + rng.normal(size=n),
            "tariff": np.array(["a", "b", "c"])[np.digitize(z, [-0.7, 0.7])],
            **more,
        }
    ).write_csv(path)
    return path


def trained(path, target, settings=FAST, **options):
    others = {"churned", "bill", "tariff"} - {target} - set(options.get("drop", ()))
    options["drop"] = [*options.get("drop", ()), *others]
    with warnings.catch_warnings(action="ignore"):
        return train(open_table(path), ColumnOptions(target, **options), settings)


def auc(result):
    return result.tested.evaluation.scores["ROC AUC"].value


def kinds(schema):
    return {column.name: column.kind for column in schema.columns}


# -------------------------------------------------------------------------- many categories


def test_140_regions_improve_the_predictions(tmp_path):
    path = churn(tmp_path)
    with_regions, without = trained(path, "churned"), trained(path, "churned", drop=["region"])
    assert kinds(with_regions.schema)["region"] == "target-encoded"
    assert auc(with_regions) > auc(without) + 0.05
    (note,) = [note for note in with_regions.notes if "'region' (140 values)" in note]
    assert "--max-categories" in note


def test_identifiers_are_not_encoded(tmp_path):
    schema = trained(churn(tmp_path), "churned").schema
    assert (
        "1,200 distinct values in 1,200 rows, probably an identifier" in schema.left_out["customer"]
    )


@pytest.mark.parametrize("rows_per_value", [3, 4])
def test_text_with_few_rows_per_value_is_not_encoded(tmp_path, rows_per_value):
    values = [f"v{i % 100}" for i in range(100 * rows_per_value)]
    path = tmp_path / "t.csv"
    pl.DataFrame({"v": values, "x": range(len(values)), "y": np.arange(len(values)) % 2}).write_csv(
        path
    )
    assert ("v" in schema_of(path, "y").names) == (rows_per_value == 4)


def test_regions_without_influence_do_not_leak_the_target(tmp_path):
    """If rows were encoded with their own targets, the model would rely on the regions."""
    path = churn(tmp_path, strength=0.0)
    result, without = trained(path, "churned"), trained(path, "churned", drop=["region"])
    assert auc(result) > auc(without) - 0.03
    Z, y, present = labeled_rows(result.schema, open_table(path).read())
    crossed = encoded_for_training(result.model, Z, y, result.schema)
    (k,) = [i for i, name in enumerate(_names(result)) if name == "region"]
    assert abs(np.corrcoef(crossed[:, k], y == "yes")[0, 1]) < 0.1
    own = result.model[:-1].transform(Z)
    assert np.corrcoef(own[:, k], y == "yes")[0, 1] > 0.2
    assert present.all()


def _names(result):
    return list(result.model[:-1].get_feature_names_out())


def test_the_encoder_is_fitted_within_each_fold(tmp_path, monkeypatch):
    fitted = []
    original = train.__globals__["fitted_pipeline"]

    def spy(X, y, *rest):
        fitted.append((len(y), original(X, y, *rest)))
        return fitted[-1][1]

    monkeypatch.setitem(train.__globals__, "fitted_pipeline", spy)
    path = churn(tmp_path, n=600)
    trained(path, "churned", replace(FAST, max_iter=2, test_size=None, cv=3))
    assert fitted[0][0] == 600
    assert {count for count, _ in fitted[1:]} == {400}
    means = [model[1].named_transformers_["targets"][1].target_mean_ for _, model in fitted]
    assert len(set(means)) > 1


@pytest.mark.parametrize("target", ["churned", "bill", "tariff"])
def test_models_with_encoded_categories_are_restored_and_exported(tmp_path, target):
    result = trained(churn(tmp_path, n=600), target)
    X = features(result.schema, open_table(tmp_path / "churn.csv").read())
    X = X.with_columns(pl.Series("region", [None, "nowhere", *X["region"][2:]]))
    quadric.save(result.model, tmp_path / "m")
    loaded = quadric.load(tmp_path / "m")
    assert loaded.predict(X).tolist() == result.model.predict(X).tolist()
    pytest.importorskip("onnxruntime")
    from quadric.onnx import export
    from tests.support.onnx_graphs import run

    graph = export(loaded, dtype="float64")
    table = pd.DataFrame(X.to_dict(as_series=False)).fillna({"region": ""})
    out = run(graph, table, "float64")
    if target == "bill":
        np.testing.assert_allclose(out["variable"][:, 0], result.model.predict(X), atol=1e-9)
    else:
        expected = result.model.predict_proba(X)
        np.testing.assert_allclose(out["probabilities"], expected, atol=1e-9)


def test_a_stream_leaves_many_categories_out_and_says_so(tmp_path):
    path = churn(tmp_path)
    schema = schema_of(path, "churned", stream=True, drop=["bill", "tariff"])
    assert "more than 50 distinct values; --max-categories" in schema.left_out["region"]
    assert kinds(schema)["complains"] == "ordinal"


def test_max_categories_one_hot_encodes(tmp_path):
    options = {"most_categories": 200, "drop": ["bill", "tariff", "customer"]}
    assert kinds(schema_of(churn(tmp_path), "churned", **options))["region"] == "category"


def test_columns_with_many_categories_need_few_classes(tmp_path):
    path = churn(tmp_path, n=3000, code=[f"k{i % 60}" for i in range(3000)])
    assert "region" in schema_of(path, "code").left_out


# ------------------------------------------------------------------------------------ ordinals


@pytest.mark.parametrize(
    "scale",
    [
        "Strongly disagree, Disagree, Neither agree nor disagree, Agree, Strongly agree",
        "very dissatisfied, dissatisfied, neutral, satisfied, very satisfied",
        "NEVER, RARELY, SOMETIMES, OFTEN, ALWAYS",
        "poor, fair, good, very good, excellent",
        "Low, Medium, High",
        "XS, S, M, L, XL, XXL",
        "1 star, 2 stars, 3 stars, 10 stars",
        "★☆☆☆☆, ★★★☆☆, ★★★★★",
        "1 - not at all, 2 - somewhat, 3 - extremely",
        "not_important, important, very-important",
        "high school, Bachelor’s, master's, PhD",
    ],
)
def test_the_usual_scales_are_recognized(scale):
    values = scale.split(", ")
    assert ordered(reversed(values)) == tuple(values)
    assert ordered([*values[1:], values[0], "Don't know"]) == tuple(values)


@pytest.mark.parametrize(
    "values",
    ["red green blue", "low high", "a b c", "s m x", "low medium high purple", "2020 2021 2022"],
)
def test_other_categories_have_no_order(values):
    assert ordered(values.split()) == ()


def test_two_spellings_of_a_level_are_no_ranks_and_are_remarked(tmp_path):
    path = tmp_path / "t.csv"
    words = ["Low", "low", "Medium", "High"]
    path.write_text("c,n,y\n" + "".join(f"{words[i % 4]},{i % 5},{i % 3}\n" for i in range(120)))
    schema = schema_of(path, "y")
    assert {one.name: one.kind for one in schema.columns}["c"] == "category"
    (note,) = [note for note in schema.notes() if "only in their case" in note]
    assert "'Low' and 'low' in 'c'" in note


def test_no_scale_names_a_level_twice():
    text = " ".join(word for ranks in RANKS for word in ranks)
    assert text == text.lower()
    assert all(len(set(ranks.values())) >= 3 for ranks in RANKS)
    assert all("" not in ranks for ranks in RANKS)


def test_ordinals_are_one_input_in_their_order(tmp_path):
    result = trained(churn(tmp_path, n=600), "churned", drop=["region"])
    words = ["Never", "Rarely", "Sometimes", "Often", "Always"]
    column = next(one for one in result.schema.columns if one.name == "complains")
    assert (column.kind, column.categories) == ("ordinal", tuple(words))
    assert Schema.from_dict(result.schema.to_dict()) == result.schema
    (note,) = [one for one in result.notes if one.startswith("Ordinal")]
    assert "'complains' (Never < Rarely < Sometimes < Often < Always)" in note
    assert "--categorical" in note
    X = features(result.schema, open_table(tmp_path / "churn.csv").read())
    assert ModelView.of(result.model).orders == {"complains": words}
    assert dependence(result.model, X, ["complains"]).grids[0] == words
    said = str(explain(result.model, X))
    assert re.search(r"complains is Never = -1\.\d+, Rarely = -0\.\d+, Sometimes = ", said)


def test_missing_and_unknown_ordinals_are_imputed_with_the_mean_rank(tmp_path):
    result = trained(churn(tmp_path, n=600), "churned", drop=["region"])
    X = features(result.schema, open_table(tmp_path / "churn.csv").read())[:2]
    X = X.with_columns(pl.Series("complains", [None, "whatever"], dtype=pl.String))
    k = _names(result).index("complains")
    assert np.abs(result.model[:-1].transform(X)[:, k]).max() < 1e-12


def test_the_user_gives_or_removes_an_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("c,n,y\n" + "".join(f"{'zab'[i % 3]},{i % 3},{i % 2}\n" for i in range(60)))
    schema = schema_of(path, "y", ordinal=["c=z,a,b", "n=2,0,1"])
    assert {one.name: one.categories for one in schema.columns} == {
        "c": ("z", "a", "b"),
        "n": ("2", "0", "1"),
    }
    assert kinds(schema_of(path, "y")) == {"c": "category", "n": "number"}
    path = churn(tmp_path)
    options = {"drop": ["bill", "tariff"], "categorical": ["complains"]}
    assert kinds(schema_of(path, "churned", **options))["complains"] == "category"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("c", "must be a column and its categories in order"),
        ("c=z", "must be a column and its categories in order"),
        ("d=z,a", "there is no column 'd'"),
        ("c=z,a", "column 'c' contains 'b', which --ordinal does not list"),
        ("c=z,a,a,b", "lists a category of 'c' twice"),
        ("y=0,1", "'y' is the target and cannot be ordinal"),
    ],
)
def test_wrong_orders_are_refused(tmp_path, given, message):
    path = tmp_path / "t.csv"
    path.write_text("c,x,y\n" + "".join(f"{'zab'[i % 3]},{i},{i % 2}\n" for i in range(60)))
    with pytest.raises(TableError, match=message):
        schema_of(path, "y", ordinal=[given])


def test_an_order_on_the_command_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("c,x,y\n" + "".join(f"{'zab'[i % 3]},{i % 7},{i % 2}\n" for i in range(60)))
    options = ("--ordinal", "c=z,a,b", "--kind", "quadratic", "--alpha", 1, "--test-size", 0.2)
    done = command("train", path, "-t", "y", *options)
    assert "1 ordinal column" in done.stdout
    assert "'c' (z < a < b)" in done.stderr


def test_a_stream_scales_ordinals_by_the_moments_of_their_ranks(tmp_path):
    path = churn(tmp_path)
    schema = schema_of(path, "churned", drop=["bill", "tariff", "region"])
    Z = fitted_to_moments(schema).transform(features(schema, open_table(path).read()))
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(Z.std(axis=0), 1, atol=1e-9)


# ------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(300)],
            "contains dates, such as '2024-01-01'",
        ),
        (list(range(1, 301)), "contains row numbers, from 1 to 300"),
        ([f"C{i}" for i in range(300)], "300 distinct values in 300 rows, probably an identifier"),
        ([f"C{i // 5}" for i in range(6000)], "has 1,200 classes in 6,000 rows, for which"),
    ],
    ids=["dates", "row numbers", "text", "classes"],
)
def test_targets_that_cannot_be_predicted_are_refused_at_once(tmp_path, values, message):
    path = tmp_path / "t.csv"
    pl.DataFrame({"x": np.arange(len(values)) % 7, "y": values}).write_csv(path)
    with pytest.raises(TableError, match=message):
        schema_of(path, "y")


def test_unlikely_targets_are_remarked(tmp_path):
    path, rng = tmp_path / "t.csv", np.random.default_rng(0)
    n = 3000
    frame = {
        "x": rng.normal(size=n),
        "customer_id": rng.permutation(n),
        "code": [f"k{i % 1500}" for i in range(n)],
    }
    pl.DataFrame(frame).write_csv(path)
    (found,) = [
        one for one in schema_of(path, "customer_id").findings if one.kind == "identifier target"
    ]
    assert "'customer_id' is probably an identifier" in found.sentence
    (found,) = [
        one
        for one in schema_of(path, "code", task="classification").findings
        if one.kind == "many classes"
    ]
    assert "has 1,500 classes in 3,000 rows" in found.sentence
    assert not [
        one
        for one in schema_of(path, "customer_id", task="regression").findings
        if one.kind == "identifier target"
    ]
