"""Copy the playground into the site, where the home page shows it in a frame."""

import shutil
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

from quadric.apps.playground import copy_page


def on_post_build(config: MkDocsConfig) -> None:
    """Copy the page to `live/`; `playground/` is the page that describes it."""
    folder = Path(config.site_dir) / "live"
    shutil.rmtree(folder, ignore_errors=True)  # mkdocs serve builds several times
    copy_page(folder)
