"""Expand `folder/*` in the navigation of mkdocs.yml, and lists of pages.

An entry `folder/*` stands for all pages of the folder that the navigation does not name elsewhere,
so new notebooks, pictures and generated pages appear automatically. The line `<!-- pages -->` in
the index of a folder stands for the list of its other pages.
"""

import posixpath
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

LIST = "<!-- pages -->"
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


@event_priority(-100)  # after the hooks that generate pages
def on_files(files: Files, config: MkDocsConfig) -> None:
    """Replace the entries of `config.nav` that end with `/*`."""
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = expanded(config.nav or [], pages)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the line that stands for the list of pages."""
    if LIST not in markdown:
        return markdown
    folder = posixpath.dirname(page.file.src_uri)
    texts = {
        file.src_uri: file.content_string
        for file in files.documentation_pages()
        if posixpath.dirname(file.src_uri) == folder and file != page.file
    }
    order = [uri for uri in named_pages(config.nav) if uri in texts]
    return markdown.replace(LIST, listed({uri: texts[uri] for uri in order}))


def listed(texts: dict[str, str]) -> str:
    """Return links to pages of the same folder, with their titles.

    >>> listed({"how_to/tune.md": "# Tune a model\\n\\nIn five steps."})
    '- [Tune a model](tune.md)'
    """
    titles = {uri: TITLE.search(text) for uri, text in texts.items()}
    return "\n".join(
        f"- [{found[1]}]({posixpath.basename(uri)})" for uri, found in titles.items() if found
    )


def expanded(nav: list[Any], pages: list[str]) -> list[Any]:
    """Return the navigation with each `folder/*` replaced by pages, sorted by name."""
    named = set(named_pages(nav))

    def expand(entries: list[Any]) -> list[Any]:
        found: list[Any] = []
        for entry in entries:
            if isinstance(entry, str) and entry.endswith("/*"):
                folder = entry.removesuffix("*")
                found += sorted(
                    page
                    for page in pages
                    if page.rpartition("/")[0] + "/" == folder and page not in named
                )
            elif isinstance(entry, dict):
                found.append(
                    {
                        title: expand(value) if isinstance(value, list) else value
                        for title, value in entry.items()
                    }
                )
            else:
                found.append(entry)
        return found

    return expand(nav)


def named_pages(nav: Any) -> list[str]:
    """List the pages that the navigation names."""
    if isinstance(nav, str):
        return [nav]
    values = nav.values() if isinstance(nav, dict) else nav
    return [page for value in values for page in named_pages(value)]
