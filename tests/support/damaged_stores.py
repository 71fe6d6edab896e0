"""Open thousands of damaged and forged stores; a crash or a hang ends the process.

    python -m tests.support.damaged_stores COUNT SEED

This command prints, as JSON, how many of each kind were refused and how many could be read. A
refused store leads to a one-line error and is unchanged. All others return the rows as written or,
if they were forged with matching digests, valid rows.
"""

import json
import math
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from quadric.apps.paper.sweep import Result, Store, StoreError, Task, _store as store_module
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


def flip_bits(content, rng):
    for _ in range(rng.choice((1, 1, 1, 2, 8, 50))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def flip_header(content, rng):
    for _ in range(rng.choice((1, 1, 2))):
        content[rng.randrange(200)] ^= 1 << rng.randrange(8)


def set_bytes(content, rng):
    place, length = rng.randrange(len(content)), rng.randint(1, 60)
    content[place : place + length] = rng.randbytes(length)


def set_number(content, rng):
    """Change a number where SQLite stores offsets, counts and page numbers."""
    page = rng.randrange(len(content) // PAGE) * PAGE
    place = page + (100 if page == 0 else 0) + rng.randrange(40)
    value = rng.choice((0, 1, 2, 0x7FFFFFFF, 0xFFFFFFFF, rng.randrange(64)))
    content[place : place + 4] = struct.pack(">I", value)


def digits(content, rng):
    """Change a digit in a string, which leaves a plausible number."""
    places = [i for i, sign in enumerate(content) if 0x30 <= sign <= 0x39]
    content[rng.choice(places)] = rng.randrange(0x30, 0x3A)


def cut(content, rng):
    del content[rng.choice((rng.randrange(len(content)), rng.randrange(5) * PAGE)) :]


def lengthen(content, rng):
    content += rng.randbytes(rng.choice((1, 100, PAGE)))


def zero_page(content, rng):
    page = rng.randrange(len(content) // PAGE) * PAGE
    content[page : page + PAGE] = bytes(PAGE)


def copy_page(content, rng):
    one, two = (rng.randrange(len(content) // PAGE) * PAGE for _ in range(2))
    content[one : one + PAGE] = content[two : two + PAGE]


def insert_bytes(content, rng):
    place = rng.randrange(len(content))
    content[place:place] = rng.randbytes(rng.randint(1, 40))


BYTES = (
    flip_bits,
    flip_header,
    set_bytes,
    set_number,
    digits,
    cut,
    lengthen,
    zero_page,
    copy_page,
    insert_bytes,
)


# ---- tables --------------------------------------------------------------------------------


def any_value(connection, rng):
    column, seed = rng.choice(COLUMNS), rng.randrange(10)
    return f"UPDATE OR REPLACE runs SET {column} = ? WHERE seed = {seed}", rng.choice(JUNK)


def forged_value(connection, rng):
    """Change a value and compute a matching digest."""
    column = rng.choice((*COLUMNS[:-1], *["accuracies"] * 12, *["seconds", "steps", "kind"] * 3))
    wanted = store_module.TYPES[column]
    values = [value for value in JUNK if type(value) is wanted]
    value = rng.choice(values if rng.random() < 0.8 else JUNK)
    where = f"WHERE seed = {rng.randrange(10)} AND kind = 'reduced' AND recipe LIKE '%[1,2]%'"
    connection.execute(f"UPDATE OR REPLACE runs SET {column} = ? {where}", [value])
    return f"UPDATE runs SET digest = digest({', '.join(COLUMNS[:-1])})", None


def loose_table(connection, rng):
    """Use columns without types or constraints, which can contain NULL and NaN."""
    connection.execute("CREATE TABLE loose AS SELECT * FROM runs")
    connection.execute("DROP TABLE runs")
    connection.execute("ALTER TABLE loose RENAME TO runs")
    return f"UPDATE runs SET {rng.choice(COLUMNS)} = ?", rng.choice(JUNK)


def no_column(connection, rng):
    column = rng.choice(("accuracies", "seconds", "steps", "cpu", "finished_at", "digest"))
    return f"ALTER TABLE runs DROP COLUMN {column}", None


def other_column(connection, rng):
    return f"ALTER TABLE runs RENAME COLUMN {rng.choice(COLUMNS)} TO other", None


def more(connection, rng):
    statement = rng.choice(
        (
            "ALTER TABLE runs ADD COLUMN more",
            "CREATE TABLE more (x)",
            "CREATE INDEX i ON runs (seed)",
            "CREATE VIEW v AS SELECT * FROM runs",
            "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
        )
    )
    return statement, None


def no_table(connection, rng):
    return f"DROP TABLE {rng.choice(('runs', 'meta'))}", None


def schema(connection, rng):
    connection.execute("PRAGMA writable_schema = ON")
    column = rng.choice(("type", "name", "tbl_name", "rootpage", "sql"))
    name = rng.choice(("runs", "meta", "sqlite_autoindex_runs_1", "sqlite_autoindex_meta_1"))
    value = rng.choice(
        (*JUNK, 2, 3, 4, 5, 6, "CREATE TABLE runs (x)", "CREATE VIEW runs AS SELECT 1")
    )
    return f"UPDATE sqlite_master SET {column} = ? WHERE name = '{name}'", value


def meta(connection, rng):
    column = rng.choice(("name", "value"))
    return f"UPDATE OR REPLACE meta SET {column} = ? WHERE name = 'format'", rng.choice(JUNK)


def no_rows(connection, rng):
    if rng.random() < 0.5:
        return "DELETE FROM meta", None
    return f"DELETE FROM runs WHERE seed >= {rng.randrange(10)}", None


def setting(connection, rng):
    name = rng.choice(("application_id", "user_version", "auto_vacuum", "journal_mode"))
    value = "DELETE" if name == "journal_mode" else rng.randrange(3)
    return f"PRAGMA {name} = {value}", None


TABLES = (
    any_value,
    any_value,
    forged_value,
    forged_value,
    forged_value,
    loose_table,
    no_column,
    other_column,
    more,
    no_table,
    schema,
    meta,
    no_rows,
    setting,
)


def change_tables(path, change, rng):
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.create_function("digest", -1, lambda *values: store_module.digest(values))
        connection.execute("PRAGMA synchronous = OFF")
        statement, value = change(connection, rng)
        connection.execute(statement, [value] if "?" in statement else [])
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
        change = rng.choice(TABLES)
        change_tables(path, change, rng)
    else:
        change = rng.choice(BYTES)
        target = Path(f"{path}-wal") if with_log and rng.random() < 0.6 else path
        content = bytearray(target.read_bytes())
        change(content, rng)
        target.write_bytes(content)
    return change.__name__, change is forged_value


def main(count, seed):
    rng = random.Random(seed)
    counts = {"refused": Counter(), "read": Counter()}
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory) / "base"
        subprocess.run(
            [sys.executable, "-m", "tests.support.damaged_stores", str(base)], check=False
        )
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
    print(json.dumps(counts))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        fill_and_die(Path(sys.argv[1]))
    main(int(sys.argv[1]), int(sys.argv[2]))
