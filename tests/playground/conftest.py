"""The page in a real browser. Without Chromium or Playwright the tests are skipped."""

import pytest

from quadric.apps.playground._server import PageServer
from tests.support.browser import chromium, serving


@pytest.fixture(scope="module")
def url():
    with serving(PageServer()) as server:
        yield server.url


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser, url):
    """Open the page with a hash and options of the browser; there must be no complaint at all."""
    from tests.support.browser import PlaygroundPage

    pages = []

    def open_page(link="", **options):
        pages.append(PlaygroundPage(browser, url, link, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        complaints = page.close()
        assert complaints == []
