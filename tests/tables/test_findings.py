"""Findings: likely identifiers, numbers with a few texts, coded classes; forms of numbers."""

import json
import re
import shlex

import pytest

from quadric.apps.shell.tables import TableFormat, open_table, split_names
from quadric.apps.shell.tables._schema import Schema, features
from quadric.errors import TableError
from tests.support.tables import schema_of, schema_of_source, write


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
    assert schema.notes()[0].endswith("use --missing-values length=5.1cm.")
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert found(schema_with(tmp_path, {"length": LENGTHS})) == {}
    assert found(schema_with(tmp_path, {"length": lengths}, categorical=["length"])) == {}


@pytest.mark.parametrize("batch", [20, 10**6])
@pytest.mark.parametrize(
    ("values", "form", "first", "said"),
    [
        ([f"{i % 9},{i % 10}" for i in range(150)], (",", "", ""), 0.0, "decimal mark ','"),
        (["950", "1,234", "1,234,567"] * 50, (".", ",", ""), 950.0, "thousands separator ','"),
        (["1 950", "34", "1 234 567,5"] * 50, (",", " ", ""), 1950.0, "separator ' '"),
        (["1'950", "34.5", "1\u2019234"] * 50, (".", "'", ""), 1950.0, 'separator "\'"'),
        (["1.950", "34", "1.234.567"] * 50, (",", ".", ""), 1950.0, "separator '.'"),
        (["$131,066.03", "-$5", "$-1.5"] * 50, (".", ",", "$"), 131066.03, "unit $"),
        (["12,50 EUR", "7", "1.000,25 EUR"] * 50, (",", ".", "EUR"), 12.5, "unit EUR"),
        (["12.9%", "7 %", "-3%"] * 50, (".", "", "%"), 12.9, "unit %"),
        ([f"{i % 90 + 7}%" for i in range(150)], (".", "", "%"), 7.0, "unit %"),
        (["€5", "€12", "€1234"] * 50, (".", "", "€"), 5.0, "unit €"),
    ],
)
def test_money_percent_and_thousands_are_numbers(tmp_path, values, form, first, said, batch):
    schema = schema_with(tmp_path, {"price": values}, batch=batch)
    (column,) = [one for one in schema.columns if one.name == "price"]
    assert (column.kind, column.form) == ("number", form)
    assert any(
        note.startswith("Read as numbers: 'price'") and said in note for note in schema.notes()
    )
    assert features(schema, open_table(tmp_path / "a.csv").read())["price"][0] == first
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    target = schema_with(tmp_path, {"price": values}, "price", batch, task="regression")
    assert target.target_form == form


@pytest.mark.parametrize(
    "values",
    [
        ["$5", "7 EUR", "$9"] * 50,  # two currencies
        ["5%", "0.05", "7%"] * 50,  # perhaps the same number
        ["5,1", "x5", "y"] * 50,
        ["1,23,4", "5,6", "7,8,9"] * 50,
    ],
)
def test_values_that_may_not_be_the_same_kind_of_number_remain_text(tmp_path, values):
    schema = schema_with(tmp_path, {"price": values})
    assert [one.kind for one in schema.columns if one.name == "price"] == ["category"]


@pytest.mark.parametrize("target", ["y", "price"])
def test_a_comma_that_may_be_either_mark_is_refused(tmp_path, target):
    columns = {"price": ["1,234", "5,678"] * 40}
    message = r"'price' contains numbers such as '1,234'.* Use --decimal , or --thousands ,"
    advice = (
        r" to choose\.$"
        if target == "price"
        else r" to choose \(or --drop or --categorical for this column\)\.$"
    )
    with pytest.raises(TableError, match=message + advice):
        schema_with(tmp_path, columns, target)
    assert schema_with(tmp_path, columns, drop=["price"]).names == ["z"]
    columns["price"][0] = "0,125"  # thousands do not begin with 0
    assert schema_with(tmp_path, columns).columns[1].form == (",", "", "")


def test_a_point_beside_a_unit_that_may_be_either_mark_is_refused(tmp_path):
    columns = {"z": [*range(5)] * 24, "price": ["1.234 €", "5.678 €", "99 €"] * 40}
    message = "'1.234 €', whose point may be .* Use --thousands , or --decimal , --thousands . to"
    with pytest.raises(TableError, match=message):
        schema_with(tmp_path, columns)
    for marks, price in ((".,", 1.234), (",.", 1234.0)):
        source = open_table(tmp_path / "a.csv", TableFormat(None, *marks))
        schema = schema_of_source(source, "y")
        assert features(schema, source.read())["price"][0] == price
    columns["price"][0] = "1.2 €"
    assert schema_with(tmp_path, columns).columns[1].form == (".", "", "€")


