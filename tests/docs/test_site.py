"""The built site: links, hosts, size, reference, and search and widths in a browser.

`.ci/site` builds the site and runs these tests on it (`QUADRIC_SITE`). Otherwise they build a
draft, in which notebooks and gallery scripts are not run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_hooks import public_names
from tests.support.browser import chromium, static_files
from tests.support.site_check import Page, faults

ROOT = Path(__file__).parents[2]
PAGES = (
    "",
    "tour/",
    "guide/estimators/",
    "guide/command_line/",
    "explanation/",
    "how_to/tables_in_python/",
    "gallery/",
    "reference/quadric.estimators/",
    "reference/command_line/",
    "reference/messages/",
    "results/",
    "results/claims/",
    "results/comparison/",
    "results/torch/",
    "project/changelog/",
)

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if "QUADRIC_SITE" in os.environ:
        return Path(os.environ["QUADRIC_SITE"])
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"QUADRIC_DRAFT": "1", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return folder


def test_links_lead_somewhere_and_nothing_is_loaded_from_other_hosts(site):
    assert len(list(site.rglob("*.html"))) > 60
    assert faults(site) == []


def test_every_public_name_has_an_entry(site):
    texts = {
        path.parent.name: Page(path.read_text(encoding="utf-8"))
        for path in sorted((site / "reference").rglob("*.html"))
    }
    for module, name in public_names():
        if module != "quadric.apps.shell":
            page = texts[module]
            targets = [link for link in page.links if link.endswith(f".{name}")]
            assert targets or f"{module}.{name}" in page.anchors, f"{module}.{name}"


def test_the_estimators_have_the_defaults_of_their_signatures(site):
    text = (site / "reference" / "quadric.estimators" / "index.html").read_text(encoding="utf-8")
    entry = r"<b><code>beta_1, beta_2, epsilon</code></b>.*?default:\s*<code>(.*?)</code>"
    found = re.findall(entry, text, re.DOTALL)
    assert found
    assert {re.sub("<.*?>", "", one) for one in found} == {"0.9, 0.999, 1e-08"}


def test_no_page_of_the_guide_shows_a_test(site):
    for folder in ("guide", "how_to", "explanation", "coming_from", "tour"):
        for path in (site / folder).rglob("*.html"):
            assert "::test_" not in path.read_text(encoding="utf-8"), path


def test_there_are_at_most_six_tabs(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    assert 3 < len(re.findall(r'class="md-tabs__item', text)) <= 6


def test_formulas_are_mathml_and_no_latex_remains(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    assert "<math" in text
    for path in site.rglob("*.html"):
        assert 'class="arithmatex"' not in path.read_text(encoding="utf-8"), path


@pytest.fixture(scope="module")
def url(site):
    with static_files(site) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser, url):
    """Return a function that opens a page with a width; there must be no request elsewhere."""
    elsewhere, contexts = [], []

    def record(request):
        if not request.url.startswith((url, "data:", "blob:")):
            elsewhere.append(request.url)

    def open_with(width):
        context = browser.new_context(viewport={"width": width, "height": 800})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("request", record)
        return page

    yield open_with
    for context in contexts:
        context.close()
    assert elsewhere == []


def test_search_finds_a_name_and_a_word(open_page, url):
    page = open_page(1280)
    page.goto(url)
    for query, found in (
        ("QuadraticLogisticRegression", "reference/quadric.estimators/"),
        ("ellipsoid", "guide/geometry/"),
    ):
        page.fill(".md-search__input", "")
        page.locator(".md-search__input").press_sequentially(query)
        page.wait_for_function(
            "part => [...document.querySelectorAll('.md-search-result__link')]"
            ".some((link) => link.href.includes(part))",
            arg=found,
        )


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("install", ""),
        ("pip install", ""),
        ("shap", "how_to/shap/"),
        ("missing values", "how_to/tables_in_python/"),
    ],
)
def test_search_finds_first_what_a_newcomer_looks_for(open_page, url, query, first):
    page = open_page(1280)
    page.goto(url)
    page.fill(".md-search__input", "")
    page.locator(".md-search__input").press_sequentially(query)
    page.wait_for_function(
        "url => document.querySelector('.md-search-result__link')?.href.split('?')[0] === url",
        arg=f"{url}{first}",
    )


def test_pages_are_not_wider_than_a_phone(open_page, url):
    page = open_page(390)
    for name in PAGES:
        page.goto(url + name)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name


def test_the_home_page_shows_the_playground(open_page, url):
    page = open_page(1280)
    page.goto(url)
    page.locator("iframe.playground").scroll_into_view_if_needed()
    frame = page.frame_locator("iframe.playground")
    frame.locator("#parameter-count").wait_for()
    assert int(frame.locator("#parameter-count").inner_text()) > 0
