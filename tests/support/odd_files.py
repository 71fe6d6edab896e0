"""Unusual CSV files, each with the expected result or error.

Each kind is a function of a random generator and of the header and the rows of a valid table.
"""

import gzip
from functools import partial
from typing import NamedTuple

import numpy as np


class Odd(NamedTuple):
    """The bytes of a file and the expected result of `quadric train`.

    `error` is a part of the expected one-line error. Without it, the file is valid, and `left_out`,
    `rows` and `classes` are what the command must find in it.
    """

    content: bytes
    error: str | None = None
    left_out: frozenset = frozenset()
    rows: int | None = None
    classes: int = 2
    target: str = "label"
    options: tuple = ()


def table(rng, rows=None):
    """Return a header and rows of text: two numbers, a category and a label."""
    rows = int(rng.integers(24, 60)) if rows is None else rows
    x, z = rng.normal(size=rows), rng.normal(size=rows)
    colour = rng.choice(["red", "green", "blue"], rows)
    colour[:3] = ["red", "green", "blue"]
    label = np.where(x**2 + z > 0.5, "in", "out")
    label[:4] = ["in", "out", "in", "out"]
    body = [[f"{x[i]:.4f}", f"{z[i]:.4f}", colour[i], label[i]] for i in range(rows)]
    return ["x", "z", "colour", "label"], body


def text(header, body, separator=",", end="\n"):
    return "".join(separator.join(row) + end for row in [header, *body])


def add(header, body, name, values):
    """Insert a column before the label."""
    return [*header[:-1], name, header[-1]], [
        [*row[:-1], value, row[-1]] for row, value in zip(body, values, strict=True)
    ]


def csv(header, body, error=None, **facts):
    return Odd(text(header, body).encode(), error, rows=len(body), **facts)


def changed(header, body, changes, error=None):
    """Replace the cells at these places."""
    for (row, column), word in changes.items():
        body[row][column] = word
    return csv(header, body, error)


def labelled(header, body, words):
    """Use these words as labels, in turn."""
    body = [[*row[:-1], words[i % len(words)]] for i, row in enumerate(body)]
    return csv(header, body, classes=len(words))


def long_row(rng, header, body):
    at = int(rng.integers(len(body)))
    body[at] = [*body[at], "more"]
    return csv(header, body, f"row {at + 1} of")


def short_row(rng, header, body):
    at = int(rng.integers(4, len(body)))
    body[at] = body[at][: int(rng.integers(1, 3))]  # the label is missing as well
    return csv(header, body)


def quoted(rng, header, body):
    names = ["x, first", 'the "z"', "colour\nof it"]
    header[:3] = ['"' + name.replace('"', '""') + '"' for name in names]
    body = [[f'"{cell}"' for cell in row] for row in body]
    body[0][2] = '"a ""red"",\none"'
    return csv(header, body)


def byte_order_mark(rng, header, body):
    header[0] = "label"  # the mark must not become part of the target's name
    header[-1] = "x"
    body = [[row[-1], *row[1:-1], row[0]] for row in body]
    return Odd(b"\xef\xbb\xbf" + text(header, body).encode(), rows=len(body))


def latin_1(rng, header, body):
    if rng.random() < 0.3:
        header[1] = "größe"
    body[int(rng.integers(len(body)))][2] = "grün"
    return Odd(text(header, body).encode("latin-1"), "is not in UTF-8: byte ")


def added(forms, left_out, rng, header, body):
    """Insert a column of numbers from 1 to 12, written in one of these forms."""
    form = str(rng.choice(forms))
    header, body = add(header, body, "more", [form.format(1 + i % 12) for i in range(len(body))])
    return csv(header, body, left_out=frozenset(["more"] if left_out else []))


def formulas(rng, header, body):
    """Formulas as categories, as classes, and as the name of the target."""
    words = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "-7"]
    header[-1] = "=label"
    body = [[*row[:2], words[i % 3], words[i % 5]] for i, row in enumerate(body)]
    return csv(header, body, classes=5, target="=label")


def infinite(rng, header, body):
    at = int(rng.integers(len(body)))
    body[at][0] = str(rng.choice(["inf", "-inf", "Infinity", "1e999", "1e200"]))
    return csv(header, body, f"in row {at + 1}: numbers must be finite")


def booleans(rng, header, body):
    words = np.array(rng.choice([["true", "false"], ["TRUE", "FALSE"], ["True", "False"]]))
    values = words[rng.integers(0, 2, len(body))].tolist()
    values[:2] = words.tolist()
    return csv(*add(header, body, "flag", values))


def many_columns(rng, header, body):
    count = int(rng.integers(200, 400))
    header, body = table(rng, 30)
    for_names = [f"c{i}" for i in range(count)]
    numbers = rng.normal(size=(30, count)).round(2).astype(str).tolist()
    body = [[*more, *row] for more, row in zip(numbers, body, strict=True)]
    return csv([*for_names, *header], body, options=("--kind", "reduced", "--hidden", "2"))


# ---- kinds that need only one expression -----------------------------------------------------