@pytest.mark.parametrize("odd", ["-", "n. a.", "1,2,x"])
def test_the_option_for_a_value_among_many_numbers_is_named(tmp_path, odd):
    columns = {"x": [odd, *(f"{i / 7:.4f}" for i in range(199))]}
    with pytest.raises(TableError) as caught:
        schema_with(tmp_path, columns)
    (option,) = re.findall(r"--missing-values (.*) if this is a missing value", str(caught.value))
    (text,) = shlex.split(option)
    schema = schema_with(tmp_path, columns, missing_values=split_names(text))
    assert [(one.kind, one.missing) for one in schema.columns] == [("number", 0), ("number", 1)]


@pytest.mark.parametrize("batch", [7, 10**6])
@pytest.mark.parametrize("other", ["5", "2024-01-01"])  # with dates, all columns are read again
def test_points_of_plain_numbers_that_may_separate_thousands(tmp_path, other, batch):
    prices = [f"{1000 + 370 * i:,}".replace(",", ".") for i in range(40)]
    columns = {"price": [*prices, *(str(i * 31 % 997) for i in range(20))]}
    columns["o"] = [
        other.replace("5", str(i)).replace("-01", f"-{i % 12 + 1:02d}") for i in range(60)
    ]
    schema = schema_with(tmp_path, columns, batch=batch)
    assert found(schema)["thousands"] == ("price",)
    assert "--decimal , --thousands ." in schema.notes()[0]
    columns["price"][3] = "1.25"  # no group of three digits
    assert "thousands" not in found(schema_with(tmp_path, columns, batch=batch))
    columns["price"][3] = "1234"  # would be written 1.234
    assert "thousands" not in found(schema_with(tmp_path, columns, batch=batch))
    columns["price"] = [f"{1 + i * 37 % 60 + i % 991 / 1000:.3f}" for i in range(60)]
    assert "thousands" not in found(schema_with(tmp_path, columns, batch=batch))


@pytest.mark.parametrize("batch", [7, 10**6])
def test_a_last_row_with_totals(tmp_path, batch):
    amounts = [round(20 + 17.37 * (i * 41 % 60), 2) for i in range(60)]
    total = round(sum(amounts), 2)
    columns = {"amount": [*amounts, total], "x": [*range(60), ""], "y": [*["a", "b"] * 30, "a"]}
    schema = schema_with(tmp_path, columns, batch=batch)
    assert found(schema)["total"] == ("amount",)
    assert "its row is probably a total. Remove this row" in schema.notes()[0]
    assert "total" not in found(schema_with(tmp_path, columns, batch=batch, drop=["amount"]))
    columns["amount"][-1] *= 1.001
    assert "total" not in found(schema_with(tmp_path, columns, batch=batch))
    money = {"y": [f"${value:,.2f}" for value in [*amounts, total]], "x": [*range(60), 7]}
    assert found(schema_with(tmp_path, money, batch=batch))["total"] == ("y",)


@pytest.mark.parametrize(
    "values", [[0] * 58 + [1, 1], [0] * 60, [2**i for i in range(59)] + [2**59 - 1], [5, 7] * 30]
)
def test_rows_that_are_no_totals(tmp_path, values):
    assert "total" not in found(schema_with(tmp_path, {"n": values, "x": range(60)}))


@pytest.mark.parametrize("batch", [5, 10**6])
def test_words_that_are_read_as_missing(tmp_path, batch):
    pain = ["None", "Mild", "Moderate", "Severe"] * 20
    schema = schema_with(tmp_path, {"pain": pain}, batch=batch)
    assert found(schema) == {"word": ("pain",)}
    assert "Read as missing values: 'None' in 'pain' (20 values)" in schema.notes()[0]
    target = schema_with(tmp_path, {"y": pain}, batch=batch)
    assert found(target) == {"word": ("y",)}
    place = ["NA", "EU", "", "AS"] * 20
    assert found(schema_with(tmp_path, {"place": place}, batch=batch)) == {"word": ("place",)}
    place = ["NA", "EU", "AF", "AS"] * 20  # a category of its own
    assert found(schema_with(tmp_path, {"place": place}, batch=batch)) == {}
    assert found(schema_with(tmp_path, {"x": ["NA", "1", "2.5", "0"] * 20}, batch=batch)) == {}


@pytest.mark.parametrize(
    ("name", "is_identifier"),
    [
        ("customer_id", True),
        ("customerId", True),
        ("ID", True),
        ("zip", True),
        ("Zip Code", True),
        ("card_number", True),
        ("row number", True),
        ("code", True),
        ("decode", False),
        ("number", False),
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
