"""`TableColumns`: values that it reads, restores that it refuses, and the view of such a model."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from quadric import QuadraticRegressor, load, save
from quadric.errors import ModelFileError, TableError
from quadric.models import ModelView, NumberForm, TableColumns, numbers
from quadric.models._facts import Limits
from quadric.models._saved_classes import restore
from quadric.models._table_columns import TABLE_COLUMNS
from tests.support.fitted_models import make

PRICE = {"name": "price", "kind": "number", "form": [".", ",", "$"]}
COLOR = {"name": "color", "kind": "category", "numbers": False}
DAY = {"name": "day", "kind": "date", "order": "ymd", "parts": {"hour": [0.0, 23.0]}}


@pytest.mark.parametrize(
    ("text", "form", "number"),
    [
        ("12", (".", "", ""), 12),
        ("+1.5e3", (".", "", ""), 1500),
        ("True", (".", "", ""), 1),
        ("1_000", (".", "", ""), None),
        ("0x10", (".", "", ""), None),
        ("\u0661\u0662", (".", "", ""), None),  # Arabic digits
        ("1,234,567.8", (".", ",", ""), 1234567.8),
        ("12,34", (".", ",", ""), None),
        ("1,2345", (".", ",", ""), None),
        ("01,234", (".", ",", ""), None),
        ("1.234,5", (",", ".", ""), 1234.5),
        ("1.5", (",", ".", ""), None),
        ("1\u202f234,5", (",", " ", ""), 1234.5),
        ("-$1,000", (".", ",", "$"), -1000),
        ("$-1,000", (".", ",", "$"), -1000),
        ("-$-1", (".", ",", "$"), None),
        ("$5$", (".", ",", "$"), None),
        ("5", (".", ",", "$"), 5),
        ("5 EUR", (".", ",", "$"), None),
        ("CHF 1'234.50", (".", "'", "CHF"), 1234.5),
        ("\u22125 %", (".", "", "%"), -5),
        ("5", (".", "", "%"), None),
        ("$", (".", "", "$"), None),
        (",", (",", "", ""), None),
    ],
)
def test_numbers_are_read_in_their_form_only(text, form, number):
    (found,) = numbers([text], NumberForm(*form))
    assert found == number or (number is None and np.isnan(found))


def test_reading_twice_and_in_parts_changes_nothing():
    step = TableColumns([PRICE, COLOR, DAY]).fit()
    X = [["$1,000.5", " red", "2024-01-01 07:30"], ["", "N/A", None], ["7", "01", "2024-05-05"]]
    once = step.read(X)
    Z = np.array(list(once.values()), dtype=object).T
    again = step.read(Z)
    assert again["price"].tolist()[::2] == once["price"].tolist()[::2] == [1000.5, 7]
    assert again["color"] == once["color"] == ["red", None, "01"]
    assert np.array_equal(step.transform(Z)[[0, 2]], step.transform(X)[[0, 2]])
    assert clone(step).fit().transform(X[:1]).tolist() == [[1000.5, "red", 7.5]]
    with pytest.raises(TableError, match="'price' must contain numbers, but row 11 contains 'x'"):
        step.read([["x", "red", ""]], start=10)


def facts_of(given, **changes):
    """The facts of a step in which every column has a declaration of its own."""
    facts = {
        "feature_names_in_": [column["name"] for column in given],
        "declarations": [{key: column[key] for key in column if key != "name"} for column in given],
        "declared_by": np.arange(len(given)),
    } | changes
    if facts["feature_names_in_"] is not None:
        facts["feature_names_in_"] = np.array(facts["feature_names_in_"], dtype=object)
    return facts


LIMITS = Limits(10**5, 10**5)


def restored(given, limits=LIMITS, **changes):
    return restore("TableColumns", {}, facts_of(given, **changes), limits)


@pytest.mark.parametrize(
    "columns",
    [
        [PRICE | {"form": [".", ".", ""]}],
        [PRICE | {"form": [".", ",", "doubloons"]}],
        [PRICE | {"form": [".", ","]}],
        [PRICE | {"form": [";", "", ""]}],
        [PRICE | {"kind": "text"}],
        [PRICE | {"kind": ["number"]}],
        [PRICE | {"more": 1}],
        [PRICE | {"missing": "none"}],
        [COLOR | {"numbers": 1}],
        [DAY | {"order": "ydm"}],
        [DAY | {"order": ["ymd"]}],
        [DAY | {"parts": {}}],
        [DAY | {"parts": {"minute": [0.0, 1.0]}}],
        [DAY | {"parts": {"hour": [1.0, 0.0]}}],
        [DAY | {"parts": {"hour": [0.0, float("nan")]}}],
        [DAY | {"parts": {"hour": [0.0, 10.0**200]}}],
        [DAY | {"parts": {"hour": [0.0]}}],
    ],
)
def test_columns_that_are_not_valid_are_not_restored(columns):
    with pytest.raises(ModelFileError, match="declarations of TableColumns must be a list of col"):
        restored(columns)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"declarations": "price"}, "a list of columns"),
        ({"declarations": ["price", "color"]}, "with valid fields"),
        ({"declarations": [PRICE, COLOR]}, "with valid fields"),  # with names
        ({"declared_by": None}, "a vector of 2 integers"),
        ({"declared_by": [0, 1]}, "a vector of 2 integers"),
        ({"declared_by": np.array([0.0, 1.0])}, "a vector of 2 integers"),
        ({"declared_by": np.array([0, 1, 1])}, "a vector of 2 integers"),
        ({"declared_by": np.array([0, 2])}, "the places of all declarations"),
        ({"declared_by": np.array([-1, 0])}, "the places of all declarations"),
        ({"declared_by": np.array([0, 0])}, "the places of all declarations"),
        ({"feature_names_in_": ["price", "price"]}, "the distinct names"),
        ({"feature_names_in_": ["price", 5]}, "the names of the columns"),
        ({"feature_names_in_": []}, "the names of the columns"),
        ({"feature_names_in_": None}, "the names of the columns"),
        ({"feature_names_in_": ["price"]}, "a vector of 1 integers"),
        ({"columns": [PRICE, COLOR]}, "no fitted attribute 'columns'"),
    ],
)
def test_declarations_that_do_not_fit_the_names_are_refused(changes, match):
    with pytest.raises(ModelFileError, match=match):
        restored([PRICE, COLOR], **changes)
    assert restored([PRICE, COLOR]).transform([["$5", "red"]]).tolist() == [[5.0, "red"]]


def test_columns_beyond_what_the_size_of_a_file_allows_are_refused():
    columns = [PRICE | {"name": f"x{j}"} for j in range(20)]
    assert restored(columns, Limits(10**5, 10**5, 20)).columns == columns
    with pytest.raises(ModelFileError, match="at most 19 names"):
        restored(columns, Limits(10**5, 10**5, 19))


def test_equal_declarations_are_stored_once_and_restored_in_their_order():
    twice = [DAY, PRICE, COLOR, PRICE | {"name": "cost"}, COLOR | {"name": "hue", "numbers": True}]
    facts = TABLE_COLUMNS.facts(TableColumns(twice).fit())
    assert len(facts["declarations"]) == 4
    assert facts["declared_by"].tolist() == [0, 1, 2, 1, 3]
    assert restored(twice, **facts).columns == twice


@pytest.mark.slow
def test_a_model_for_thousands_of_columns_is_saved_and_loaded(tmp_path):
    """Once, the file had a description of every column, more than the memory limit allows."""
    n = 3000
    plain = [{"name": f"x{j}", "kind": "number", "form": [".", "", ""]} for j in range(n)]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, n)), rng.normal(size=8)
    model = make_pipeline(
        TableColumns(plain), QuadraticRegressor((), layer_kinds="linear", max_iter=1)
    )
    with warnings.catch_warnings(action="ignore"):  # stopped early
        model.fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again[0].columns == plain
    assert np.array_equal(again.predict(X), model.predict(X))


def test_the_inputs_of_a_model_are_the_columns_after_reading():
    model, X = make("table columns")
    view = ModelView.of(model)
    assert view.input_names == ["size", "colour", "shop", "weight"]
    assert model.feature_names_in_.tolist() == view.input_names
    rest = view.after_reading
    assert np.array_equal(rest.model.predict_proba(view.read(X)), model.predict_proba(X))
    assert np.array_equal(rest.coordinates.reach(view.read(X)), view.coordinates.reach(X))
