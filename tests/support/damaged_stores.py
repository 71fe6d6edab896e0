"""Open thousands of damaged and forged stores; a crash or a hang ends the process.

    python -m tests.support.processes damaged_stores COUNT SEED

This command prints, as JSON, how many of each kind were refused and how many could be read. A
refused store leads to a one-line error and is unchanged. All others return the rows as written or,
if they were forged with matching digests, valid rows.
"""

import math
import random
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

from quadric.apps.paper.sweep import Result, Store, StoreError, Task, _store as store_module
from tests.support import damage
from tests.support.killing import FORK
from tests.support.sweep_process import HERE, RECIPE

RECIPES = [replace(RECIPE, epochs=(1, 2)), replace(RECIPE, epochs=(3, 4, 5))]
PAGE = 4096
JUNK = (
    None,
    "",
    "x",
    "NaN",
    "[NaN]",
    "[0.5, NaN]",
    "[0.5, 2.0]",
    "[]",
    "{}",
    "[[0.5]]",
    "null",
    "\n",
    "\x1b[2J",
    b"",
    b"\xff\xfe",
    0,
    1,
    -1,
    2**62,
    1.5,
    -0.0,
    math.inf,
    -math.inf,
    "linear",
    "\ud7ff",
    "2020-01-01",
    "[1e999, 0.5]",
    "[true, false]",
    "[0.25, 0.75]",
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
    with Store(path, read_only=read_only) as opened:
        return [row for recipe in RECIPES for row in opened.runs(recipe, "data")]


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
    assert type(row.result.seconds) is float
    assert 0 <= row.result.seconds < math.inf
    assert type(row.result.visited) is int
    assert row.result.visited >= 0
    assert type(row.finished_at) is str
    datetime.fromisoformat(row.finished_at)
    assert all(type(text) is str for text in vars(row.environment).values())
    assert row.task == Task(*(getattr(row.task, name) for name in COLUMNS[3:7]))


def outcome(path, read_only, written):
    """Return 'refused' or 'read'; `written` is None for forged stores."""
    files = [path, Path(f"{path}-wal")]
    before = [file.read_bytes() if file.exists() else None for file in files]
    try:
        with Store(path, read_only=read_only) as opened:
            found = [(row, recipe) for recipe in RECIPES for row in opened.runs(recipe, "data")]
    except StoreError as error:
        line = str(error)
        assert line.isprintable(), line
        assert len(line) < 800, line
        assert [file.read_bytes() if file.exists() else None for file in files] == before, line
        return "refused"
    for row, recipe in found:
        valid(row, recipe)
        assert written is None or row in written, row
    if read_only:
        assert [file.read_bytes() if file.exists() else None for file in files] == before
    return "read"


def damaged(base, path, rng):
    """Create a damaged store; return its kind and whether its digests may match."""
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
    return kind, kind == "forged value"


def run(count, seed):
    rng = random.Random(seed)
    counts = {"refused": Counter(), "read": Counter()}
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory) / "base"
        child = FORK.Process(target=fill_and_die, args=(base,))
        child.start()
        child.join()
        assert Path(f"{base}-wal").stat().st_size > 0
        fill(f"{base}.closed", range(10))
        written = {row for name in (base, f"{base}.closed") for row in rows(name, True)}
        assert len(written) == 121
        (Path(directory) / "case").mkdir()
        path = Path(directory) / "case" / "runs.sqlite"
        for case in range(count):
            kind, is_forged = damaged(base, path, rng)
            try:
                for read_only in (True, False, True):
                    signal.alarm(60)
                    told = outcome(path, read_only, None if is_forged else written)
                    signal.alarm(0)
            except BaseException:
                print(f"case {case} of seed {seed}: {kind}", file=sys.stderr)
                raise
            counts[told][kind] += 1
    return counts
