"""Read thousands of damaged Parquet files in a process with little memory, which may crash.

    python -m tests.support.processes damaged_parquet COUNT SEED

This command prints, as JSON, how many were refused with a one-line error, how many were read
unchanged, and how many were read as a different table (a file is still valid if only the bytes of a
value have changed). Any other outcome ends the program with an error: a traceback, a signal, output
on stderr, or a table whose number of rows differs from the file's metadata.
"""

import io
import json
import random
import resource
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from tests.support import damage

MOST_MEMORY = 6 * 2**30  # bytes of address space, of which threads reserve more than they use
SECONDS = 120  # time limit for one file
ROWS = 120
OPTIONS = (
    {},
    {"compression": "uncompressed"},
    {"compression": "snappy", "row_group_size": 40},
    {"compression": "gzip", "statistics": "full"},
    {"compression": "lz4", "data_page_size": 200},
    {"compression": "brotli"},
    {"compression": "uncompressed", "statistics": False},
)
LARGE = (b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x40", b"\xfe\xff\x7f")


def originals():
    """Return the same table in several Parquet encodings."""
    import polars as pl

    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    frame = pl.DataFrame(
        {
            "x": [None if i % 11 == 3 else value for i, value in enumerate(x)],
            "z": rng.normal(size=ROWS).astype(np.float32),
            "k": rng.integers(0, 5, ROWS),
            "flag": rng.random(ROWS) < 0.5,
            "colour": rng.choice(["red", "green", "blue"], ROWS).tolist(),
            "cat": pl.Series(rng.choice(["a", "b"], ROWS).tolist(), dtype=pl.Categorical),
            "day": pl.Series(range(ROWS)).cast(pl.Date),
            "list": [[i, i] for i in range(ROWS)],
            "price": pl.Series([i / 4 for i in range(ROWS)]).cast(pl.Decimal(10, 2)),
            "label": np.where(x > 0, "in", "out"),
        }
    )
    contents = []
    for options in OPTIONS:
        stream = io.BytesIO()
        frame.write_parquet(stream, **options)
        contents.append(stream.getvalue())
    return contents


def footer(content):
    """Return the offset of the metadata at the end of the file."""
    (length,) = struct.unpack("<I", content[-8:-4])
    return len(content) - 8 - length


def with_length(content, begin):
    return content[:-8] + struct.pack("<I", len(content) - 8 - begin) + content[-4:]


def flip_footer(content, rng):
    return damage.flip_bits(content, rng, begin=footer(content))


def set_byte_of_footer(content, rng):
    place = rng.randrange(footer(content), len(content))
    return damage.put(content, place, bytes([rng.choice((0, 1, 127, 128, 254, 255))]))


def cut(content, rng):
    return content[: rng.randrange(4, len(content))]


def large_number_in_footer(content, rng):
    begin = footer(content)
    place = rng.randrange(begin, len(content) - 8)
    number = rng.choice((*LARGE, rng.randbytes(3)))
    return with_length(content[:place] + number + content[place + rng.randrange(5) :], begin)


def large_number_in_pages(content, rng):
    """Write a large number or zeros."""
    number = rng.choice((*LARGE, bytes(rng.randrange(1, 300))))
    return damage.put(content, rng.randrange(4, footer(content)), number)


def other_length_of_footer(content, rng):
    length = rng.choice((0, 1, len(content) - 8, 2**31, 2**32 - 1, rng.randrange(len(content))))
    return content[:-8] + struct.pack("<I", length) + content[-4:]


DAMAGES = (
    *(damage.flip_bits, flip_footer, set_byte_of_footer, cut, damage.replace_bytes),
    *(large_number_in_footer, large_number_in_pages, other_length_of_footer),
)


def read_all():
    """Read the files named on stdin and print a line of JSON for each; run by `Reader`."""
    import polars as pl

    from quadric.apps.shell.tables import open_table
    from quadric.errors import TableError

    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for line in sys.stdin:
        try:
            path = line.rstrip("\n")
            frame = open_table(path).read()
            promised = pl.scan_parquet(path).select(pl.len()).collect().item()  # from the footer
            said = {"rows": len(frame), "promised": promised, "content": repr(frame.rows())}
        except TableError as error:
            said = {"refused": str(error)}
        print(json.dumps(said), flush=True)


class Reader:
    """The process that reads the files, and a file for its stderr."""

    def __init__(self, errors):
        self.errors = errors
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.damaged_parquet"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def read(self, path):
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(SECONDS)
        self.errors.seek(0)
        return code, self.errors.read().decode(errors="replace")


def run(count, seed):
    rng = random.Random(seed)
    contents = originals()
    result, reasons = {"refused": 0, "same": 0, "another table": 0}, Counter()
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile() as errors_file:
        reader = Reader(errors_file)
        path = Path(directory) / "table.parquet"
        expected = []
        for content in contents:
            path.write_bytes(content)
            expected.append(reader.read(path)["content"])
        for i in range(count):
            which, change = rng.randrange(len(contents)), DAMAGES[i % len(DAMAGES)]
            path.write_bytes(change(contents[which], rng))
            said = reader.read(path)
            if said is None:
                raise AssertionError((change.__name__, i, reader.end()))
            if "refused" in said:
                assert "\n" not in said["refused"], said
                assert str(path) in said["refused"], said
                outcome = "refused"
                reasons[said["refused"].replace(str(path), "FILE")[:60]] += 1
            else:
                assert said["rows"] == said["promised"], (change.__name__, i, said)
                outcome = "same" if said["content"] == expected[which] else "another table"
            result[outcome] += 1
        code, errors = reader.end()
        assert (code, errors) == (0, ""), (code, errors)
    return {**result, "reasons": dict(reasons.most_common(20))}


if __name__ == "__main__":
    read_all()
