"""Expand `folder/*` in the navigation of mkdocs.yml.

An entry `folder/*` stands for all pages of the folder that the navigation does not name elsewhere,
so new notebooks, pictures and generated pages appear by themselves.
"""

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files


@event_priority(-100)  # after the hooks that generate pages
def on_files(files: Files, config: MkDocsConfig) -> None:
    """Replace the entries of `config.nav` that end with `/*`."""
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = expanded(config.nav or [], pages)


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
