"""The page of the comparison is the one that the committed results give."""

import copy
import re
from pathlib import Path

import pytest

from benchmarks.compare import _page
from benchmarks.compare._accuracy_tables import Scores
from benchmarks.compare._result import from_json
from benchmarks.compare._sections import SECTIONS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results():
    return _page.results(ROOT / _page.COMMITTED)


@pytest.fixture(scope="module")
def page():
    return (ROOT / _page.PAGE).read_text(encoding="utf-8")


@pytest.fixture
def one_run(results):
    """A full run at one commit: the committed sections, as if they had been measured together."""
    found = copy.deepcopy(_page.chosen(*results))
    found = {name: found.get(name, found["sgd"]) for name in SECTIONS}
    for result in found.values():
        result["about"]["commit"] = "abcdef0"
    return found


def test_the_committed_page_is_up_to_date(results, page):
    assert page == _page.page(*results)


def test_a_page_of_one_run_names_its_commit_once_at_the_top(one_run):
    text = _page.page({}, one_run)
    top = text[: text.index("##")]
    assert "`python -m benchmarks compare --resume` at commit abcdef0, " in top
    assert "not from one full run" not in text
    assert [text.count(f"## {SECTIONS[name].title}\n") for name in SECTIONS] == [1] * len(SECTIONS)


def test_a_page_of_several_commits_says_so(one_run):
    one_run["growth"]["about"]["commit"] = "1234567"
    text = _page.page({}, one_run)
    assert "there are several commits: abcdef0 has sgd, layers," in text
    assert "; 1234567 has growth. Each section" in text


def test_a_page_with_quick_or_missing_sections_says_so(one_run):
    quick = {"sgd": one_run.pop("sgd")}
    del one_run["limits"]
    text = _page.page(quick, one_run)
    assert "only a quick run has sgd; no run has limits" in text


def test_the_page_is_not_written_from_several_runs(one_run, monkeypatch, tmp_path):
    one_run["growth"]["about"]["commit"] = "1234567"
    monkeypatch.setattr(_page, "results", lambda: ({}, one_run))
    monkeypatch.setattr(_page, "PAGE", tmp_path / "page.md")
    with pytest.raises(SystemExit, match="not written: there are several commits"):
        _page.main([])
    assert not (tmp_path / "page.md").exists()


def test_every_section_opens_with_its_strongest_rival(page):
    openings = re.findall(r"^## .*\n\n(.*)", page, re.MULTILINE)[:-1]
    assert len(openings) >= 8
    for opening in openings:
        assert re.match(r"Strongest rival: |No other library|The rival is", opening)


def test_the_strongest_rival_is_the_fastest_peer(results):
    cases = from_json(_page.chosen(*results)["sgd"]["cases"])
    fastest = [min((peer.ratio, peer.contender) for peer in case.peers) for case in cases]
    (ratio, name), *others = sorted(fastest)
    text = _page.strongest_rivals(cases)
    assert text.startswith(f"Strongest rival: {name}, {ratio:.2f} times as long as quadric")
    assert f"takes {others[0][0]:.2f} to {others[-1][0]:.2f} times as long." in text
    assert _page.strongest_rivals(cases[:1]) == text[: text.index(" In the other")]


def test_ranks_are_over_many_data_sets(results, page):
    assert "accuracy" not in results[0]
    counts = [int(count) for count in re.findall(r"Mean ranks on (\d+) data sets", page)]
    assert counts
    assert min(counts) >= 19


def test_the_figures_of_the_page_exist(page):
    figures = re.findall(r"\((\S+comparison_\w+\.svg)\)", page)
    assert len(figures) == 5
    assert all(((ROOT / _page.PAGE).parent / figure).exists() for figure in figures)


@pytest.mark.parametrize("section", ["sgd", "layers", "layers-2-threads"])
def test_quadric_is_ahead_of_every_peer_in_the_committed_run(results, section):
    cases = from_json(_page.chosen(*results)[section]["cases"])
    assert len(cases) == (3 if section == "sgd" else 12)
    behind = {case.name: [t.contender for t in case.faster] for case in cases if case.faster}
    assert not behind


def test_the_full_run_has_at_least_twenty_data_sets(results):
    scores = Scores(results[1]["accuracy"])
    assert len(scores.sets) >= 20
    assert len(scores.peers) == 9
    assert not results[1]["accuracy"]["skipped"]
