"""Compressed files, other encodings, decimal commas, tabs, parts and standard input."""

import gzip
import io
import subprocess
import sys
from types import SimpleNamespace

import polars as pl
import pytest

from quadric.apps.shell.tables import TableFormat, _csv_file as reading, open_table
from quadric.apps.shell.tables._schema import features
from quadric.errors import TableError
from tests.support.tables import schema_of_source, write

ROWS = [[str(i), f"é{i % 3}", 'a "b",\nc' if i % 5 == 0 else "d"] for i in range(300)]
TEXT = "n,k,t\n" + "".join(f'{n},{k},"{t.replace(chr(34), chr(34) * 2)}"\n' for n, k, t in ROWS)


def rows_of(path, table_format=None):
    return [list(row) for row in open_table(path, table_format).read().rows()]


@pytest.mark.parametrize("block", [64, 1 << 22])
@pytest.mark.parametrize(
    ("encode", "encoding"),
    [
        (lambda text: gzip.compress(text.encode()), None),
        (lambda text: text.encode("utf-16"), None),
        (lambda text: b"\xfe\xff" + text.encode("utf-16-be"), None),
        (lambda text: text.encode("utf-16-le"), "utf-16-le"),
        (lambda text: text.encode("latin-1"), "latin-1"),
        (lambda text: gzip.compress(text.encode("latin-1")), "latin-1"),
        (lambda text: text.encode("utf-8-sig"), "utf-8"),
    ],
)
def test_every_row_of_a_compressed_or_recoded_file_is_read(
    tmp_path, monkeypatch, block, encode, encoding
):
    monkeypatch.setattr(reading, "BLOCK", block)
    monkeypatch.setattr(reading, "START", 5)  # within the header, and within a character
    path = write(tmp_path / "a.csv", encode(TEXT))
    source = open_table(path, TableFormat(encoding))
    assert source.columns == ("n", "k", "t")
    assert [list(row) for row in source.read().rows()] == ROWS
    assert [len(frame) for frame in source.batches(70, 50)] == [70, 70, 70, 40]


def write_zstd(path, text):
    """Write a Zstandard file by hand: a header and one block that is stored as it is."""
    content = text.encode()
    assert len(content) <= 2**17  # the longest block
    header = b"(\xb5/\xfd" + b"\xa0" + len(content).to_bytes(4, "little")
    return write(path, header + (1 | len(content) << 3).to_bytes(3, "little") + content)


def test_a_file_compressed_with_zstandard_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("quadric.apps.shell.tables._csv_file.LINES_AT_ONCE", 7)
    path = write_zstd(tmp_path / "a.csv.zst", TEXT)
    assert rows_of(path) == ROWS
    with pytest.raises(TableError, match=r"only for UTF-8. Decompress it first: zstd -d"):
        rows_of(path, TableFormat("latin-1"))
    write(path, path.read_bytes()[:-20])
    with pytest.raises(TableError, match="is damaged, or is not text in UTF-8 compressed with"):
        rows_of(path)


def test_the_wrong_encoding_is_reported_with_the_option(tmp_path):
    path = write(tmp_path / "a.csv", TEXT.encode("latin-1"))
    with pytest.raises(TableError, match=r"byte 8 is 0xe9\. Use --encoding, for example"):
        rows_of(path)
    with pytest.raises(TableError, match=r"is not in utf-16-le: .* Choose another --encoding"):
        rows_of(write(tmp_path / "b.csv", b"a\0b\0\n\0\0\xd8\0"), TableFormat("utf-16-le"))
    for name in ("latin1000", "base64", "rot13"):
        with pytest.raises(TableError, match="--encoding must be a text encoding"):
            TableFormat(name)
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(TableError, match="--encoding is for CSV files"):
        open_table(tmp_path / "a.parquet", TableFormat("latin-1"))


@pytest.mark.parametrize(
    ("options", "written", "read"),
    [
        ({"decimal": ","}, ["5,1", "-,5", "3,", "7", "1,5e3"], [5.1, -0.5, 3, 7, 1500]),
        (
            {"decimal": ",", "thousands": "."},
            ["1.234,5", "12.345", "1.234.567", "5,25", "1234"],
            [1234.5, 12345, 1234567, 5.25, 1234],
        ),
        ({"thousands": ","}, ["1,234", "12,345.5", "5.25", "-7"], [1234, 12345.5, 5.25, -7]),
        ({"thousands": "'"}, ["1'234", "1\u2019234"], [1234, 1234]),
        ({"thousands": " "}, ["1 234", "1\u00a0234", "1\u202f234"], [1234, 1234, 1234]),
        # not numbers in this format, so they remain text
        ({"thousands": ","}, ["1,5", "12,34,567", "a,b"], None),
        ({"decimal": ","}, ["1,2,3", "x,5", "12.03.2024a"], None),
    ],
)
def test_decimal_marks_and_thousands_are_read_as_given(tmp_path, options, written, read):
    text = "x;y\n" + "".join(f"{v};{i}\n" for i, v in enumerate([*written, written[0], "1"]))
    source = open_table(write(tmp_path / "a.csv", text), TableFormat(**options))
    schema = schema_of_source(source, "y")
    found = features(schema, source.read())["x"].to_list()[: len(written)]
    assert found == (written if read is None else read)


