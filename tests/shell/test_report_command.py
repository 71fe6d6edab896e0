"""`quadric report` and `train --report`."""

import re
import shlex
import sys
import types
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from quadric.apps.shell._report_page import usage
from quadric.apps.shell.commands._inputs import open_model
from quadric.apps.shell.tables import TableFormat, open_table
from tests.support.commands import assert_error, command

pytestmark = pytest.mark.slow


class Links(HTMLParser):
    """The sources and links of a page, and its tags that are not closed."""

    def __init__(self):
        super().__init__()
        self.found, self.open, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href", "srcset")]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in ("meta", "img", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(path):
    text = path.read_text()
    page = Links()
    page.feed(text)
    assert not page.open
    inside = [link.removeprefix("#") for link in page.found if link.startswith("#")]
    assert inside == page.ids  # every heading is in the contents
    pictures = [link for link in page.found if not link.startswith("#")]
    assert all(link.startswith("data:image/png;base64,") for link in pictures)
    assert not re.search(r"https?://|@import|<script", text)
    return unescape(text), len(pictures)


def test_the_page_is_complete_and_loads_nothing(place, tmp_path):
    path = tmp_path / "report.html"
    result = command("report", place / "iris.quadric", place / "iris.csv", "-o", path)
    assert result.returncode == 0, result.stderr
    assert f"Report: {path}" in result.stdout
    text, pictures = read(path)
    assert pictures == 10  # the dependence and two rows are there twice, also for narrow screens
    for part in (
        'name="viewport"',
        "@media print",
        "balanced accuracy",
        "Confusion matrix",
        "ROC and precision-recall curves",
        "Calibration",
        "Equation",
        '<th scope="col">z(setosa) = ',
        "quadric explain --all lists them",
        "Importances",
        "Contributions of the inputs",
        "Means of absolute values over 150 rows. The bars are averages over the scores.",
        "petal_length × petal_width",
        "Typical row that is predicted as ",
        "Boundaries",
        "Dependence and interactions",
        "Least certain rows",
        "petal_width",
        "quadric predict iris.quadric iris.csv",
        "quadric export iris.quadric iris.onnx",
        "hash of the model file",
    ):
        assert part in text, part
    command("report", place / "iris.quadric", place / "iris.csv", "-o", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == path.read_bytes()


def test_train_reports_on_the_held_out_rows(place, tmp_path):
    path = tmp_path / "report.html"
    arguments = ["train", place / "iris.csv", "-t", "species", "-o", tmp_path / "m", "--hidden"]
    result = command(*arguments, "none", "--holdout", "--report", path)
    assert result.returncode == 0, result.stderr
    text, _ = read(path)
    assert "Scores: 36 held-out rows, which the saved model was not trained on." in text
    assert "logistic regression" in text
    for options in (["--stream"], ["--test-size", "0"]):
        assert command(*arguments, "none", "--report", path, *options).returncode == 2


def test_a_cross_validated_model_is_reported_on_all_folds(place, tmp_path):
    path = tmp_path / "report.html"
    arguments = ["train", place / "iris.csv", "-t", "species", "-o", tmp_path / "m", "--alpha", "1"]
    result = command(*arguments, "--hidden", "none", "--cv", "3", "--report", path)
    assert result.returncode == 0, result.stderr
    text, _ = read(path)
    assert "Scores: 3-fold cross-validation; the saved model is trained on all rows." in text
    listed = re.search(r'<h2 id="rows">Least certain rows</h2>.*?</table>', text, re.DOTALL)[0]
    numbers = [int(number) for number in re.findall(r"<tr><td>(\d+)</td>", listed)]
    assert len(numbers) == 10
    truth = pl.read_csv(place / "iris.csv")["species"]
    shown = re.findall(r"<tr><td>\d+</td><td>(\w+)</td>", listed)
    assert shown == [truth[number - 1] for number in numbers]


def written_as(kind, frame, directory):
    """Write a table; return its name and the options that it needs."""
    if kind == "parts":
        (directory / "parts").mkdir()
        frame[:20].write_csv(directory / "parts" / "1.csv")
        frame[20:].write_csv(directory / "parts" / "2.csv")
        return "parts/*.csv", {}
    if kind == "directory":
        (directory / "rows").mkdir()
        frame.write_parquet(directory / "rows" / "1.parquet")
        return "rows", {}
    if kind == "tabs":
        frame.write_csv(directory / "it's.tsv", separator="\t")
        return "it's.tsv", {}
    if kind == "marks":
        text = frame.with_columns((pl.col("a") * 1000).round(1)).write_csv(separator=";")
        text = re.sub(r"(\d+)(\d\d\d)\.(\d)", r"\1.\2,\3", text).replace("NaN", "NA")
        text = re.sub(r"(?m)^(-?\d+)\.(\d);", r"\1,\2;", text)
        (directory / "marks.csv").write_bytes(text.encode("latin-1"))
        return "marks.csv", {"encoding": "latin-1", "decimal": ",", "thousands": "."}
    frame.write_csv(directory / "table.csv")
    return "table.csv", {}


@pytest.mark.parametrize("kind", ["file", "stdin", "parts", "directory", "tabs", "marks"])
def test_the_commands_and_the_code_on_the_page_run(kind, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=60), "città": rng.choice(["è", "b"], 60)})
    frame = frame.with_columns(y=pl.Series(np.where(frame["a"] ** 2 > 0.5, "yes", "no")))
    name, options = written_as(kind, frame, tmp_path)
    monkeypatch.chdir(tmp_path)
    given = [text for key, value in options.items() for text in (f"--{key}", value)]
    fixed = ["--alpha", "1", "--hidden", "none", "--test-size", "0", "-o", "m o.quadric"]
    result = command("train", name, "-t", "y", *fixed, *given)
    assert result.returncode == 0, result.stderr
    with open(name if kind == "stdin" else tmp_path / "m o.quadric", "rb") as stream:
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stream))
        source = open_table("-" if kind == "stdin" else name, TableFormat(**options))
    opened = open_model(Path("m o.quadric"), source)
    texts = usage(Path("m o.quadric"), opened.model, opened.schema, source)
    for line in texts["Shell"].splitlines():
        program, *arguments = shlex.split(line)
        result = command(*arguments)
        assert (program, result.returncode) == ("quadric", 0), result.stderr
    *code, last = texts["Python"].splitlines()
    space = {}
    exec("\n".join(code), space)
    found = eval(last, space)
    assert found.tolist() == pl.read_csv("predictions.csv")["y"].to_list()
    assert (found == frame["y"].to_numpy()).mean() > 0.8


