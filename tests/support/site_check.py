"""Faults of a built site: broken links and anchors, other hosts, size."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LIMIT = 25_000_000  # bytes of all files
LOADED = {  # attributes whose address a browser loads without a click
    ("audio", "src"),
    ("embed", "src"),
    ("iframe", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("link", "href"),
    ("object", "data"),
    ("script", "src"),
    ("source", "src"),
    ("source", "srcset"),
    ("video", "src"),
}


class Page(HTMLParser):
    """The anchors of a page, its links and the addresses that it loads."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if attributes.get("rel") == "canonical":
            return
        self.anchors |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        for key in ("href", "src", "srcset", "data"):
            if attributes.get(key):
                self.links.append(attributes[key])
                if (tag, key) in LOADED:
                    self.loaded.append(attributes[key])


def faults(site):
    """List the faults of the site in a folder."""
    site = Path(site)
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        for address in page.loaded:
            if urlsplit(address).netloc:
                found.append(f"{name} loads {address}")
        # the links of 404.html are absolute, because it is shown at any address; the playground in
        # live/ makes its elements with scripts, and has its own tests
        if name == "404.html" or name.startswith("live/"):
            continue
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file() or not target.is_relative_to(site.resolve()):
                found.append(f"{name}: no page {link}")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: no anchor {link}")
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    if size > LIMIT:
        found.append(f"the site has {size / 1e6:.1f} MB")
    return found
