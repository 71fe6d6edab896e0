"""The section of the report about the contributions of the inputs."""

from itertools import product as product_of

import numpy as np
import polars as pl
import pytest

from quadric import Network
from quadric.apps.shell._report_contributions import contributions_of
from quadric.apps.shell.tables import OpenedModel, TableNetwork
from quadric.core import Quadratic
from quadric.errors import MemoryLimitError

NAMES = ["a", "b", "c"]


def opened(last, outputs, hidden=(), names=NAMES):
    shape = [*hidden, ("quadratic", outputs, last)]
    return opened_network(Network.create(len(names), shape, init="normal", scale=1.0, rng=0), names)


def opened_network(network, names=NAMES):
    model = TableNetwork(network, {"columns": list(names)})
    return OpenedModel(model, model.schema, None)


def rows_of(count, names=NAMES):
    X = np.random.default_rng(1).normal(size=(count, len(names)))
    return pl.DataFrame(dict(zip(names, X.T, strict=True)))


def test_the_bars_have_hand_worked_sizes():
    # x1 x2 + 2 x3 on the corners of a box: x1 x2 is +-6, of which x1 and x2 get half each
    product = Quadratic(W=[[0.0, 0.0, 2.0]], b=[1.0], Q=[[[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]]])
    model = opened_network(Network([product], ["identity"]))
    corners = np.array(list(product_of((-2.0, 2.0), (-3.0, 3.0), (-1.0, 1.0))))
    section, why = contributions_of(model, pl.DataFrame(corners, schema=NAMES, orient="row"), 2000)
    assert why == ""
    found = [(bar.name, float(bar.size), round(bar.percent)) for bar in section.inputs]
    assert found == [("a", 3, 100), ("b", 3, 100), ("c", 2, 67)]
    assert [(bar.name, float(bar.size)) for bar in section.pairs] == [("a × b", 6)]


def test_a_typical_row_has_the_median_score_of_its_predicted_class():
    model, X = opened("softmax", 4), rows_of(101)
    section, _ = contributions_of(model, X, 2000)
    logits = model.model.network_.logits(X.to_numpy())
    predicted = logits.argmax(axis=1)
    first, second = np.argsort(-np.bincount(predicted, minlength=4), kind="stable")[:2]
    scores = logits - logits.mean(axis=1, keepdims=True)
    for row, k in zip(section.rows, (first, second), strict=True):
        assert (row.score, row.title) == (k, f"Typical row that is predicted as {k}")
        assert predicted[row.index] == k
        same = scores[predicted == k, k]
        below = (same < scores[row.index, k]).sum()
        assert below == len(same) // 2
        reached = section.caption(row).partition("that of the row, ")[2].split(". ")[0]
        assert float(reached) == pytest.approx(scores[row.index, k], rel=1e-3)


def test_rows_at_the_quartiles_are_drawn_for_predicted_numbers():
    model, X = opened("identity", 1), rows_of(101)
    section, _ = contributions_of(model, X, 2000)
    y = model.model.predict(X)
    assert [(y < y[row.index]).sum() for row in section.rows] == [25, 75]
    assert section.sample == "Means of absolute values over 101 rows."


def test_a_sample_and_incomplete_rows_are_stated():
    model, X = opened("identity", 1), rows_of(50)
    gaps = X.with_columns(a=pl.when(pl.int_range(pl.len()) < 10).then(None).otherwise(pl.col("a")))
    section, _ = contributions_of(model, gaps, 30)
    assert len(section.found) == 30
    assert section.sample == (
        "Means of absolute values over a random sample of 30 rows out of 40 rows without missing "
        "values; the table has 50 rows."
    )
    assert contributions_of(model, gaps[:10], 30) == (
        None,
        "every row of the table has a missing value.",
    )


def test_interactions_of_many_inputs_are_averaged_over_fewer_rows(monkeypatch):
    model, X = opened("identity", 1), rows_of(40)
    whole, _ = contributions_of(model, X, 2000)
    monkeypatch.setattr("quadric.apps.shell._report_contributions.MOST_ENTRIES", 90)
    section, _ = contributions_of(model, X, 2000)
    assert (whole.paired, section.paired) == (40, 10)
    assert section.inputs == whole.inputs
    sizes = 2 * np.abs(whole.found.interactions()[:10]).mean(axis=0)[np.triu_indices(3, 1)]
    found = [float(bar.size) for bar in section.pairs]
    assert found == pytest.approx(sorted(sizes, reverse=True), rel=1e-3)


def test_a_model_that_does_not_fold_has_no_section_but_a_reason(monkeypatch):
    model = opened("softmax", 3, hidden=[("linear", 4, "tanh")])
    assert contributions_of(model, rows_of(5), 2000) == (
        None,
        "the model folds to 2 layers, so its Shapley values have no closed form.",
    )
    model = opened("identity", 1)

    def too_large(*_, **__):
        raise MemoryLimitError("too large.", "Pass fewer rows.", needed=2, limit=1)

    monkeypatch.setattr("quadric.apps.shell._report_contributions.attribute", too_large)
    section, why = contributions_of(model, rows_of(50), 2000)
    assert (section, why) == (None, "too large. Pass fewer rows.")


@pytest.mark.parametrize("width", [7.2, 4.0])
def test_long_names_leave_room_for_the_bars(width):
    names = ["a name $ of a column " * 5, "b" * 80, "income in thousands"]
    section, _ = contributions_of(opened("identity", 1, names=names), rows_of(20, names), 2000)
    figure = section.waterfall(section.rows[0], width)
    figure.draw_without_rendering()  # warns if the axes collapse
    (ax,) = figure.axes
    assert ax.get_position().width > 0.4
    lines = [line for label in ax.get_yticklabels() for line in label.get_text().split("\n")]
    assert max(map(len, lines)) <= 5 * width
    assert sum(" = " in f" {line}" for line in lines) == 3  # the values are complete
