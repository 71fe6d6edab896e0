"""Unusual CSV files, each with the expected result or error.

Each kind is a function of a random generator and of the header and the rows of a valid table.
"""

import gzip
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


def right(header, body, **facts):
    return Odd(text(header, body).encode(), rows=len(body), **facts)


def plain(rng, header, body):
    return right(header, body)


def long_row(rng, header, body):
    at = int(rng.integers(len(body)))
    body[at] = [*body[at], "more"]
    return Odd(text(header, body).encode(), f"row {at + 1} of")


def short_row(rng, header, body):
    at = int(rng.integers(4, len(body)))
    body[at] = body[at][: int(rng.integers(1, 3))]  # the label is missing as well
    return right(header, body)


def quoted(rng, header, body):
    names = ["x, first", 'the "z"', "colour\nof it"]
    header[:3] = ['"' + name.replace('"', '""') + '"' for name in names]
    body = [[f'"{cell}"' for cell in row] for row in body]
    body[0][2] = '"a ""red"",\none"'
    return right(header, body)


def open_quote(rng, header, body):
    body[int(rng.integers(len(body)))][2] = '"red'
    return Odd(text(header, body).encode(), "quote")


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


def utf_16(rng, header, body):
    return Odd(text(header, body).encode("utf-16"), rows=len(body))


def utf_16_without_mark(rng, header, body):
    return Odd(text(header, body).encode("utf-16-le"), "byte 1 is zero")


def repeated_name(rng, header, body):
    header[1] = header[0]
    return Odd(text(header, body).encode(), "columns named 'x'")


def empty_name(rng, header, body):
    body = [[str(i), *row] for i, row in enumerate(body)]  # as pandas writes an index
    return right(["", *header], body, left_out=frozenset(["column 1 (no name)"]))


def no_names(rng, header, body):
    return Odd(text(["", "", "", ""], body).encode(), "has no column names")


def only_a_header(rng, header, body):
    return Odd(text(header, []).encode(), "no rows")


def empty_file(rng, header, body):
    return Odd(b"\n" * int(rng.integers(0, 3)), "is empty")


def one_class(rng, header, body):
    return Odd(text(header, [[*row[:-1], "in"] for row in body]).encode(), "only one class, 'in'")


def all_missing(rng, header, body):
    empty = str(rng.choice(["", "NA", "nan", " "]))
    return right(*add(header, body, "hole", [empty] * len(body)), left_out=frozenset(["hole"]))


def dates(rng, header, body):
    form = str(rng.choice(["2024-{:02d}-03", "2024-{:02d}-03T10:00:00", "03/{:02d}/2024"]))
    days = [form.format(1 + i % 12) for i in range(len(body))]
    return right(*add(header, body, "when", days), left_out=frozenset(["when"]))


def times_of_day(rng, header, body):
    form = str(rng.choice(["{:02d}:30", "{:02d}:30:00", "{:02d}:30:00.500"]))
    return right(*add(header, body, "at", [form.format(i % 12) for i in range(len(body))]))


def formulas(rng, header, body):
    """Formulas as categories, as classes, and as the name of the target."""
    words = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "-7"]
    header[-1] = "=label"
    body = [[*row[:2], words[i % 3], words[i % 5]] for i, row in enumerate(body)]
    return right(header, body, classes=5, target="=label")


def large_whole_numbers(rng, header, body):
    """Labels and categories that floats cannot distinguish."""
    body = [[*row[:-1], str(2**53 + i % 3)] for i, row in enumerate(body)]
    return right(header, body, classes=3)


def infinite(rng, header, body):
    at = int(rng.integers(len(body)))
    body[at][0] = str(rng.choice(["inf", "-inf", "Infinity", "1e999", "1e200"]))
    return Odd(text(header, body).encode(), f"in row {at + 1}: numbers must be finite")


def missing_labels(rng, header, body):
    for at in rng.choice(np.arange(4, len(body)), 3, replace=False):
        body[at][-1] = str(rng.choice(["", "?", "NULL"]))
    return right(header, body)


def no_labels(rng, header, body):
    return Odd(text(header, [[*row[:-1], ""] for row in body]).encode(), "are missing")


def carriage_returns(rng, header, body):
    return Odd(text(header, body, end="\r\n").encode(), rows=len(body))


def only_carriage_returns(rng, header, body):
    return Odd(text(header, body, end="\r").encode(), "has CR line endings.")


def other_separators(rng, header, body):
    return Odd(text(header, body, str(rng.choice([";", "\t", "|"]))).encode(), rows=len(body))


def one_value(rng, header, body):
    value = str(rng.choice(["7", "same", "true"]))
    return right(*add(header, body, "all", [value] * len(body)), left_out=frozenset(["all"]))


