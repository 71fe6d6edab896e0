"""The list of claims: complete, consistent, and judged in the way that it names."""

import ast
import csv
import re
from pathlib import Path

import pytest

from quadric.apps.paper import EXPERIMENTS, STUDIES
from quadric.apps.paper._claims import (
    COLUMNS,
    KINDS,
    Claim,
    Verdict,
    document,
    judge,
    statements,
)
from quadric.apps.paper._mnist_claims import claims_of, compare, paper_table
from quadric.apps.paper._statistics import sample_of
from results.write import (
    RECORDED,
    RECORDED_COLUMNS,
    markdown_page,
    merged,
    read_mnist_runs,
    read_rows,
    recorded_rows,
)

ROOT = Path(__file__).parents[2]
EXPERIMENT_FILES = sorted((ROOT / "src/quadric/apps/paper").rglob("*.py"))
STATEMENTS = list(statements().values())


@pytest.fixture(scope="module")
def committed():
    return read_rows((ROOT / "results" / "claims.csv").read_text().splitlines())


# ---- the list -----------------------------------------------------------------------------------


def test_every_sentence_has_a_claim_or_a_reason_for_having_none():
    text = document()["text"]
    places = [
        f"{section} {paragraph}.{sentence}"
        for section, counts_of in text["paragraphs"].items()
        for paragraph, count in enumerate(counts_of, start=1)
        for sentence in range(1, count + 1)
    ] + text["numbered"]
    assert len(places) == len(set(places))
    with_claim = {place for one in STATEMENTS for place in one.where}
    without = [place for some in text["without_claim"].values() for place in some]
    assert len(without) == len(set(without))
    assert not with_claim & set(without)
    assert with_claim | set(without) == set(places)


@pytest.mark.parametrize("one", STATEMENTS, ids=lambda one: one.id)
def test_a_claim_is_judged_in_exactly_one_way(one):
    ways = ("experiment", "study", "test", "docs", "reason")
    assert sum(bool(getattr(one, way)) for way in ways) == 1
    assert re.fullmatch(r"[A-Za-z0-9-]+", one.id)
    assert len(one.where) == len(set(one.where)) > 0
    assert one.claim.endswith(".")
    listed = bool(one.test or one.docs)
    (entry,) = (entry for entry in document()["claims"] if entry["id"] == one.id)
    for name in ("printed", "found", "method"):
        assert bool(entry.get(name)) is listed
    if not listed:
        assert one.finding.verdict is one.finding.paper_verdict is Verdict.UNKNOWN
    else:
        assert one.finding.verdict is not Verdict.UNKNOWN
    assert one.experiment in {*EXPERIMENTS, ""}
    assert one.study in {*STUDIES, ""}


