"""The server shows the page, and nothing else, to this computer only."""

import gzip
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from http.client import HTTPConnection

import pytest

import quadric.apps.playground._page
from quadric.apps.playground import copy_page, page_directory, serve
from quadric.apps.playground._page import page_files
from quadric.apps.playground._server import PageServer
from tests.support.browser import serving
from tests.support.commands import assert_error, command


@pytest.fixture(scope="module")
def server():
    with serving(PageServer()) as server:
        yield server


def ask(server, path, method="GET", **headers):
    connection = HTTPConnection(*server.server_address, timeout=10)
    try:
        given = {"skip_host": "Host", "skip_accept_encoding": "Accept-Encoding"}
        connection.putrequest(method, path, **{key: h in headers for key, h in given.items()})
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        answer.content = answer.read()
        return answer
    finally:
        connection.close()


def ask_raw(server, text):
    with socket.create_connection(server.server_address, timeout=10) as connection:
        connection.sendall(text)
        return connection.makefile("rb").readline()


def test_every_file_is_served_with_its_type(server):
    types = {
        "html": "text/html",
        "css": "text/css",
        "js": "text/javascript",
        "svg": "image/svg+xml",
    }
    files = [path for path in page_directory().iterdir() if path.is_file()]
    assert len(files) > 20
    for path in files:
        answer = ask(server, f"/{path.name}")
        assert answer.status == 200
        assert answer.content == path.read_bytes()
        assert answer.headers.get_content_type() == types[path.suffix[1:]]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_address_shows_the_page(server):
    index = (page_directory() / "index.html").read_bytes()
    with urllib.request.urlopen(server.url) as answer:
        assert answer.read() == index
        assert answer.headers["Cache-Control"] == "no-cache"
    assert ask(server, "/?query").content == index


def test_the_policy_forbids_other_hosts_and_inline_code(server):
    policy = ask(server, "/").headers["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert all(
        re.fullmatch("'(none|self)'|data:|blob:", one)
        for rule in rules.values()
        for one in rule.split()
    )
    assert ask(server, "/missing").headers["Content-Security-Policy"] == policy


def test_head_has_the_same_headers_and_no_content(server):
    get, head = ask(server, "/style.css"), ask(server, "/style.css", "HEAD")
    assert (head.status, head.content) == (200, b"")
    assert int(head.headers["Content-Length"]) == len(get.content)


def test_content_is_compressed_if_the_browser_accepts_it(server):
    plain = (page_directory() / "main.js").read_bytes()
    headers = {"Accept-Encoding": "br, gzip, deflate"}
    answer = ask(server, "/main.js", **headers)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.content) == plain
    assert len(answer.content) < len(plain)
    head = ask(server, "/main.js", "HEAD", **headers)
    assert int(head.headers["Content-Length"]) == len(answer.content)
    assert ask(server, "/main.js", **{"Accept-Encoding": "identity"}).content == plain


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_own_hosts_are_accepted(server, host):
    assert ask(server, "/", Host=f"{host}:{server.server_port}").status == 200


FOREIGN = """example.com example.com:{port} localhost 127.0.0.1:1 localhost.example.com:{port}
localhost:{port}@example.com 0.0.0.0:{port}"""


@pytest.mark.parametrize("host", [*FOREIGN.split(), ""])
def test_foreign_hosts_are_rejected(server, host):
    for path in ("/", "/main.js", "/missing"):
        assert ask(server, path, Host=host.format(port=server.server_port)).status == 421


def test_two_hosts_or_none_are_rejected(server):
    own = f"Host: localhost:{server.server_port}\r\n".encode()
    for headers in (b"", own + b"Host: example.com\r\n"):
        assert b" 421 " in ask_raw(server, b"GET / HTTP/1.1\r\n" + headers + b"\r\n")


ELSEWHERE = r"""/../_server.py /..%2f_server.py /%2e%2e/_server.py /page/../index.html /./index.html
/index.html/ /index.html%00 /..\_server.py /etc/passwd //etc/passwd //[ /index.htm /INDEX.HTML
http://example.com/index.html *"""


@pytest.mark.parametrize("path", ELSEWHERE.split())
def test_nothing_else_is_served(server, path):
    host = f"localhost:{server.server_port}"
    assert ask(server, path, Host=host).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_other_methods_are_rejected(server, method):
    assert ask(server, "/", method).status == 501


def test_it_listens_on_this_computer_only(server):
    assert server.server_address[0] == "127.0.0.1"
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        if not address.startswith("127."):
            with pytest.raises((ConnectionError, TimeoutError)):
                socket.create_connection((address, server.server_port), timeout=1)


