"""Pages in a browser: a server in a thread, Chromium and the playground; scripts in Node.js."""

import json
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Print nothing."""


@contextmanager
def serving(server):
    """Run a server in a thread, and close it at the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def static_files(folder):
    """Serve the files of a folder; yield the address."""
    handler = partial(QuietHandler, directory=folder)
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


@contextmanager
def chromium():
    """Start Chromium; skip the test if Chromium or Playwright is not installed."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


# ---- the playground's page ---------------------------------------------------------------


TIMEOUT = 30_000  # milliseconds; generous, because other tests may use the same cores


class PlaygroundPage:
    """A page in its own browser context, with the complaints of the browser."""

    def __init__(self, browser, url, link="", *, width=1280, height=800, **options):
        self.complaints = []
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, accept_downloads=True, **options
        )
        self.context.set_default_timeout(TIMEOUT)
        self.page = self.context.new_page()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("requestfailed", lambda request: self.complaints.append(f"no {request.url}"))
        self.page.on("request", lambda request: self._on_request(request.url, url))
        self.page.goto(url + link)
        self.wait("document.querySelector('#parameter-count').textContent > 0")

    def _on_console(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"console: {message.text}")

    def _on_request(self, requested, url):
        if not requested.startswith((url, "blob:", "data:")):
            self.complaints.append(f"request to another host: {requested}")

    def close(self):
        self.context.close()
        return self.complaints

    def wait(self, condition):
        """Wait until a JavaScript expression is true."""
        # as a function, because the page's policy forbids evaluating a string
        self.page.wait_for_function(f"() => {condition}")

    def wait_for_text(self, selector, text):
        self.wait(f"document.querySelector('{selector}').innerText.includes('{text}')")

    def wait_for_samples(self, count):
        """Wait until the still picture after that many samples is drawn."""
        self.page.wait_for_selector(f".picture[data-painted='{count}']")

    def text(self, selector):
        return self.page.inner_text(selector)

    @property
    def summary(self):
        return self.text("#summary")

    def count(self, name):
        """Return a counter: 'epoch', 'sample' or 'parameter'."""
        return int(re.sub(r"\D", "", self.text(f"#{name}-count")))

    def wait_for_summary(self, pattern):
        script = "pattern => new RegExp(pattern).test(document.querySelector('#summary').innerText)"
        self.page.wait_for_function(script, arg=pattern)

    def wait_until_still(self):
        """Wait until the picture of the paused state is drawn; return its number of samples."""
        script = """() => {
            const figures = [...document.querySelectorAll('.picture')];
            const painted = figures.map((figure) => figure.dataset.painted);
            const count = document.querySelector('#sample-count').innerText.replace(/\\D/g, '');
            const paused = document.querySelector('#run-text').innerText === 'Run';
            const still = paused && painted.every((samples) => samples);
            return still && painted.includes(count) && count;
        }"""
        return int(self.page.wait_for_function(script).json_value())

    def pause(self):
        if self.text("#run-text") == "Pause":
            self.page.click("#run")
        return self.wait_until_still()

    def pixels(self):
        """Return the picture's canvases, except the cursor's."""
        return self.page.evaluate(
            "[...document.querySelectorAll('.frame canvas')].map((canvas) => canvas.toDataURL())"
        )

    def click_picture(self, x, y, **options):
        """Click at a place given as shares of the picture's width and height."""
        box = self.page.locator("#picture").bounding_box()
        place = {"x": x * box["width"], "y": y * box["height"]}
        self.page.click("#picture", position=place, **options)

    def place(self, x, y):
        """Return the coordinates of a place given as shares of the picture's width and height."""
        box = self.page.locator("#picture").bounding_box()
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def place_of(self, x, y):
        """Return the coordinates of a place given in the units of the picture."""
        script = """async (at) => {
            const { app } = await import('./main.js');
            const { picture } = app.stage.main;
            const { x, y } = picture.toPixels(...at);
            return [x / picture.width, y / picture.height];
        }"""
        return self.place(*self.page.evaluate(script, [x, y]))

    def hover_picture(self, x, y):
        self.page.mouse.move(*self.place(x, y))
        return self.text(".probe")

    def drop(self, name, content):
        """Drop a file on the page."""
        script = """([name, bytes]) => {
            const files = new DataTransfer();
            files.items.add(new File([new Uint8Array(bytes)], name));
            for (const type of ['dragover', 'drop']) {
                const event = new DragEvent(type, { dataTransfer: files, bubbles: true });
                document.querySelector('main').dispatchEvent(event);
            }
        }"""
        self.page.evaluate(script, [name, list(content)])

    def download(self, button, folder):
        """Click a button of the open export dialog; return the downloaded file."""
        with self.page.expect_download() as waiting:
            self.page.click(button)
        path = Path(folder) / waiting.value.suggested_filename
        waiting.value.save_as(path)
        return path


# ---- Node.js -----------------------------------------------------------------------------


NODE = shutil.which("node")
SCRIPTS = Path(__file__).parents[1] / "playground" / "js"

needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")


def run_script(name: str, *arguments: str) -> str:
    """Run a script of `tests/playground/js`; return what it prints."""
    assert NODE is not None
    command = [NODE, str(SCRIPTS / name), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def export(settings: dict[str, Any], folder: Path) -> None:
    """Write what the page exports after training with these settings."""
    run_script("export.js", json.dumps(settings), str(folder))


def imported(path: Path, points: Any) -> dict[str, Any]:
    """Return what the page reads from a model file, with the outputs for some points."""
    answer: dict[str, Any] = json.loads(run_script("import.js", str(path), json.dumps(points)))
    return answer
