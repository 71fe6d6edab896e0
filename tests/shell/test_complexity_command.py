"""`quadric complexity --inputs N --neurons M`: the paper's Tables I and II for a layer."""

import json

import pytest

from quadric.reference import COUNTS, EXTRA_MEMORY, PARAMETERS, PRINTED_COUNTS
from tests.support.commands import command


def tables(inputs, neurons, *options):
    result = command("complexity", "--inputs", str(inputs), "--neurons", str(neurons), *options)
    assert result.returncode == 0, result.stderr
    return result.stdout


def row(text, *start):
    """Return the numbers of the row that begins with the given cells: printed, counted, mark."""
    (cells,) = (
        cells
        for cells in ([cell.strip() for cell in line.split("│")[1:-1]] for line in text.split("\n"))
        if cells[: len(start)] == list(start)
    )
    return cells[len(start) :]


def test_the_papers_tables_for_its_last_layer():
    text = tables(30, 10)
    assert row(text, "QNN", "forward") == ["5 250", "9 300", "≠ -4 050"]
    assert row(text, "QNN", "update") == ["5 290", "5 880", "≠ -590"]
    assert row(text, "RPQNN", "update") == ["1 280", "680", "≠ 600"]
    assert row(text, "QNN", "memory") == ["5 250", "4 950", "≠ 300"]
    assert row(text, "RPQNN", "parameters, abstract") == ["300", "310", "≠ -10"]
    assert row(text, "RPQNN", "parameters, section IV") == ["600", "310", "≠ 290"]
    for equal in (
        ("ANN", "forward"),
        ("ANN", "backward"),
        ("QNN", "backward"),
        ("RPQNN", "forward"),
        ("RPQNN", "memory"),
        ("QNN", "parameters"),
    ):
        printed, counted, mark = row(text, *equal)
        assert printed == counted
        assert not mark
    assert "RPQNN update: printed 3mn" in text
    explained = [line for line in text.split("\n") if line.startswith(("ANN", "QNN", "RPQNN"))]
    assert text.count("≠") == len(explained) == 7


def test_counts_that_are_equal_for_these_sizes_are_not_explained():
    text = tables(10, 10)  # m = n: both ways to count the update of the ANN are equal
    assert row(text, "ANN", "update") == ["120", "120", ""]
    assert "ANN update" not in text


@pytest.mark.parametrize(("inputs", "neurons"), [(1, 1), (30, 10), (784, 30), (4000, 4000)])
def test_the_tables_fit_80_columns(inputs, neurons):
    lines = tables(inputs, neurons).split("\n")
    assert max(map(len, lines)) <= 80
    assert len(lines) > 20


def test_large_numbers_have_spaces_between_thousands():
    text = tables(784, 30)
    assert row(text, "QNN", "forward")[:2] == ["9 278 640", "18 463 200"]
    assert "," not in "".join(row(text, "QNN", "update"))


def test_json_has_the_formulas_values():
    m, n = 4, 7
    content = json.loads(tables(n, m, "--json"))
    assert (content["inputs"], content["neurons"]) == (n, m)
    found = {(line["kind"], line["quantity"]): line for line in content["counts"]}
    assert len(found) == len(content["counts"]) == 9 + 5
    for (kind, step), formula in COUNTS.items():
        extra = 0 if kind == "ann" else PRINTED_COUNTS[kind, f"extra {step}"](m, n)
        assert found[kind, step]["printed"] == PRINTED_COUNTS["ann", step](m, n) + extra
        assert found[kind, step]["counted"] == formula(m, n)
    for kind in ("qnn", "rpqnn"):
        assert found[kind, "extra memory"]["counted"] == EXTRA_MEMORY[kind](m, n)
    extra = PARAMETERS["rpqnn"](m, n) - PARAMETERS["ann"](m, n)
    assert found["rpqnn", "extra parameters, abstract"]["counted"] == extra
    for line in found.values():
        assert line["differs"] == (line["printed"] != line["counted"])
        assert line["why"] or not line["differs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--inputs", "30"], "--inputs and --neurons belong together"),
        (["--neurons", "10"], "--inputs and --neurons belong together"),
        (["30", "10", "--inputs", "30"], "--inputs and --neurons belong together"),
        (["30", "10", "--inputs", "30", "--neurons", "10"], "cannot be combined with sizes"),
        (["--inputs", "3", "--neurons", "1", "--kinds", "linear"], "cannot be combined with sizes"),
        (["--inputs", "3", "--neurons", "1", "--nonzero", "0.5"], "cannot be combined with sizes"),
        (["--inputs", "0", "--neurons", "1"], "greater than or equal to 1"),
        ([], "or --inputs and --neurons"),
    ],
)
def test_options_that_do_not_belong_together(arguments, message):
    result = command("complexity", *arguments)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert not result.stdout
