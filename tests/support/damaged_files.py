"""Open thousands of damaged and forged files; a crash, a hang or a leak ends the process.

    python -m tests.support.processes damaged_files.stores COUNT SEED
    python -m tests.support.processes damaged_files.parquet COUNT SEED

The first command prints, as JSON, how many stores of each kind were refused and how many could be
read. A refused store leads to a one-line error and is unchanged. All others return the rows as
written or, if they were forged with matching digests, valid rows.

The second command reads Parquet files in a process with little memory. It prints how many were
refused with a one-line error, how many were read unchanged, and how many were read as a different
table (a file is still valid if only the bytes of a value have changed). Any other outcome ends the
program with an error: a traceback, a signal, output on stderr, or a table whose number of rows
differs from the file's metadata. Files are numbered; a smaller COUNT finds the one that crashes the
process.
"""

import io
import math
import random
import resource
import shutil
import signal
import sqlite3
import struct
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl

from quadric.apps.paper.sweep import Result, Store, StoreError, Task, _store as store_module
from quadric.apps.shell.tables import open_table
from quadric.errors import TableError
from tests.support import damage
from tests.support.processes import FORK
from tests.support.sweeps import HERE, RECIPE

RECIPES = [replace(RECIPE, epochs=(1, 2)), replace(RECIPE, epochs=(3, 4, 5))]
PAGE = 4096
JUNK = (
    *(None, "", "x", "NaN", "[NaN]", "[0.5, NaN]", "[0.5, 2.0]", "[]", "{}", "[[0.5]]", "null"),
    *("\n", "\x1b[2J", b"", b"\xff\xfe", 0, 1, -1, 2**62, 1.5, -0.0, math.inf, -math.inf),
    *("linear", "\ud7ff", "2020-01-01", "[1e999, 0.5]", "[true, false]", "[0.25, 0.75]"),
)
COLUMNS = tuple(store_module.TYPES)


def fill(path, seeds):
    """Store six runs for every seed: three kinds with each of two recipes."""
    with Store(path) as opened:
        for seed in seeds:
            for kind in ("linear", "quadratic", "reduced"):
                for recipe in RECIPES:
                    accuracies = tuple(
                        (seed + 7 * i) % 100 / 100 for i in range(len(recipe.epochs))
                    )
                    result = Result(accuracies, 1.5 + seed, 600 * recipe.epochs[-1])
                    opened.add(recipe, "data", Task(600, 10, kind, seed), result, HERE)


def fill_and_die(path):
    """Store runs and exit, so that the last runs are only in the log."""
    fill(path, range(10))
    opened = Store(path)
    opened.add(RECIPES[0], "data", Task(600, 10, "linear", 99), Result((0.5, 0.6), 1.0, 1), HERE)
    signal.raise_signal(signal.SIGKILL)


def rows(path, read_only):
    """Return the rows with their recipes."""
    with Store(path, read_only=read_only) as opened:
        return [(row, recipe) for recipe in RECIPES for row in opened.runs(recipe, "data")]


# ---- bytes ---------------------------------------------------------------------------------


def flip_header(content, rng):
    return damage.flip_bits(content, rng, end=200)


