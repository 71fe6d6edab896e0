"""Run generated programs: Python, JavaScript in node, C with gcc or clang, SQL in databases."""

import contextlib
import csv
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest


def rows_of(X):
    """Rows as lists, with None for missing values."""
    rows = X.to_numpy(object).tolist() if hasattr(X, "columns") else np.asarray(X).tolist()
    return [[None if v is None or v != v else v for v in row] for row in rows]


def run_python(text, X):
    """Return the results of the functions of a Python module, by name."""
    module = {}
    exec(compile(text, "model.py", "exec"), module)
    functions = ("scores", "label", "probabilities", "values")
    rows = rows_of(X)
    return {name: [module[name](row) for row in rows] for name in functions if name in module}


def run_javascript(text, X, folder):
    """Return the results of the functions of a JavaScript module, by name."""
    node = shutil.which("node") or pytest.skip("node is not installed")
    (folder / "model.mjs").write_text(text, "utf-8")
    (folder / "rows.json").write_text(json.dumps(rows_of(X)), "utf-8")
    (folder / "main.mjs").write_text(
        """
import { readFileSync } from "node:fs";
import * as model from "./model.mjs";
const rows = JSON.parse(readFileSync("rows.json", "utf8"));
const found = {};
for (const name of ["scores", "label", "probabilities", "values"]) {
  if (name in model) found[name] = rows.map((row) => model[name](row));
}
console.log(JSON.stringify({ ...found, INPUTS: model.INPUTS, CLASSES: model.CLASSES }));
""",
        "utf-8",
    )
    done = subprocess.run(
        [node, "main.mjs"], cwd=folder, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
C_READER = """
#include <stdio.h>
#include <stdlib.h>
#include "model.h"

/* A row of the input has a number for every column, and after them, a text for every column. */
int main(void) {
  static REAL x[MODEL_INPUTS];
  static char buffer[MODEL_INPUTS][256];
  static const char *text[MODEL_INPUTS];
  static REAL z[MODEL_SCORES];
  static double line[MODEL_INPUTS];
  while (fread(line, sizeof(double), MODEL_INPUTS, stdin) == MODEL_INPUTS) {
    for (int i = 0; i < MODEL_INPUTS; i++) x[i] = CONVERT(i, line[i]);
    if (TEXTS) {
      for (int i = 0; i < MODEL_INPUTS; i++) {
        if (fread(buffer[i], 1, 256, stdin) != 256) return 1;
        text[i] = buffer[i][0] == '\\1' ? NULL : buffer[i] + 1;
      }
    }
    (void)text;
    (void)x;
    OUTPUT
  }
  return 0;
}
"""


def compile_c(text, folder, body, *, compiler="gcc", options=(), real="double", texts=False):
    """Return the path of a program that reads rows and runs `body` for each."""
    path = shutil.which(compiler) or pytest.skip(f"{compiler} is not installed")
    (folder / "model.h").write_text(text, "utf-8")
    convert = "model_fixed(i, line[i])" if real == "int32_t" else f"({real})line[i]"
    words = {"OUTPUT": body, "REAL": real, "TEXTS": str(int(texts))}
    source = C_READER.replace("CONVERT(i, line[i])", convert)
    for word, meaning in words.items():
        source = source.replace(word, meaning)
    (folder / "main.c").write_text(source, "utf-8")
    done = subprocess.run(
        [path, *WARNINGS, "-O2", *options, "main.c", "-o", "main", "-lm"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if "libclang_rt" in done.stderr:
        pytest.skip("the sanitizers of clang are not installed")
    assert done.returncode == 0, done.stderr
    return folder / "main"


def packed_rows(X, text_columns=()):
    """Rows in the form that the C program reads."""
    numbers = np.full(np.shape(X), np.nan)
    chunks = []
    for i in range(numbers.shape[1]):
        if i not in text_columns:
            column = X.iloc[:, i] if hasattr(X, "iloc") else X[:, i]
            with contextlib.suppress(ValueError):  # a text that the model does not use
                numbers[:, i] = np.asarray(column, dtype=float)
    if not text_columns:
        return numbers.tobytes()
    for row, values in zip(numbers, X.itertuples(index=False), strict=True):
        chunks.append(row.tobytes())
        for i, value in enumerate(values):
            text = "\2" + value if i in text_columns and isinstance(value, str) else "\1"
            chunks.append(text.encode().ljust(256, b"\0"))
    return b"".join(chunks)


def run_c(text, X, folder, *, text_columns=(), width=0, call="probabilities", **options):
    """Return the numbers that one of the functions computes for each row, and the labels."""
    args = "x, text" if text_columns else "x"
    real = options.get("real", "double")
    body = f"""{real} p[{width}];
    double out[{width} + 1];
    int failed = model_{call}({args}, p);
    for (int k = 0; k < {width}; k++) out[k] = failed ? -9.0 : (double)p[k];
    out[{width}] = LABEL;
    fwrite(out, sizeof(double), {width} + 1, stdout);
    (void)z;"""
    label = f"model_label({args})" if "model_label" in text else "0"
    body = body.replace("LABEL", label)
    program = compile_c(text, folder, body, texts=bool(text_columns), **options)
    done = subprocess.run([program], input=packed_rows(X, text_columns), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    found = np.frombuffer(done.stdout).reshape(-1, width + 1)
    return found[:, :width], found[:, width].astype(int)


def sql_type(kind, dialect):
    if kind == "O":
        return "TEXT"
    return {"sqlite": "REAL", "duckdb": "DOUBLE", "postgresql": "double precision"}[dialect]


def script(X, names, table, dialect, quoted):
    """The statements that create a table with a column `id` and the rows of X."""
    rows = rows_of(X)
    kinds = [next((type(r[i]) for r in rows if r[i] is not None), float) for i in range(len(names))]
    columns = ", ".join(
        f"{quoted(name)} {sql_type('O' if kind is str else 'f', dialect)}"
        for name, kind in zip(names, kinds, strict=True)
    )
    return f"CREATE TABLE {quoted(table)} (id INTEGER, {columns})", rows


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def run_sqlite(text, X, names, table="data"):
    """Return the names of the result's columns, and its rows in order of the first, `id`."""
    import sqlite3

    return _run_connected(sqlite3.connect(":memory:"), text, X, names, table, "sqlite")


def run_duckdb(text, X, names, table="data"):
    duckdb = pytest.importorskip("duckdb")
    return _run_connected(duckdb.connect(), text, X, names, table, "duckdb")


def _run_connected(connection, text, X, names, table, dialect):
    create, rows = script(X, names, table, dialect, quoted)
    connection.execute(create)
    marks = ", ".join("?" * (1 + len(names)))
    numbered = [(i, *row) for i, row in enumerate(rows)]
    connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", numbered)
    done = connection.execute(text)
    found = [entry[0] for entry in done.description], sorted(done.fetchall(), key=lambda r: r[0])
    connection.close()
    return found


class PostgreSQL:
    """A server in a temporary folder, reached through a socket there; `stop` ends it."""

    def __init__(self, folder):
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not programs:
            pytest.skip("PostgreSQL is not installed")
        self.bin, self.folder = programs[-1].parent, folder
        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        if os.getuid() != 0:
            self.user = []
        else:
            shutil.chown(folder, "postgres", "postgres")
        folder.chmod(0o755)
        data = folder / "data"
        self._run("initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        self._run("pg_ctl", "-D", data, "-w", "-o", options, "-l", folder / "log", "start")

    def _run(self, program, *arguments):
        done = subprocess.run(
            [*self.user, self.bin / program, *map(str, arguments)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    def stop(self):
        self._run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")

    def __call__(self, text, X, names, table="data"):
        create, rows = script(X, names, table, "postgresql", quoted)
        columns = ", ".join(["id", *map(quoted, names)])
        values = io.StringIO()
        writer = csv.writer(values, lineterminator="\n")
        for i, row in enumerate(rows):
            cells = [v.item() if hasattr(v, "item") else v for v in row]
            writer.writerow([i, *("" if v is None else v for v in cells)])
        load = f"COPY {quoted(table)} ({columns}) FROM STDIN WITH (FORMAT csv);\n"
        load += values.getvalue() + "\\.\n"
        body = f"BEGIN;\n{create};\n{load}COPY ({text.rstrip().rstrip(';')}) TO STDOUT "
        body += "WITH (FORMAT csv, HEADER);\nROLLBACK;\n"
        done = subprocess.run(
            [self.bin / "psql", "-h", self.folder, "-U", "tester", "-d", "postgres", "-q",
             "-v", "ON_ERROR_STOP=1", "-X"],
            input=body, capture_output=True, text=True, encoding="utf-8",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = list(csv.reader(io.StringIO(done.stdout)))
        return found[0], sorted(found[1:], key=lambda row: int(row[0]))