def functions(path):
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def anchors(path):
    """Return the anchors of the headings of a Markdown page, as GitHub builds them."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_named_tests_and_derivations_exist():
    for one in STATEMENTS:
        if one.test:
            path, name = one.test.split("::")
            assert name in functions(ROOT / "tests" / path), one.test
        if one.docs:
            page, anchor = one.docs.split("#")
            assert anchor in anchors(ROOT / "docs" / page), one.docs


def strings_and_ids(path):
    """Return all strings of a module, and those that are the first argument of `Claim`."""
    strings, ids = set(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Claim" and node.args:
            first = node.args[0]
            ids |= {first.value} if isinstance(first, ast.Constant) else set()
    return strings, ids


def test_every_claim_of_an_experiment_is_in_its_code_and_no_other_is():
    """Each id is in the files of one experiment, and no `Claim` has an unknown id."""
    found = {path.name: strings_and_ids(path) for path in EXPERIMENT_FILES}
    for one in STATEMENTS:
        files = [name for name, (strings, _) in found.items() if one.id in strings]
        if one.experiment:
            assert len(files) == 1, (one.id, files)
            assert files[0].startswith(f"_{one.experiment}"), one.id
        elif not one.study:
            assert not files, (one.id, files)
    used = {name for _, ids in found.values() for name in ids}
    assert len(used) > 20
    assert used <= set(statements())


# ---- the table ----------------------------------------------------------------------------------


def test_claims_without_a_run_say_what_to_run():
    rows = {row.id: row for row in judge([])}
    assert list(rows) == list(statements())
    assert rows["xor-linear"].finding.ours == "not run: quadric reproduce xor"
    assert rows["recurrent"].finding.ours == "not run: quadric reproduce recurrent"
    assert rows["pyramidal-neurons"].finding.ours.startswith("A result of neuroscience")
    assert rows["logistic-w-vector"].finding.verdict == "does not hold"
    assert not rows["xor-linear"].was_run
    assert rows["logistic-w-vector"].was_run


def test_unknown_repeated_and_listed_claims_are_refused():
    claim = Claim("xor-linear", "-", "-", Verdict.HOLDS)
    with pytest.raises(KeyError, match="xor-cubic"):
        judge([Claim("xor-cubic", "-", "-", Verdict.HOLDS)])
    for twice in ([claim, claim], [Claim("logistic-w-vector", "-", "-", Verdict.HOLDS)]):
        with pytest.raises(ValueError, match="judged twice"):
            judge(twice)


def test_results_of_several_runs_are_merged():
    one = judge([Claim("xor-linear", "a", "b", Verdict.HOLDS, method="c")])
    other = judge([Claim("exactly-C", "d", "e", Verdict.FAILS)])
    rows = {row.id: row for row in merged([one, other])}
    assert rows["xor-linear"].cells()[4:9] == ("a", "cannot be judged", "b", "holds", "c")
    assert rows["exactly-C"].finding.ours == "e"
    assert not rows["table-means"].was_run
    later = judge([Claim("xor-linear", "a", "new", Verdict.FAILS)])
    assert {row.id: row for row in merged([one, other, later])}["xor-linear"].finding.ours == "new"


# ---- the committed results ----------------------------------------------------------------------


def test_the_committed_table_agrees_with_the_list(committed):
    """Claims that are judged by tests or not at all are those of the list, word for word."""
    listed = judge([])
    assert [row.id for row in committed] == [row.id for row in listed]
    with (ROOT / "results" / "claims.csv").open() as file:
        columns, *lines = csv.reader(file)
    assert tuple(columns) == COLUMNS
    for row, known, line in zip(committed, listed, lines, strict=True):
        assert row.cells() == tuple(line)
        assert row.cells()[:4] == known.cells()[:4]
        assert row.judged_by == known.judged_by
        one = statements()[row.id]
        if one.experiment or one.study:
            assert row.was_run, row.id
        else:
            assert row == known


def test_the_committed_mnist_verdicts_follow_from_the_committed_numbers(committed):
    accuracies = read_mnist_runs()
    assert {len(runs) for runs in accuracies.values()} == {60}
    ours = {key: sample_of([*runs.values()]) for key, runs in accuracies.items()}
    rows = {row.id: row for row in committed}
    claims = claims_of(compare(ours, paper_table()), True, accuracies)
    assert {claim.id for claim in claims} | {"mnist-data"} == {
        one.id for one in STATEMENTS if one.experiment == "mnist"
    }
    for claim in claims:
        assert rows[claim.id].cells()[4:9] == (
            claim.paper,
            claim.paper_verdict.value,
            claim.ours,
            claim.verdict.value,
            claim.method,
        )


def test_the_recorded_verdicts_are_the_committed_ones(committed):
    with RECORDED.open() as file:
        columns, *lines = csv.reader(file)
    assert tuple(columns) == RECORDED_COLUMNS
    assert list(map(tuple, lines)) == recorded_rows(committed)
    shown = {row.id: row for row in judge([Claim("few-qnn", "-", "-", Verdict.UNKNOWN)])}
    assert shown["few-qnn"].recorded.verdict is Verdict.HOLDS  # this run cannot judge it
    assert shown["outperforms-rpqnn"].recorded.verdict is Verdict.CONDITIONALLY  # not run
    judged = {row.id: row for row in judge([Claim("few-qnn", "-", "-", Verdict.FAILS)])}
    assert judged["few-qnn"].recorded is None


def test_every_claim_has_a_kind_and_questions_of_ours_are_not_the_papers():
    assert {one.kind for one in STATEMENTS} == set(KINDS)
    questions = {one.id for one in STATEMENTS if one.kind == "question"}
    assert {"algorithm-2-trained", "table-possible", "asymptotic-time-literal"} <= questions
    for one in STATEMENTS:
        assert (one.kind == "background") is bool(one.reason), one.id


def test_the_overview_and_the_results_have_the_committed_counts(committed):
    verdicts = [(row.kind, row.finding.verdict) for row in committed]
    overview = (ROOT / "docs" / "results" / "paper.md").read_text()
    kinds = [kind for kind in KINDS if kind != "background"]
    for verdict in Verdict:
        counts = [verdicts.count((kind, verdict)) for kind in kinds]
        assert f"| {verdict} | {' | '.join(map(str, counts))} |" in overview
    assert verdicts.count(("background", Verdict.UNKNOWN)) == 12
    assert "Twelve statements about the field are not judged." in overview
    judged = [verdict for kind, verdict in verdicts if kind != "background"]
    holds, partly, fails, unknown = (judged.count(verdict) for verdict in Verdict)
    slips = sum(verdicts.count((kind, Verdict.FAILS)) for kind in ("misprint", "count"))
    questions = verdicts.count(("question", Verdict.FAILS))
    assert (
        f"{len(judged)} judged statements: {holds} hold, {partly} with a condition, {fails} do not "
        f"(of these, {slips} are misprints or counts and {questions} are questions of ours), and "
        f"{unknown} cannot be judged"
    ) in (ROOT / "docs" / "results" / "index.md").read_text()


def test_the_page_of_claims_is_generated_from_the_committed_table(committed):
    assert (ROOT / "docs" / "results" / "claims.md").read_text() == markdown_page(committed)