LARGE = [str(2**53 + i) for i in range(3)]  # floats cannot distinguish them
STRANGE = [f'"{word}"' for word in ("ja, é", "😀 \x1b[31m", "[red]x[/red]", "a" * 300, "=")]
MISSING = ("", "NA", "n/a", "NaN", "null", "None", "?", " ")
SPELLED = ("+1", "1e0", ".5", "5.", "-0", "1E-3", "007")
SIMPLE = {
    "plain": lambda rng, header, body: csv(header, body),
    "two_rows": lambda rng, header, body: csv(header, body[:2]),
    "large_whole_numbers": lambda rng, header, body: labelled(header, body, LARGE),
    "strange_labels": lambda rng, header, body: labelled(header, body, STRANGE),
    "whole_number_labels": lambda rng, header, body: labelled(header, body, ["0", "1.0", "2"]),
    "open_quote": lambda rng, header, body: changed(
        header, body, {(int(rng.integers(len(body))), 2): '"red'}, "quote"
    ),
    "missing_labels": lambda rng, header, body: changed(
        header,
        body,
        {
            (at, -1): str(rng.choice(["", "?", "NULL"]))
            for at in rng.choice(np.arange(4, len(body)), 3, replace=False)
        },
    ),
    "missing_values_of_each_spelling": lambda rng, header, body: changed(
        header, body, {(4 + at, int(rng.integers(3))): word for at, word in enumerate(MISSING)}
    ),
    "spelled_numbers": lambda rng, header, body: changed(
        header, body, {(4 + at, 0): word for at, word in enumerate(SPELLED)}
    ),
    "mistyped_number": lambda rng, header, body: changed(
        *table(rng, 80), {(17, 0): '"1,5o"'}, "the first is '1,5o' in row 18"
    ),
    "identifiers": lambda rng, header, body: csv(
        *add(*table(rng, 80), "id", [f"{rng.integers(2**62):x}z" for _ in range(80)]),
        left_out=frozenset(["id"]),
    ),
    "utf_16": lambda rng, header, body: Odd(text(header, body).encode("utf-16"), rows=len(body)),
    "carriage_returns": lambda rng, header, body: Odd(
        text(header, body, end="\r\n").encode(), rows=len(body)
    ),
    "other_separators": lambda rng, header, body: Odd(
        text(header, body, str(rng.choice([";", "\t", "|"]))).encode(), rows=len(body)
    ),
    "compressed": lambda rng, header, body: Odd(
        gzip.compress(text(header, body).encode()), rows=len(body)
    ),
    "utf_16_without_mark": lambda rng, header, body: Odd(
        text(header, body).encode("utf-16-le"), "byte 1 is zero"
    ),
    "only_carriage_returns": lambda rng, header, body: Odd(
        text(header, body, end="\r").encode(), "has CR line endings."
    ),
    "repeated_name": lambda rng, header, body: csv(
        ["x", "x", *header[2:]], body, "columns named 'x'"
    ),
    "empty_name": lambda rng, header, body: csv(  # as pandas writes an index
        ["", *header],
        [[str(i), *row] for i, row in enumerate(body)],
        left_out=frozenset(["column 1 (no name)"]),
    ),
    "blank_lines": lambda rng, header, body: csv(
        header, [*body[:5], *[[]] * int(rng.integers(1, 4)), *body[5:]]
    ),
    "blanks_around": lambda rng, header, body: csv(
        [f" {name} " for name in header], [[f"  {cell} " for cell in row] for row in body]
    ),
    "rare_class": lambda rng, header, body: csv(
        header, [*body, ["1", "2", "red", "rare"]], classes=3
    ),
    "many_classes": lambda rng, header, body: csv(
        header,
        [[*row[:-1], f"n{i}"] for i, row in enumerate(table(rng, 210)[1])],
        "210 distinct values in 210 rows",
    ),
    "cut_gzip": lambda rng, header, body: Odd(
        gzip.compress(text(header, body).encode())[: -int(rng.integers(1, 9))],
        "is a damaged gzip file",
    ),
    "no_names": lambda rng, header, body: csv([""] * 4, body, "has no column names"),
    "only_a_header": lambda rng, header, body: csv(header, [], "no rows"),
    "one_class": lambda rng, header, body: csv(
        header, [[*row[:-1], "in"] for row in body], "only one class, 'in'"
    ),
    "no_labels": lambda rng, header, body: csv(
        header, [[*row[:-1], ""] for row in body], "are missing"
    ),
    "only_labels": lambda rng, header, body: csv(
        ["label"], [[row[-1]] for row in body], "no column is left"
    ),
    "no_such_target": lambda rng, header, body: csv(
        header, body, "there is no column 'species'", target="species"
    ),
    "empty_file": lambda rng, header, body: Odd(b"\n" * int(rng.integers(0, 3)), "is empty"),
    "zip_archive": lambda rng, header, body: Odd(
        b"PK\x03\x04" + rng.bytes(500), "is a zip archive or a spreadsheet"
    ),
    "zero_byte_first": lambda rng, header, body: Odd(b"\x00" + rng.bytes(500), "byte 0 is zero"),
    "damaged_parquet": lambda rng, header, body: Odd(b"PAR1" + rng.bytes(500), "damaged Parquet"),
}


def by_name(*kinds):
    return {kind.__name__: kind for kind in kinds}


KINDS = {
    **SIMPLE,
    **by_name(long_row, short_row, quoted, byte_order_mark, latin_1),
    "all_missing": partial(added, ["", "NA", "nan", " "], True),
    "dates": partial(added, ["2024-{:02d}-03", "2024-{:02d}-03T10:00:00", "03/{:02d}/2024"], True),
    "times_of_day": partial(added, ["{:02d}:30", "{:02d}:30:00", "{:02d}:30:00.500"], False),
    **by_name(formulas, infinite),
    "one_value": partial(added, ["7", "same", "true"], True),
    **by_name(booleans, many_columns),
}