def test_links_out_of_the_folder_are_not_served(tmp_path):
    folder = tmp_path / "page"
    folder.mkdir()
    (tmp_path / "secret.js").write_text("secret")
    (folder / "index.html").write_bytes((page_directory() / "index.html").read_bytes())
    (folder / "out.js").symlink_to("../secret.js")
    (folder / "loop.js").symlink_to("loop.js")
    (folder / "broken.js").symlink_to("missing.js")
    (folder / "folder.js").mkdir()
    (folder / "notes.txt").write_text("not part of the page")
    with serving(PageServer(directory=folder)) as server:
        assert set(server.files) == {"/", "/index.html"}
        assert ask(server, "/out.js").status == 404


def test_a_client_that_disconnects_is_ignored(server, capfd):
    for text in (b"GET / HTTP/1.1\r\nHo", b"GET /main.js HTTP/1.1\r\n", b"\0\xff\r\n\r\n", b""):
        with socket.create_connection(server.server_address) as connection:
            connection.sendall(text)
            linger = b"\1\0\0\0\0\0\0\0"  # reset the connection when it is closed
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert ask(server, "/").status == 200
    assert capfd.readouterr().err == ""


# ---- the command ---------------------------------------------------------------------------


def started(*options):
    command = [sys.executable, "-m", "quadric", "playground", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process, process.stdout.readline()


@pytest.mark.slow
def test_the_command_serves_the_page_until_ctrl_c():
    process, line = started("--no-browser")
    try:
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/) \(stop with Ctrl-C\)\n", line)
        connection = socket.create_connection(("127.0.0.1", int(found[1][:-1].rpartition(":")[2])))
        with urllib.request.urlopen(found[1]) as answer:
            assert b"<title>" in answer.read()
        process.send_signal(signal.SIGINT)  # although a connection is open
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (130, "", "\nStopped.\n")
        connection.close()
    finally:
        process.kill()


def test_the_browser_is_opened(monkeypatch):
    opened, urls = threading.Event(), []

    def stop(self):
        opened.wait(5)
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", lambda url: (urls.append(url), opened.set()))
    monkeypatch.setattr(PageServer, "serve_forever", stop)
    with pytest.raises(KeyboardInterrupt):
        serve(announce=urls.append)
    assert len(set(urls)) == 1
    assert len(urls) == 2


def test_a_port_in_use_is_reported():
    with PageServer() as server:
        result = command("playground", "--no-browser", "--port", server.server_port)
    assert_error(result, "Choose another with --port")


# ---- copies --------------------------------------------------------------------------------


def test_a_copy_is_the_page(tmp_path):
    for target in (tmp_path / "new", tmp_path / "empty"):
        if target.name == "empty":
            target.mkdir()
        result = command("playground", "--copy-to", target)
        assert result.stdout == f"Page: {target / 'index.html'}\n"
        copied = {path.name: path.read_bytes() for path in target.iterdir()}
        assert copied == {
            name: path.read_bytes() for name, path in page_files(page_directory()).items()
        }
    assert sorted(os.listdir(tmp_path)) == ["empty", "new"]


def test_a_copy_never_replaces_anything(tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "own.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("missing")
    for name in ("full", "file", "link"):
        assert_error(command("playground", "--copy-to", tmp_path / name), "not an empty directory")
    assert_error(command("playground", "--copy-to", tmp_path / "missing" / "new"), "No such file")
    assert sorted(os.listdir(tmp_path)) == ["file", "full", "link"]
    assert os.listdir(full) == ["own.txt"]


def test_a_failed_copy_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(quadric.apps.playground._page.shutil, "copyfile", fail)
    with pytest.raises(OSError, match="No space"):
        copy_page(tmp_path / "copy")
    assert os.listdir(tmp_path) == []


# ---- the page's files ----------------------------------------------------------------------


def test_the_page_is_small_and_loads_nothing_from_elsewhere(server):
    files = {path.name: path.read_text() for path in page_directory().iterdir()}
    assert files.keys() == page_files(page_directory()).keys()
    assert sum(len(text.encode()) for text in files.values()) < 220_000
    assert sum(len(gzip.compress(content)) for content, _ in server.files.values()) < 100_000
    allowed = {"http://www.w3.org/2000/svg"}  # the name of a format, which is not loaded
    for name, text in files.items():
        assert set(re.findall(r"\w+://[^\s\"'`)]+", text)) <= allowed, name
        assert not re.search(r"[\"'`(=]//\w", text), name  # the protocol may be left out
