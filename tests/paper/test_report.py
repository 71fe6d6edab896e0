"""The report: a self-contained page that works in a browser, and CSV and PNG files."""

import csv
import json
import re
import subprocess

import pytest
from matplotlib.figure import Figure

from quadric.apps.paper._claims import COLUMNS, Claim, Verdict, judge, statements
from quadric.apps.paper._experiment import Outcome, Table, headline
from quadric.apps.paper._mnist import SIDE_BY_SIDE
from quadric.apps.paper._report import about_this_run, write_report
from results.write import read_rows
from tests.support.browser import CHROMIUM, chromium


@pytest.fixture
def outcome():
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([0, 1], [0, 1])
    table = Table(
        "numbers",
        "Numbers & <signs>",
        ("name", "value", "good"),
        [("b", 10.0, True), ("a", 9.0, False), ("c", 200.0, None)],
        "A note.",
        {"value": ".1f"},
    )
    claims = [
        Claim("xor-linear", "said", "it is <seen>", Verdict.HOLDS, Verdict.HOLDS, "50 seeds"),
        Claim("exactly-C", "said", "not seen", Verdict.FAILS),
        Claim("clusters-accuracy", "said", "not judged: needs --full", Verdict.UNKNOWN),
    ]
    facts = {"data": "digits", "source": "scikit-learn"}
    return Outcome(
        "sample",
        "A sample",
        "What was done.",
        [table],
        claims,
        {"line": figure, "second": figure, "third": figure},
        facts,
        {"line": "A line <rises>."},
        ["One <finding>.", "Two.", "Three.", "Four.", "Five.", "Six."],
        headline=headline(claims, "clusters-accuracy", "sample: accuracy", "99.97 %", "99 %"),
        descriptions={"line": "A line from the lower left to the upper right."},
    )


@pytest.fixture
def page(outcome, tmp_path):
    return write_report([outcome], tmp_path, about_this_run(12.3))


def test_csv_and_png_files_are_written_next_to_the_page(page, tmp_path):
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "index.html",
        "claims.csv",
        "numbers.csv",
        "line.png",
        "second.png",
        "third.png",
    }  # and no temporary files
    with (tmp_path / "numbers.csv").open() as file:
        assert list(csv.reader(file)) == [
            ["name", "value", "good"],
            ["b", "10.0", "True"],
            ["a", "9.0", "False"],
            ["c", "200.0", ""],
        ]
    assert (tmp_path / "line.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_is_escaped_and_self_contained(page):
    html = page.read_text()
    assert "it is &lt;seen&gt;" in html  # texts are not interpreted as markup
    assert "Numbers &amp; &lt;signs&gt;" in html
    assert "A line &lt;rises&gt;.</figcaption>" in html
    assert '<img alt="A line from the lower left to the upper right."' in html
    assert "One &lt;finding&gt;." in html
    assert "digits" in html  # the data used
    assert "scikit-learn" in html
    sources = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert sources
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    assert "http" not in re.sub(r"data:image[^\"]*", "", html)
    for word in ("command", "processor", "numpy"):
        assert word in html


def test_the_page_and_claims_csv_contain_every_claim(page, outcome, tmp_path):
    html = page.read_text()
    rows = read_rows((tmp_path / "claims.csv").read_text().splitlines())
    assert [row.finding for row in rows] == [row.finding for row in judge(outcome.claims)]
    assert [row.id for row in rows] == list(statements())
    for row in rows:
        assert f'<tr id="claim-{row.id}">' in html
        assert all(row.cells()[1:3])  # section and sentence
    by_id = {row.id: row for row in rows}
    assert by_id["xor-linear"].sentences == "I, paragraph 1, sentence 6"
    assert by_id["xor-linear"].finding == outcome.claims[0]
    assert by_id["xor-linear"].cells()[7] == by_id["xor-linear"].cells()[5] == "holds"
    assert by_id["exactly-C"].cells()[7] == "does not hold"
    assert by_id["exactly-C"].cells()[5] == "cannot be judged"
    assert by_id["table-means"].finding.ours == "not run: quadric reproduce mnist"
    not_run = [row for row in rows if not row.was_run]
    judges = [one for one in statements().values() if one.experiment or one.study]
    assert len(not_run) == len(judges) - 3
    papers = [row for row in not_run if row.kind not in ("question", "background")]
    assert f"{len(papers)} of them because their experiments are not part" in html
    with (tmp_path / "claims.csv").open() as file:
        assert tuple(next(csv.reader(file))) == COLUMNS


def test_the_page_begins_with_the_findings_and_ends_with_the_claims(page):
    html = page.read_text()
    parts = [
        "This is a <strong>quick run</strong>",
        "One &lt;finding&gt;.",
        "Five.",
        'class="lead"',
    ]
    parts += ['id="results"', 'id="sample"', 'id="claims"', "Questions of ours", 'id="about"']
    places = [html.index(part) for part in parts]
    assert places == sorted(places)
    assert html.count("Six.") == 1  # only in the section, not among the first five
    assert html.count('<img alt="') == 3  # each figure once


def test_a_verdict_of_the_committed_full_run_is_labeled(page):
    """The run cannot judge `clusters-accuracy`, and `table-means` is not part of it."""
    html = page.read_text()
    assert "(recorded: holds)</span></td></tr>" in html.replace("\n", "")
    row = html.partition('<tr id="claim-clusters-accuracy">')[2].partition("</tr>")[0]
    assert "Recorded in the committed full run:" in row
    assert statements()["clusters-accuracy"].recorded.ours in row
    judged = html.partition('<tr id="claim-xor-linear">')[2].partition("</tr>")[0]
    assert "Recorded" not in judged


@pytest.fixture
def wide_page(outcome, tmp_path):
    """Return a page with the paper's table and a table of many columns."""
    columns = tuple(f"column {k} of many" for k in range(17))
    place = ("train_size", "epochs", "hidden")
    rows = [(60000, 20, hidden, *[99.99, 99.99, 2.5] * 3) for hidden in (10, 15)]
    outcome.tables += [
        Table("wide", "Wide", columns, [tuple(range(10_000, 10_017))] * 20),
        Table(SIDE_BY_SIDE, "Both", (*place, *"abcdefghi"), rows, "A note.", {"c": "+.1f"}),
    ]
    return write_report([outcome], tmp_path, about_this_run(12.3))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1300, 400])
