"""The directory of the page, its files, and copies of it."""

import errno
import os
import re
import shutil
from pathlib import Path

from quadric.utils import name_target, replace, temporary_name

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = re.compile(rb'http-equiv="Content-Security-Policy"\s+content="([^"]+)"')


def page_directory() -> Path:
    """Return the directory that contains the page: index.html, the style sheet and modules.

    Returns
    -------
    pathlib.Path
        The directory. Any web server can serve it unchanged.
    """
    return Path(__file__).parent / "page"


def page_files(directory: Path) -> dict[str, Path]:
    """Return the files of the page by name; links to other directories are left out."""
    inside = directory.resolve()
    return {
        path.name: path
        for path in sorted(directory.iterdir())
        if path.suffix in TYPES and path.is_file() and path.resolve().parent == inside
    }


def content_security_policy(html: bytes) -> str:
    """Return the policy that the page declares in a meta element."""
    found = POLICY.search(html)
    assert found is not None
    return " ".join(found[1].decode().split())


def copy_page(directory: str | os.PathLike[str]) -> None:
    """Copy the page to a new directory, for a web host.

    Parameters
    ----------
    directory : str or path
        The directory to create; it may exist if it is empty. It appears only when it is complete.
    """
    target = Path(os.path.abspath(directory))
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        raise FileExistsError(
            errno.EEXIST, "it exists and is not an empty directory", os.fspath(directory)
        )
    temporary = temporary_name(target)
    try:
        temporary.mkdir()
        for name, path in page_files(page_directory()).items():
            shutil.copyfile(path, temporary / name)
        if target.is_dir() and not target.is_symlink():
            target.rmdir()  # fails if another process has put something there
        replace(temporary, target)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            name_target(error, temporary, directory)
        raise
