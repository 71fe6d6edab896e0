"""`quadric report` and `train --report`."""

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

from tests.support.commands import command, is_one_line

pytestmark = pytest.mark.slow


class Links(HTMLParser):
    """The sources and links of a page, and its tags that are not closed."""

    def __init__(self):
        super().__init__()
        self.found, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(path):
    text = path.read_text()
    page = Links()
    page.feed(text)
    assert not page.open
    assert all(link.startswith("data:image/png;base64,") for link in page.found)
    assert not re.search(r"https?://|@import|<script", text)
    return unescape(text), len(page.found)


def test_the_page_is_complete_and_loads_nothing(place, tmp_path):
    path = tmp_path / "report.html"
    result = command("report", place / "iris.quadric", place / "iris.csv", "-o", path)
    assert result.returncode == 0, result.stderr
    assert f"Report: {path}" in result.stdout
    text, pictures = read(path)
    assert pictures == 2
    for part in (
        'name="viewport"',
        "@media print",
        "balanced accuracy",
        "Confusion matrix",
        "Calibration",
        "Equation",
        "Importances",
        "Boundaries",
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
    result = command(*arguments, "none", "--report", path)
    assert result.returncode == 0, result.stderr
    text, _ = read(path)
    assert "scored on 36 rows" in " ".join(text.split())
    assert "logistic regression" in text
    for options in (["--cv", "3"], ["--stream"], ["--test-size", "0"]):
        assert command(*arguments, "none", "--report", path, *options).returncode == 2


def test_a_regressor_with_odd_names(tmp_path):
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
    is_one_line(command("report", model, place / "iris.csv", "-o", model), "would be overwritten")
