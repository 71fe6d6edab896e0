"""A small web server that shows the page on this computer.

It listens on 127.0.0.1 and serves only the files of the page, which it reads once. Requests with a
foreign Host header are rejected, so that other web pages cannot reach it through a host name that
resolves to 127.0.0.1 (DNS rebinding).
"""

import gzip
import re
import sys
import threading
import webbrowser
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from quadric.apps.playground._page import TYPES, content_security_policy, page_directory, page_files

ADDRESS = "127.0.0.1"
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class PageServer(ThreadingHTTPServer):
    """A server for the files of a directory; `url` is its address."""

    daemon_threads = True
    # on Windows, this would let several servers listen on the same port
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, port: int = 0, directory: Path | None = None) -> None:
        files = page_files(directory or page_directory())
        self.files = {f"/{name}": (path.read_bytes(), path.suffix) for name, path in files.items()}
        self.files["/"] = self.files["/index.html"]
        policy = content_security_policy(self.files["/"][0]) + "; frame-ancestors 'none'"
        self.headers = {"Content-Security-Policy": policy, **HEADERS}
        super().__init__((ADDRESS, port), _Handler)
        self.url = f"http://{ADDRESS}:{self.server_port}/"
        self.hosts = {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}
        if self.server_port == 80:  # browsers omit the default port
            self.hosts |= {ADDRESS, "localhost"}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "quadric", ""
    timeout = 30  # seconds until an idle connection is closed

    def do_GET(self) -> None:
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        name = self.path.partition("?")[0]
        if name not in self.server.files:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        content, suffix = self.server.files[name]
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", TYPES[suffix])
        if "gzip" in re.split(r"[\s,]+", self.headers.get("Accept-Encoding", "")):
            content = gzip.compress(content, mtime=0)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def end_headers(self) -> None:
        """Add the headers that every response has."""
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


def serve(
    port: int = 0,
    open_browser: bool = True,
    *,
    announce: Callable[[str], object] = lambda url: None,
) -> None:
    """Serve the page on this computer until Ctrl-C is pressed.

    Parameters
    ----------
    port : int
        The port to listen on. By default, a free one is chosen.
    open_browser : bool
        Whether to open the page in the browser.
    announce : callable, optional
        Called with the address of the page when the server is ready.
    """
    with PageServer(port) as server:
        announce(server.url)
        if open_browser:  # in a thread, because a text browser returns only when it is closed
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        server.serve_forever()
