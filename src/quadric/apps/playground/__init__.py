"""A web page that trains networks of quadratic neurons in the browser, and a local server for it.

The page is a directory of static files without a build step (`page_directory`). `serve` shows it on
this computer, and `copy_page` copies it for a web host. See docs/guide/playground.md.
"""

from quadric.apps.playground._page import copy_page, page_directory
from quadric.apps.playground._server import serve

__all__ = ["copy_page", "page_directory", "serve"]
