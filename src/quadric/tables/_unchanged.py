"""Whether a file is still the one that was opened."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

from quadric.errors import TableError

BLOCK = 1 << 16
BLOCKS = 64  # are hashed of a file; one of up to 4 MiB is hashed whole


class Version(NamedTuple):
    """What the system says of a file; it is another after every change."""

    device: int
    inode: int
    size: int
    modified: int  # in nanoseconds, as the next
    status: int

    @classmethod
    def of(cls, found: os.stat_result) -> Version:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def check(self, path: Path) -> None:
        """Raise TableError if the file at `path` is another version, or is not there."""
        try:
            now = Version.of(path.stat())
        except OSError as error:
            raise changed(path, f"it cannot be found ({error.strerror})") from None
        if now == self:
            return
        if now[:2] != self[:2]:
            what = "another file has taken its place"
        elif now.size != self.size:
            what = f"it had {self.size:,} bytes and has {now.size:,}"
        else:
            what = "it was written to, or its permissions were changed"
        raise changed(path, what)


def changed(path: Path, what: str) -> TableError:
    return TableError(
        f"{path} changed while it was read: {what}. Nothing was saved. Start again, without "
        "--resume, when no other program writes to it."
    )


def sample_digest(stream: BinaryIO, size: int) -> str:
    """SHA-256 of blocks at even distances, the first and the last of the file among them."""
    digest = hashlib.sha256(f"{size},".encode())
    if size <= BLOCK * BLOCKS:
        places = list(range(0, size, BLOCK))
    else:
        places = [(size - BLOCK) * i // (BLOCKS - 1) for i in range(BLOCKS)]
    for place in places:
        stream.seek(place)
        digest.update(stream.read(BLOCK))
    return digest.hexdigest()
