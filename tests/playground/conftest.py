"""The page in a real browser. Without Chromium or Playwright the tests are skipped."""

import shutil
import threading

import pytest

from quadric.playground._server import PageServer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def url():
    server = PageServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.url
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, url):
    """Open the page with a hash and options of the browser; there must be no complaint at all."""
    from tests.support.playground_page import PlaygroundPage

    pages = []

    def open_page(link="", **options):
        pages.append(PlaygroundPage(browser, url, link, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        complaints = page.close()
        assert complaints == []