def test_a_point_is_not_silently_a_decimal_point_in_a_table_with_decimal_commas(tmp_path):
    """It may separate thousands, and the number would be 1000 times too small."""
    path = write(tmp_path / "a.csv", "x;y\n1,5;a\n1.234;b\n")
    with pytest.raises(TableError, match=r"'1.234' in row 2, .* add --thousands '\.'"):
        schema_of_source(open_table(path, TableFormat(decimal=",")), "y")
    source = open_table(path, TableFormat(decimal=",", thousands="."))
    assert features(schema_of_source(source, "y"), source.read())["x"].to_list() == [1.5, 1234]
    with pytest.raises(TableError, match="They must differ"):
        TableFormat(decimal=",", thousands=",")
    with pytest.raises(TableError, match="--decimal must be"):
        TableFormat(decimal=";")


def test_the_file_name_tells_that_tabs_separate_columns(tmp_path):
    text = "a,b;c,d\tx,y;z,w\n1\t2\n"
    for name, content in (("a.tsv", text.encode()), ("a.TSV.gz", gzip.compress(text.encode()))):
        assert open_table(write(tmp_path / name, content)).columns == ("a,b;c,d", "x,y;z,w")
    assert open_table(write(tmp_path / "a.csv", text)).columns[0] != "a,b;c,d"


def write_parts(directory):
    directory.mkdir()
    for i, values in enumerate(([1, 2], [2.5, None], [4, 5])):
        frame = pl.DataFrame({"x": values, "y": ["a", "b"]})
        frame.select(["y", "x"] if i == 1 else ["x", "y"]).write_parquet(
            directory / f"part-{i}.parquet"
        )
    write(directory / "_SUCCESS", "")
    write(directory / ".part-0.parquet.crc", "crc")
    return directory


@pytest.mark.parametrize("name", ["parts", "parts/part-*.parquet", "parts/part-[0-9].parquet"])
def test_parts_are_one_table(tmp_path, name):
    """The order of the columns may differ, and integers in one part may be floats in another."""
    write_parts(tmp_path / "parts")
    source = open_table(tmp_path / name)
    assert source.read()["x"].to_list() == [1, 2, 2.5, None, 4, 5]
    assert [frame["y"].to_list() for frame in source.batches(4)] == [list("abab"), list("ab")]
    before = source.fingerprint()
    pl.DataFrame({"x": [7, 8], "y": ["a", "b"]}).write_parquet(tmp_path / "parts/part-2.parquet")
    with pytest.raises(TableError, match=r"part-2.parquet changed while it was being read"):
        source.read()
    assert open_table(tmp_path / name).fingerprint()["content"] != before["content"]


@pytest.mark.slow
def test_parts_that_do_not_fit_are_refused(tmp_path):
    parts = write_parts(tmp_path / "parts")
    pl.DataFrame({"x": [1]}).write_parquet(parts / "part-1.parquet")
    with pytest.raises(TableError, match="have different columns: only one of them has 'y'"):
        open_table(parts)
    pl.DataFrame({"x": ["a"], "y": ["b"]}).write_parquet(parts / "part-1.parquet")
    assert open_table(parts).read()["x"].to_list() == ["1", "2", "a", "4", "5"]
    pl.DataFrame({"x": [[1]], "y": ["b"]}).write_parquet(parts / "part-1.parquet")
    with pytest.raises(TableError, match="a column has different types in different parts"):
        open_table(parts).read()
    write(parts / "part-1.parquet", b"PAR1 and nothing else")
    with pytest.raises(TableError, match=r"part-1.parquet is a damaged Parquet file"):
        open_table(parts)
    with pytest.raises(TableError, match="it is a directory without Parquet files"):
        open_table(write(tmp_path / "empty.txt", "").parent)
    with pytest.raises(TableError, match=r"no file matches .*\*\.csv"):
        open_table(tmp_path / "*.csv")


def test_a_pattern_of_csv_files_is_one_table(tmp_path):
    for i in range(3):
        write(tmp_path / f"{i}.csv", f"x,y\n{i},a\n{i + 10},b\n")
    assert open_table(tmp_path / "?.csv").read()["x"].to_list() == ["0", "10", "1", "11", "2", "12"]
    write(tmp_path / "a[1].csv", "x,y\n7,a\n")  # a file with this name is not a pattern
    assert open_table(tmp_path / "a[1].csv").read()["x"].to_list() == ["7"]


def test_standard_input_is_read_more_than_once(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(TEXT.encode())))
    source = open_table("-")
    for _ in range(2):
        assert [list(row) for row in source.read().rows()] == ROWS
    (file,) = source.versions
    assert file.exists()
    del source
    assert not file.exists()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(TableError, match="standard input is empty"):
        open_table("-")


@pytest.mark.unix
def test_a_real_pipe_is_read():
    script = (
        "from quadric.apps.shell.tables import open_table\n"
        "print(open_table('/dev/stdin').read().height)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], input=TEXT.encode(), capture_output=True, check=True
    )
    assert result.stdout == b"300\n"


@pytest.mark.parametrize(
    ("text", "kind", "read"),
    [
        ('{"a": 1, "b": [2]}\n{"a": 3, "b": []}\n', "JSON lines", "read_ndjson"),
        ('[{"a": 1},\n {"a": 2}]\n', "JSON", "read_json"),
        ('[\n {"a": 1}\n]\n', "JSON", "read_json"),
    ],
)
def test_a_json_file_is_recognized_with_the_conversion(tmp_path, text, kind, read):
    path = write(tmp_path / "a.csv", text.encode())
    with pytest.raises(
        TableError, match=f"contains {kind}, but tables are read from CSV"
    ) as caught:
        rows_of(path)
    assert f"polars.{read}({str(path)!r})" in str(caught.value)
    assert len(rows_of(write(tmp_path / "b.csv", b"[a],{b}\n1,2\n"))) == 1
