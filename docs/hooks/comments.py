"""Remove the comments that name the test of a promise, so that no page contains them.

The comments stand behind the sentences: `<!-- test: file::name -->`, and on the page about
certificates `<!-- cases ... -->`. `tests/test_promises.py` reads them from the files.
"""

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

COMMENT = re.compile(r"\s*(?<!`)<!-- (?:test:|cases ).*?-->", re.DOTALL)


@event_priority(100)  # before the other hooks
def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page without these comments."""
    return without(markdown)


def without(text: str) -> str:
    """Return a text without the comments that name tests.

    >>> without("It holds. <!-- test: test_a.py::test_b,\\ntest_c.py::test_d --> And this.")
    'It holds. And this.'
    >>> without("Write `<!-- test: file::name -->`.")
    'Write `<!-- test: file::name -->`.'
    """
    return COMMENT.sub("", text)
