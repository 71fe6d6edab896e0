"""The page of the comparison is the one that the committed results give."""

import re
from pathlib import Path

import pytest

from benchmarks.compare import _page
from benchmarks.compare._accuracy_tables import Scores
from benchmarks.compare._command import COMMITTED, file_name, read
from benchmarks.compare._result import from_json
from benchmarks.compare._sections import SECTIONS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results():
    return {quick: read(ROOT / COMMITTED / file_name(quick=quick)) for quick in (True, False)}


@pytest.fixture(scope="module")
def page():
    return (ROOT / _page.PAGE).read_text(encoding="utf-8")


def test_the_committed_page_is_up_to_date(results, page):
    assert page == _page.page(results[True], results[False])


def test_the_page_shows_every_section_of_one_quick_run(results, page):
    assert list(results[True]) == list(SECTIONS)
    facts = [found["about"] for found in results[True].values()]
    assert all(about == facts[0] for about in facts)
    assert facts[0]["machine"] in page
    assert sum(found["seconds"] for found in results[True].values()) < 6 * 60


def test_the_figures_of_the_page_exist(page):
    figures = re.findall(r"\((figures/comparison_\w+\.svg)\)", page)
    assert len(figures) == 5
    assert all((ROOT / "docs" / figure).exists() for figure in figures)


@pytest.mark.parametrize("section", ["sgd", "layers", "layers-2-threads"])
def test_quadric_is_ahead_of_every_peer_in_the_committed_run(results, section):
    cases = from_json(results[True][section]["cases"])
    assert len(cases) == (3 if section == "sgd" else 12)
    behind = {case.name: [t.contender for t in case.faster] for case in cases if case.faster}
    assert not behind


def test_the_full_run_has_at_least_twenty_data_sets(results):
    scores = Scores(results[False]["accuracy"])
    assert len(scores.sets) >= 20
    assert len(scores.peers) == 9
    assert not results[False]["accuracy"]["skipped"]
