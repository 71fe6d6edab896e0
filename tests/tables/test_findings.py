"""Findings: likely identifiers, numbers with a few texts, commas in numbers, coded classes."""

import json

import pytest

from quadric.apps.shell.tables._schema import Schema
from quadric.errors import TableError
from tests.support.tables import schema_of, write


def schema_with(tmp_path, columns, target="y", batch=10**6, **options):
    """Return the schema of a table with these columns and a target of two classes."""
    rows = len(next(iter(columns.values())))
    columns = {"z": [f"{i * 37 % 11 / 4}" for i in range(rows)]} | columns
    columns.setdefault("y", ["a", "b"] * (rows // 2))
    lines = ["|".join(columns)] + [
        "|".join(map(str, row)) for row in zip(*columns.values(), strict=True)
    ]
    return schema_of(write(tmp_path / "a.csv", "\n".join(lines) + "\n"), target, batch, **options)


def found(schema):
    return {finding.kind: finding.columns for finding in schema.findings}


LENGTHS = [f"{4 + i * 7 % 40 / 10}" for i in range(150)]


@pytest.mark.parametrize("batch", [20, 10**6])
def test_a_few_texts_among_numbers(tmp_path, batch):
    lengths = ["5.1cm" if i == 16 else value for i, value in enumerate(LENGTHS)]
    schema = schema_with(tmp_path, {"length": lengths}, batch=batch)
    assert found(schema) == {"mixed": ("length",)}
    assert "'length' (1 value; '5.1cm' in row 17)" in schema.notes()[0]
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert found(schema_with(tmp_path, {"length": LENGTHS})) == {}
    assert found(schema_with(tmp_path, {"length": lengths}, categorical=["length"])) == {}


def test_decimal_commas(tmp_path):
    commas = [value.replace(".", ",") for value in LENGTHS]
    many = [f"{i},{i % 10}" for i in range(150)]  # too many distinct values to be categories
    schema = schema_with(tmp_path, {"length": commas, "width": many})
    assert found(schema) == {"decimal comma": ("length", "width")}
    note = schema.notes()[0]
    assert note.startswith("Numbers with decimal commas are read as text: 'length' (such as '4,0' ")
    assert note.endswith("Use --decimal , to read such values as numbers.")
    words = [f"{i % 3},{'x' if i % 2 else 5}" for i in range(150)]
    assert found(schema_with(tmp_path, {"words": words})) == {}


def test_commas_between_thousands_are_reported(tmp_path):
    prices = ["950", "1,234", "12,500", "1,234,567"] * 30
    schema = schema_with(tmp_path, {"price": prices})
    assert found(schema) == {"thousands": ("price",)}
    assert "Use --thousands ," in schema.notes()[0]


@pytest.mark.parametrize("task", [None, "regression"])
def test_a_target_with_decimal_commas(tmp_path, task):
    commas = [f"{i},{i % 10}" for i in range(150)]
    with pytest.raises(TableError, match=r"'0,0'.* Use --decimal , to read such values as numbers"):
        schema_with(tmp_path, {"price": commas}, target="price", task=task)


def test_a_table_of_which_only_decimal_commas_are_left_is_refused(tmp_path):
    commas = [f"{i},{i % 10}" for i in range(150)]
    with pytest.raises(TableError, match=r"no column is left to learn from .* Use --decimal ,"):
        schema_with(tmp_path, {"price": commas}, drop=["z"])


@pytest.mark.parametrize(
    ("name", "is_identifier"),
    [
        ("customer_id", True),
        ("customerId", True),
        ("ID", True),
        ("zip", True),
        ("Zip Code", False),
        ("post_code", True),
        ("Unnamed: 0", True),
        ("order-key", True),
        ("humid", False),
        ("acid", False),
        ("monkey", False),
        ("width", False),
    ],
)
def test_identifiers_by_name(tmp_path, name, is_identifier):
    values = [i * 7919 % 1009 for i in range(150)]
    assert found(schema_with(tmp_path, {name: values})) == (
        {"identifier": (name,)} if is_identifier else {}
    )
    assert found(schema_with(tmp_path, {name: values}, drop=[name])) == {}
    fractions = [value + 0.5 for value in values]
    assert found(schema_with(tmp_path, {name: fractions})) == {}


@pytest.mark.parametrize("batch", [1, 7, 10**6])
def test_row_numbers_are_reported_as_identifiers(tmp_path, batch):
    numbers = list(range(5, 65))
    schema = schema_with(tmp_path, {"a b": numbers}, batch=batch)
    assert found(schema) == {"identifier": ("a b",)}
    assert "use --drop 'a b'" in schema.notes()[0]
    numbers[30:32] = numbers[31], numbers[30]
    assert found(schema_with(tmp_path, {"a b": numbers}, batch=batch)) == {}


def test_classes_coded_as_integers(tmp_path):
    codes = [1 + i % 26 for i in range(260)]
    schema = schema_with(tmp_path, {"letter": codes}, target="letter")
    assert (schema.task, found(schema)) == ("regression", {"integer target": ("letter",)})
    assert "has 26 distinct integers" in schema.notes()[0]
    schema = schema_with(tmp_path, {"letter": codes}, target="letter", task="classification")
    assert (schema.classes, schema.findings) == (tuple(range(1, 27)), ())
    schema = schema_with(tmp_path, {"letter": codes}, target="letter", task="regression")
    assert schema.findings == ()


@pytest.mark.parametrize("labels", ["{}", "c{}"])
def test_thousands_of_classes_are_read_on_request(tmp_path, labels):
    values = [labels.format(i % 3000) for i in range(6000)]
    schema = schema_with(tmp_path, {"c": values}, target="c", task="classification")
    assert len(schema.classes) == 3000
    assert schema.class_counts == (2,) * 3000
    often = schema_with(tmp_path, {"c": [f"c{i % 500}" for i in range(2500)]}, target="c")
    assert len(often.classes) == 500
    if labels == "c{}":
        with pytest.raises(TableError, match=r"3,000 distinct .* use --task classification"):
            schema_with(tmp_path, {"c": values}, target="c")


def test_a_schema_with_wrong_or_missing_findings_is_refused(tmp_path):
    state = schema_with(tmp_path, {"id": range(150)}).to_dict()
    assert state["findings"][0]["kind"] == "identifier"
    with pytest.raises(ValueError, match="'kind' in a finding is not valid"):
        Schema.from_dict(state | {"findings": [state["findings"][0] | {"kind": "rumor"}]})
    del state["findings"]
    with pytest.raises(ValueError, match="the schema has missing or unknown fields: findings"):
        Schema.from_dict(state)
