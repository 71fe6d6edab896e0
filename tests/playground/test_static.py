"""A copy of the page on a static web host: in a subfolder, and in an iframe of another page."""

import pytest

from quadric import Network, save
from quadric.apps.playground import copy_page
from tests.support.browser import static_files

pytestmark = pytest.mark.slow

PATH = "some/path/playground/"
HOST = """<!doctype html><title>Home</title><link rel="icon" href="data:,">
<iframe src="{path}index.html" title="Playground" width="{width}" height="800"></iframe>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a folder of static files, in which the page is a subfolder."""
    folder = tmp_path_factory.mktemp("site")
    (folder / PATH).parent.mkdir(parents=True)
    copy_page(folder / PATH)
    for width in (375, 700):
        (folder / f"{width}.html").write_text(HOST.format(path=PATH, width=width))
    with static_files(folder) as address:
        yield address


@pytest.mark.parametrize("width", [375, 700])
def test_a_copy_in_a_subfolder_works_in_an_iframe(browser, site, width):
    complaints, requests = [], []
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("console", lambda message: complaints.append((message.type, message.text)))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{site}{width}.html")
        inside = page.frame_locator("iframe")
        inside.locator("#summary", has_text="gets all 4 points right").wait_for()
        inside.locator("#data-controls select").select_option("moons")
        inside.locator("#rewind").click()  # training goes on with other data
        inside.locator("#epoch").click()
        inside.locator("#picture canvas").first.wait_for()
        inside.locator(".picture[data-painted='210']").wait_for()
        (frame,) = page.frames[1:]
        # as a function, because the page's policy forbids evaluating a string
        frame.wait_for_function("() => location.hash.includes('data=moons')")
        assert frame.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
    own = {url for url in requests if url.startswith(site + PATH)}
    assert {url.rpartition("/")[2] for url in own} >= {"main.js", "worker.js", "painter.js"}
    assert {url for url in requests if url not in own} <= {f"{site}{width}.html", "data:,"}


INSECURE = """Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined });
Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined });"""


def test_without_https_the_page_says_what_is_missing(browser, site, tmp_path):
    save(Network.create(2, [("quadratic", 2, "softmax")], rng=0), tmp_path / "net.quadric")
    with browser.new_context() as context:
        context.set_default_timeout(30_000)
        context.add_init_script(INSECURE)
        page = context.new_page()
        page.goto(f"{site}{PATH}#samples=0")
        page.click("#export-button")
        page.click("#export-model")
        page.locator("#export-note", has_text="https").wait_for()
        page.keyboard.press("Escape")
        page.set_input_files("#file", tmp_path / "net.quadric")
        page.locator("#import-error", has_text="https").wait_for()
        page.keyboard.press("Escape")
        page.click("#link-button")
        assert page.input_value("#link-dialog[open] #link-text").startswith(f"{site}{PATH}#")