def test_nothing_is_wider_than_the_page(wide_page, width):
    with chromium() as browser:
        view = browser.new_page(viewport={"width": width, "height": 900})
        view.goto(wide_page.as_uri())
        view.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        wider = (
            "[...document.querySelectorAll('body, div, table')]"
            ".filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.outerHTML)"
        )
        assert view.evaluate(wider) == []
        assert view.evaluate("document.documentElement.scrollWidth") == width
        first = view.locator(".paper-table tbody tr").first
        cards = first.evaluate("one => getComputedStyle(one).display")
        assert cards == ("table-row" if width == 1300 else "grid")
        assert view.locator(".paper-table .far").count() == 6


@pytest.mark.slow
def test_the_search_field_shows_the_claims_that_contain_all_words(page):
    with chromium() as browser:
        view = browser.new_page()
        view.goto(page.as_uri())
        view.fill("#filter", "SINGLE linear xor")
        assert view.locator("#claim-xor-linear").is_visible()
        assert not view.locator("#claim-exactly-C").is_visible()
        assert not view.get_by_text(
            "Questions of ours about the paper", exact=True
        ).last.is_visible()
        shown = view.locator(".kind tbody tr:visible").count()
        assert view.inner_text("#found") == f"{shown} claims"
        view.fill("#filter", "")
        assert view.locator(".kind tbody tr:visible").count() == len(statements())


def test_an_old_report_stays_complete_if_writing_fails(page, outcome, tmp_path, monkeypatch):
    before = page.read_bytes()
    monkeypatch.setattr("os.replace", lambda *a: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(OSError, match="No space"):
        write_report([outcome], tmp_path, {})
    assert page.read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


PROBE = """
<pre id="probe"></pre>
<script>
window.addEventListener("load", () => {
  const body = document.querySelector("table.sortable").tBodies[0];
  const names = () => [...body.rows].map(row => row.cells[0].textContent).join("");
  const heads = document.querySelectorAll("table.sortable th");
  const seen = {images: [...document.images].map(i => i.complete && i.naturalWidth > 0)};
  seen.before = names();
  heads[1].click(); seen.ascending = names();
  heads[1].click(); seen.descending = names();
  heads[0].click(); seen.byName = names();
  document.getElementById("probe").textContent = JSON.stringify(seen);
});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.slow
def test_headings_sort_and_figures_load_in_a_browser(page, tmp_path):
    """Figures load, and a click on a heading sorts its column; numbers sort by value."""
    probe = tmp_path / "probe.html"
    probe.write_text(page.read_text().replace("</body>", PROBE + "</body>"))
    result = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=5000",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            probe.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r'<pre id="probe">(.*?)</pre>', result.stdout, re.DOTALL)
    assert found, result.stderr[-2000:]
    seen = json.loads(found[1].replace("&quot;", '"'))
    assert seen["images"] == [True] * 3
    assert seen["before"] == "bac"
    assert seen["ascending"] == "abc"  # 9, 10, 200
    assert seen["descending"] == "cba"
    assert seen["byName"] == "abc"