def identifiers(rng, header, body):
    header, body = table(rng, 80)
    ids = [f"{rng.integers(2**62):x}z" for _ in body]
    return right(*add(header, body, "id", ids), left_out=frozenset(["id"]))


def mistyped_number(rng, header, body):
    header, body = table(rng, 80)
    body[17][0] = "1,5o"
    body[17] = [f'"{body[17][0]}"', *body[17][1:]]
    return Odd(text(header, body).encode(), "the first is '1,5o' in row 18")


def booleans(rng, header, body):
    words = np.array(rng.choice([["true", "false"], ["TRUE", "FALSE"], ["True", "False"]]))
    values = words[rng.integers(0, 2, len(body))].tolist()
    values[:2] = words.tolist()
    return right(*add(header, body, "flag", values))


def blank_lines(rng, header, body):
    count = int(rng.integers(1, 4))
    return right(header, [*body[:5], *[[]] * count, *body[5:]])


def two_rows(rng, header, body):
    return right(header, body[:2])


def missing_values_of_each_spelling(rng, header, body):
    for at, word in enumerate(["", "NA", "n/a", "NaN", "null", "None", "?", " "]):
        body[4 + at][int(rng.integers(3))] = word
    return right(header, body)


def blanks_around(rng, header, body):
    header = [f" {name} " for name in header]
    return right(header, [[f"  {cell} " for cell in row] for row in body])


def spelled_numbers(rng, header, body):
    for at, word in enumerate(["+1", "1e0", ".5", "5.", "-0", "1E-3", "007"]):
        body[4 + at][0] = word
    return right(header, body)


def strange_labels(rng, header, body):
    words = ["ja, é", "😀 \x1b[31m", "[red]x[/red]", "a" * 300, "="]
    return right(
        header, [[*row[:-1], f'"{words[i % 5]}"'] for i, row in enumerate(body)], classes=5
    )


def whole_number_labels(rng, header, body):
    words = ["0", "1.0", "2"]
    return right(header, [[*row[:-1], words[i % 3]] for i, row in enumerate(body)], classes=3)


def only_labels(rng, header, body):
    return Odd(text(["label"], [[row[-1]] for row in body]).encode(), "no column is left")


def no_such_target(rng, header, body):
    return Odd(text(header, body).encode(), "there is no column 'species'", target="species")


def compressed(rng, header, body):
    return Odd(gzip.compress(text(header, body).encode()), rows=len(body))


def cut_gzip(rng, header, body):
    content = gzip.compress(text(header, body).encode())
    return Odd(content[: -int(rng.integers(1, 9))], "is a damaged gzip file")


def zip_archive(rng, header, body):
    return Odd(b"PK\x03\x04" + rng.bytes(500), "is a zip archive or a spreadsheet")


def zero_byte_first(rng, header, body):
    return Odd(b"\x00" + rng.bytes(500), "byte 0 is zero")


def damaged_parquet(rng, header, body):
    return Odd(b"PAR1" + rng.bytes(500), "damaged Parquet")


def rare_class(rng, header, body):
    body[-1][-1] = "rare"
    return right(header, body, classes=3)


def many_classes(rng, header, body):
    header, body = table(rng, 210)
    return Odd(
        text(header, [[*row[:-1], f"n{i}"] for i, row in enumerate(body)]).encode(),
        "210 distinct values in 210 rows",
    )


def many_columns(rng, header, body):
    count = int(rng.integers(200, 400))
    header, body = table(rng, 30)
    for_names = [f"c{i}" for i in range(count)]
    numbers = rng.normal(size=(30, count)).round(2).astype(str).tolist()
    body = [[*more, *row] for more, row in zip(numbers, body, strict=True)]
    return right([*for_names, *header], body, options=("--kind", "reduced", "--hidden", "2"))


KINDS = (
    plain,
    long_row,
    short_row,
    quoted,
    open_quote,
    byte_order_mark,
    latin_1,
    utf_16,
    utf_16_without_mark,
    repeated_name,
    empty_name,
    no_names,
    only_a_header,
    empty_file,
    one_class,
    all_missing,
    dates,
    times_of_day,
    formulas,
    large_whole_numbers,
    infinite,
    missing_labels,
    no_labels,
    carriage_returns,
    only_carriage_returns,
    other_separators,
    one_value,
    identifiers,
    mistyped_number,
    booleans,
    blank_lines,
    two_rows,
    missing_values_of_each_spelling,
    blanks_around,
    spelled_numbers,
    strange_labels,
    whole_number_labels,
    only_labels,
    no_such_target,
    compressed,
    cut_gzip,
    zip_archive,
    zero_byte_first,
    damaged_parquet,
    rare_class,
    many_classes,
    many_columns,
)
