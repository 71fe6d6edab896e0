"""Names of tables (standard input, compressed files, patterns of parts) and of their columns."""

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path

from quadric.errors import TableError
from quadric.utils import listed

STDIN = ("-", "/dev/stdin")
COMPRESSED = (".gz", ".zst")
TAB_SEPARATED = (".tsv", ".tab")
PARQUET = (".parquet", ".pq")
WRITTEN = ("", ".csv", ".txt", *TAB_SEPARATED, *PARQUET)


def is_stdin(path: Path) -> bool:
    """Whether the table is read from standard input, which "-" and "/dev/stdin" stand for."""
    return str(path) in STDIN


def is_pattern(path: Path) -> bool:
    """Whether this is a pattern such as parts/*.parquet rather than the name of a file."""
    return glob.has_magic(str(path)) and not path.exists()


def plain_suffix(path: Path) -> str:
    """Return the suffix in lowercase, before that of a compressed file.

    >>> plain_suffix(Path("a.TSV.gz"))
    '.tsv'
    """
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in COMPRESSED else suffix


def plain_stem(path: Path) -> str:
    """Return a name for files about a table: its own name without directories and suffixes.

    >>> plain_stem(Path("data/iris.csv.gz")), plain_stem(Path("sales/*.parquet"))
    ('iris', 'sales')
    """
    if is_stdin(path):
        return "stdin"
    if is_pattern(path):
        fixed = [part for part in path.parts if not glob.has_magic(part)]
        path = Path(*fixed)
    path = path if path.name not in ("", "..") else path.resolve()
    stem = path.stem
    return (Path(stem).stem if path.suffix.lower() in COMPRESSED else stem) or "table"


def check_columns(names: Iterable[str], columns: Sequence[str]) -> None:
    """Raise TableError for the first name that is not one of the columns."""
    for name in names:
        if name not in columns:
            raise TableError(
                f"there is no column {name!r}. The columns are {listed(map(repr, columns))}."
            )
