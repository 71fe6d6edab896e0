"""The committed verdicts of experiments follow from their committed numbers.

tests/paper/test_claims.py, test_ablation.py and test_studies.py do this for the MNIST table, the
printed forms and the studies.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from quadric.apps.paper import (
    Context,
    _clusters as clusters,
    _complexity as complexity,
    _theorem as theorem,
    _timing as timing,
    _xor as xor,
)

RESULTS = Path(__file__).parents[2] / "results"
with (RESULTS / "claims.csv").open(encoding="utf-8") as claims_file:
    COMMITTED = {row["id"]: row for row in csv.DictReader(claims_file)}


def value_of(text):
    """Return the value of a cell of a table: a number, a truth value or text."""
    words = {"True": True, "False": False, "": None}
    if text in words:
        return words[text]
    try:
        return float(text)
    except ValueError:
        return text


def table(name):
    """Return the rows of a committed table as dicts."""
    with (RESULTS / "experiments" / f"{name}.csv").open(encoding="utf-8") as file:
        return [{key: value_of(text) for key, text in row.items()} for row in csv.DictReader(file)]


def check(claims, *, words=True):
    """Compare claims with the committed ones: the verdicts and, with `words`, the findings."""
    for claim in claims:
        row = COMMITTED[claim.id]
        assert (claim.verdict, claim.paper_verdict) == (
            row["verdict on ours"],
            row["verdict on the paper"],
        ), claim.id
        if words:
            assert (claim.ours, claim.paper) == (row["ours"], row["the paper"])


def test_xor_gives_the_committed_verdicts_again():
    check(xor.run(Context(full=True)).claims)


def test_times():
    best = {row["model"].lower(): np.array([row["seconds"]]) for row in table("timing")}
    claims = timing.claims_of(best, compared=True)
    check(claims, words=False)
    for claim in claims:  # the ratio of the best times
        ratio = claim.ours.split(" (")[0]
        assert COMMITTED[claim.id]["ours"].startswith(ratio)


def test_counts_and_forms():
    growth = [tuple(row.values()) for row in table("growth")]
    forms = [tuple(row.values()) for row in table("forms")]
    check(complexity.claims_of(complexity.multiplications(10, 30), growth))
    check(complexity.form_claims(forms), words=False)


def test_the_cluster_theorem():
    check(theorem.claims_of(table("theorem"), support=7))


@pytest.mark.slow
def test_six_clusters():
    medians = {name: tuple(values) for name, *values in map(dict.values, table("clusters"))}
    kinds = [list(row.values())[1:] for row in table("cluster_boundaries")]
    check(clusters.quadratic_claims(medians, kinds, clusters.EPOCHS))
    check(clusters.linear_claims(medians, seed=0))
