"""Add files of the repository outside docs/ to the site, and adapt links to them.

The tables in results/ and the pages at the top of the repository become pages of the site. Other
files that a page links to are copied. Links to notebooks and gallery scripts lead to their pages.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
ALWAYS = ("results/*.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
LINK = re.compile(r"(?P<text>!?\[[^\[\]]*\])\((?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?\)")
_pages: dict[str, str] = {}  # page of the site -> file of the repository


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages in `ALWAYS`, and every file that a page links to."""
    _pages.clear()
    waiting = [path for pattern in ALWAYS for path in sorted(ROOT.glob(pattern))]
    for file in files.documentation_pages():
        waiting += outside(f"docs/{file.src_uri}", file.content_string)
    while waiting:
        path = waiting.pop()
        name = path.relative_to(ROOT).as_posix()
        uri = place(name)
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(path)))
            if path.suffix == ".md":
                _pages[uri] = name
                waiting += outside(name, path.read_text(encoding="utf-8"))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the links of a page that the site does not have."""
    uri = page.file.src_uri
    return adapted(markdown, _pages.get(uri, f"docs/{uri}"), uri)


def place(name: str) -> str:
    """Return the place of a repository's file in the site.

    >>> place("docs/guide/torch.md"), place("results/mnist.csv"), place("CHANGELOG.md")
    ('guide/torch.md', 'results/mnist.csv', 'project/changelog.md')
    >>> place("docs/tutorials/xor.ipynb"), place("docs/gallery/xor.py"), place("README.md")
    ('tutorials/xor.md', 'gallery/xor.md', 'index.md')
    """
    if name == "README.md":
        return "index.md"
    if name.startswith("docs/"):
        path = Path(name.removeprefix("docs/"))
        shown = path.suffix == ".ipynb" or path.match("gallery/*.py")
        return path.with_suffix(".md").as_posix() if shown else path.as_posix()
    return name if name.startswith("results/") else f"project/{name.lower()}"


def target(name: str, link: str) -> Path:
    """Return the file of the repository that a link in the file `name` leads to."""
    return ROOT / posixpath.normpath(posixpath.join(posixpath.dirname(name), link))


def outside(name: str, text: str) -> list[Path]:
    """Return the files outside docs/ that a text links to."""
    found = [target(name, match["path"]) for match in LINK.finditer(text)]
    return [
        path
        for path in found
        if path.is_file() and path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "docs")
    ]


def adapted(text: str, name: str, uri: str) -> str:
    """Return a text of the file `name` with the links that it needs at the place `uri`."""

    def replace(match: re.Match[str]) -> str:
        path = target(name, match["path"])
        if path.is_dir() and path.is_relative_to(ROOT) and not match["path"].endswith(".md"):
            return match["text"].strip("[]")  # a site has no listings of directories
        if not path.is_file() or not path.is_relative_to(ROOT):
            return match[0]
        link = posixpath.relpath(place(path.relative_to(ROOT).as_posix()), posixpath.dirname(uri))
        return f"{match['text']}({link}{match['anchor'] or ''})"

    return LINK.sub(replace, text)