def set_number(content, rng):
    """Change a number where SQLite stores offsets, counts and page numbers."""
    page = rng.randrange(len(content) // PAGE) * PAGE
    place = page + (100 if page == 0 else 0) + rng.randrange(40)
    value = rng.choice((0, 1, 2, 0x7FFFFFFF, 0xFFFFFFFF, rng.randrange(64)))
    return damage.put(content, place, struct.pack(">I", value))


def digits(content, rng):
    """Change a digit in a string, which leaves a plausible number."""
    places = [i for i, sign in enumerate(content) if 0x30 <= sign <= 0x39]
    return damage.put(content, rng.choice(places), b"%d" % rng.randrange(10))


def cut_pages(content, rng):
    return content[: rng.randrange(5) * PAGE]


def copy_page(content, rng):
    """Replace a page with another one or with zeros."""
    place, source = (rng.randrange(len(content) // PAGE) * PAGE for _ in range(2))
    return damage.put(content, place, rng.choice((content[source : source + PAGE], bytes(PAGE))))


BYTES = (
    *(damage.flip_bits, damage.replace_bytes, damage.cut, damage.lengthen),
    *(flip_header, set_number, digits, cut_pages, copy_page),
)


# ---- tables --------------------------------------------------------------------------------

# columns without types or constraints, which can contain NULL and NaN
LOOSE = """
CREATE TABLE loose AS SELECT * FROM runs;
DROP TABLE runs;
ALTER TABLE loose RENAME TO runs;
UPDATE runs SET COLUMN = ?
"""
SCHEMA = "PRAGMA writable_schema = ON; UPDATE sqlite_master SET {} = ? WHERE name = '{}'"
PARTS = ("runs", "meta", "sqlite_autoindex_runs_1", "sqlite_autoindex_meta_1")
WRITTEN = ("accuracies", "seconds", "steps", "cpu", "finished_at", "digest")
# statements with random values for `?`, COLUMN and SEED
TABLES = {
    "any value": ["UPDATE OR REPLACE runs SET COLUMN = ? WHERE seed = SEED"],
    "loose table": [LOOSE],
    "no column": [f"ALTER TABLE runs DROP COLUMN {name}" for name in WRITTEN],
    "other column": [f"ALTER TABLE runs RENAME COLUMN {name} TO other" for name in COLUMNS],
    "more": [
        "ALTER TABLE runs ADD COLUMN more",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON runs (seed)",
        "CREATE VIEW v AS SELECT * FROM runs",
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
    ],
    "no table": ["DROP TABLE runs", "DROP TABLE meta"],
    "schema": [
        SCHEMA.format(column, name)
        for column in ("type", "name", "tbl_name", "rootpage", "sql")
        for name in PARTS
    ],
    "meta": [
        "UPDATE OR REPLACE meta SET name = ? WHERE name = 'format'",
        "UPDATE OR REPLACE meta SET value = ? WHERE name = 'format'",
    ],
    "no rows": ["DELETE FROM meta", "DELETE FROM runs WHERE seed >= SEED"],
    "setting": [
        "PRAGMA journal_mode = DELETE",
        *(f"PRAGMA {name} = SEED" for name in ("application_id", "user_version", "auto_vacuum")),
    ],
}
VALUES = (*JUNK, 2, 3, 4, 5, 6, "CREATE TABLE runs (x)", "CREATE VIEW runs AS SELECT 1")


def forge_value(connection, rng):
    """Change a value and compute a matching digest."""
    column = rng.choice((*COLUMNS[:-1], *["accuracies"] * 12, *["seconds", "steps", "kind"] * 3))
    wanted = store_module.TYPES[column]
    values = [value for value in JUNK if type(value) is wanted]
    value = rng.choice(values if rng.random() < 0.8 else JUNK)
    where = f"WHERE seed = {rng.randrange(10)} AND kind = 'reduced' AND recipe LIKE '%[1,2]%'"
    connection.execute(f"UPDATE OR REPLACE runs SET {column} = ? {where}", [value])
    connection.execute(f"UPDATE runs SET digest = digest({', '.join(COLUMNS[:-1])})")


def change_tables(path, kind, rng):
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.create_function("digest", -1, lambda *values: store_module.digest(values))
        connection.execute("PRAGMA synchronous = OFF")
        if kind == "forged value":
            forge_value(connection, rng)
        else:
            script = rng.choice(TABLES[kind]).replace("SEED", str(rng.randrange(10)))
            script = script.replace("SET COLUMN", f"SET {rng.choice(COLUMNS)}")
            for statement in [script] if "TRIGGER" in script else script.split(";"):
                connection.execute(statement, [rng.choice(VALUES)] if "?" in statement else [])
        if rng.random() < 0.1:
            connection.execute("VACUUM")
    except (sqlite3.Error, TypeError):  # refused by SQLite itself, or bytes have no digest
        pass
    finally:
        connection.close()


# ---- outcomes ------------------------------------------------------------------------------


def valid(row, recipe):
    accuracies = row.result.accuracies
    assert len(accuracies) == len(recipe.epochs)
    assert all(type(number) is float and 0 <= number <= 1 for number in accuracies), accuracies
    values = (row.result.seconds, row.result.visited, row.finished_at)
    assert [type(value) for value in values] == [float, int, str], values
    assert 0 <= row.result.seconds < math.inf
    assert row.result.visited >= 0
    datetime.fromisoformat(row.finished_at)
    assert all(type(text) is str for text in vars(row.environment).values())
    assert row.task == Task(*(getattr(row.task, name) for name in COLUMNS[3:7]))


def contents(path):
    return {file: file.read_bytes() for file in (path, Path(f"{path}-wal")) if file.exists()}


def outcome(path, read_only, written):
    """Return 'refused' or 'read'; `written` is None for forged stores."""
    before = contents(path)
    try:
        found = rows(path, read_only)
    except StoreError as error:
        line = str(error)
        assert line.isprintable(), line
        assert len(line) < 800, line
        assert contents(path) == before, line
        return "refused"
    for row, recipe in found:
        valid(row, recipe)
        assert written is None or row in written, row
    if read_only:
        assert contents(path) == before
    return "read"


def damaged(base, path, rng):
    """Create a damaged store; return its kind. The digests of a forged value match."""
    for file in path.parent.iterdir():
        file.unlink()
    with_log = rng.random() < 0.3
    for suffix in ("", "-wal", "-shm") if with_log else ("",):
        shutil.copy(f"{base}{'' if with_log else '.closed'}{suffix}", f"{path}{suffix}")
    if rng.random() < 0.5:
        kind = rng.choice((*TABLES, "any value", *["forged value"] * 3))
        change_tables(path, kind, rng)
    else:
        change = rng.choice(BYTES)
        target = Path(f"{path}-wal") if with_log and rng.random() < 0.6 else path
        target.write_bytes(change(target.read_bytes(), rng))
        kind = change.__name__
    return kind


def stores(count, seed):
    rng = random.Random(seed)
    counts = {"refused": Counter(), "read": Counter()}
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory) / "base"
        child = FORK.Process(target=fill_and_die, args=(base,))
        child.start()
        child.join()
        assert Path(f"{base}-wal").stat().st_size > 0
        fill(f"{base}.closed", range(10))
        written = {row for name in (base, f"{base}.closed") for row, _ in rows(name, True)}
        assert len(written) == 121
        (Path(directory) / "case").mkdir()
        path = Path(directory) / "case" / "runs.sqlite"
        for case in range(count):
            kind = damaged(base, path, rng)
            try:
                for read_only in (True, False, True):
                    signal.alarm(60)
                    told = outcome(path, read_only, None if kind == "forged value" else written)
                    signal.alarm(0)
            except BaseException:
                print(f"case {case} of seed {seed}: {kind}", file=sys.stderr)
                raise
            counts[told][kind] += 1
    return counts


# ---- Parquet files -----------------------------------------------------------------------


MOST_MEMORY = 6 * 2**30  # bytes of address space, of which threads reserve more than they use
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


def read(path, content):
    path.write_bytes(content)
    return open_table(path).read()


def parquet(count, seed):
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    rng, contents = random.Random(seed), originals()
    result, reasons = {"refused": 0, "same": 0, "another table": 0}, Counter()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "undamaged.parquet"
        expected = [repr(read(path, content).rows()) for content in contents]
        for i in range(count):
            which, change = rng.randrange(len(contents)), DAMAGES[i % len(DAMAGES)]
            path = Path(directory) / f"{i} {change.__name__}.parquet"
            try:
                frame = read(path, change(contents[which], rng))
            except TableError as error:
                said = str(error)
                assert "\n" not in said, said
                assert str(path) in said, said
                outcome = "refused"
                reasons[said.replace(str(path), "FILE")[:60]] += 1
            else:
                promised = pl.scan_parquet(path).select(pl.len()).collect().item()  # in the footer
                assert len(frame) == promised, (path, len(frame), promised)
                same = repr(frame.rows()) == expected[which]
                outcome = "same" if same else "another table"
            result[outcome] += 1
            path.unlink()
    return {**result, "reasons": dict(reasons.most_common(20))}
