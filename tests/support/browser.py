"""Pages in a browser: a server in a thread, and Chromium."""

import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

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