def test_odd_names_are_escaped_in_the_report(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    names = ["<script>alert(1)</script>", "$a_b$", "price & <b>"]
    columns = dict(zip(names, [*X.T, X[:, 0] ** 2 + X[:, 1]], strict=True))
    pl.DataFrame(columns).write_csv(tmp_path / "a.csv")
    arguments = ["train", tmp_path / "a.csv", "-t", names[2], "-o", tmp_path / "m"]
    result = command(*arguments, "--hidden", "none", "--report", tmp_path / "r.html")
    assert result.returncode == 0, result.stderr
    raw = (tmp_path / "r.html").read_text()
    assert "<script" not in raw
    assert "<b>" not in raw
    assert "Rows with the largest errors" in raw
    assert "&lt;script&gt;" in raw


def test_an_output_that_is_an_input_is_refused(place):
    model = place / "iris.quadric"
    assert_error(command("report", model, place / "iris.csv", "-o", model), "would be overwritten")


def test_numbers_of_money_are_written_in_full_and_the_network_has_importances(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2))
    price = np.round(57_540 + 400_000 * np.abs(X[:, 0]) + 100_000 * X[:, 1])
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "price": price}).write_csv(tmp_path / "a.csv")
    arguments = ["train", tmp_path / "a.csv", "-t", "price", "-o", tmp_path / "m", "--alpha", "0.1"]
    result = command(*arguments, "--hidden", "4", "--report", tmp_path / "r.html")
    assert result.returncode == 0, result.stderr
    text, pictures = read(tmp_path / "r.html")
    assert pictures == 4
    for printed in (result.stdout, re.sub(r"data:image[^\"]*", "", text)):
        assert re.search(r"\d\d\d? \d\d\d", printed)
        assert not re.search(r"\d\.\d*e\+", printed)
    assert "No contributions of the inputs: the model folds to 2 layers, so its" in text
    assert "Importances: shares of the mean absolute change of the prediction" in text
    bars = re.findall(r'<i class="total" style="width: ([\d.]+)%"></i>', text)
    assert sum(map(float, bars)) == pytest.approx(100, abs=0.2)
    result = command("explain", tmp_path / "m", tmp_path / "a.csv")
    assert result.returncode == 0, result.stderr
    assert not re.search(r"\d\.\d*e\+", result.stdout)
    assert "metric" in (info := command("info", tmp_path / "m")).stdout
    assert re.search(r"metric +│ R²", info.stdout)
