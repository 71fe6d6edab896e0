"""The check of the built site finds faults."""

import pytest

from tests.support import site_check
from tests.support.site_check import faults


@pytest.fixture
def site(tmp_path):
    (tmp_path / "guide").mkdir()
    (tmp_path / "picture.png").write_bytes(b"")
    links = '<a href="guide/#start">a</a> <a href="https://example.org">b</a>'
    (tmp_path / "index.html").write_text(f'{links}<img src="picture.png">')
    text = '<h2 id="start">c</h2><a href="..">d</a><a href="#start">e</a>'
    (tmp_path / "guide" / "index.html").write_text(text)
    return tmp_path.resolve()


def test_a_correct_site_has_no_faults(site):
    assert faults(site) == []


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<a href="../missing/">x</a>', "no page ../missing/"),
        ('<a href="#end">x</a>', "no anchor #end"),
        ('<a href="../index.html#end">x</a>', "no anchor ../index.html#end"),
        ('<a href="../../outside.html">x</a>', "no page ../../outside.html"),
        ('<script src="https://cdn.example.org/a.js"></script>', "loads https://cdn.example.org"),
        ('<link rel="stylesheet" href="//fonts.example.org/a.css">', "loads //fonts.example.org"),
        ('<img srcset="https://example.org/a.png 2x">', "loads https://example.org/a.png"),
        ('<iframe src="gone.html"></iframe>', "no page gone.html"),
    ],
)
def test_a_fault_is_found(site, html, fault):
    path = site / "guide" / "index.html"
    path.write_text(path.read_text() + html)
    (site.parent / "outside.html").write_text("exists, but is not part of the site")
    found = faults(site)
    assert found
    assert all(fault in line for line in found)


def test_a_site_that_is_too_large_is_a_fault(site, monkeypatch):
    monkeypatch.setattr(site_check, "LIMIT", 100)
    assert faults(site)[0].startswith("the site has")
