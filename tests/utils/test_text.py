"""Names are plain text: they do not control the terminal and are not parsed as formulas."""

import re
import sys
import unicodedata
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from typer.testing import CliRunner

from quadric import QuadraticLogisticRegression, QuadraticRegressor, datasets, plotting
from quadric.apps.shell import app
from quadric.explain import explain
from quadric.geometry import Quadric
from quadric.utils import rounded, rounded_down, shown, visible

# names that an untrusted table may use for columns and classes
NAMES = (
    "\x1b[31mred\x1b[0m",
    "two\r\nlines",
    "\x9b2Jclear",
    "\u202egnp.txt",
    "[bold red]x[/bold red]",
    ":heart: \\",
    r"$\frac{a}$ & $",
    "\x07bell\x7f",
)


def hidden(text):
    """Return the characters that a terminal interprets instead of showing."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("naïve 数 ", "naïve 数 "),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x9b\x7f\u202e\u2066\u2028", "\\x9b\\x7f\\u202e\\u2066\\u2028"),
        ("\udc80", "\\udc80"),  # a byte of a file name that is not UTF-8
        ("می\u200cخواهم", "می\u200cخواهم"),  # Persian uses this character
    ],
)
def test_control_characters_are_escaped(text, shown):
    assert visible(text) == shown
    assert not hidden(visible(text)) - {"\u200c"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (57540.3, "57 540"),
        (-1234567.89, "-1 234 568"),
        (2024.0, "2024"),
        (0.3, "0.3"),
        (3.14159, "3.142"),
        (9999.7, "10 000"),
        (41_000_000.0, "41 000 000"),
        (1.5e17, "1.5e+17"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_are_written_as_a_person_writes_them(value, text):
    assert rounded(value) == text


def test_scores_are_written_without_powers_of_ten():
    scores = (0.9, 57540.3, -0.0000321, 0.0, None, 12.3456)
    assert [*map(shown, scores)] == ["0.900", "57 540", "-0.00003", "0.000", "-", "12.35"]
    assert rounded_down(57540.9) == "57 540"


def test_coefficients_have_no_powers_of_ten_and_no_spaces():
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = QuadraticRegressor((), layer_kinds="linear", random_state=0).fit(X, 57_540 * X[:, 0])
    equation = explain(model).classes[0].equation
    assert re.search(r"[+-] 5\d{4} \(?x1", equation)
    assert "e+" not in equation


# ---- the command line ------------------------------------------------------------------------


def run(*arguments, code=0):
    wide = {"COLUMNS": "600"}  # wide enough for every name
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=wide)
    assert result.exit_code == code, (result.output, result.exception)
    for text in (result.stdout, result.stderr):
        assert not hidden(text), text
    return result


def assert_shown(names, text):
    for name in names:
        assert visible(name) in text


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table whose columns and classes have these names, and its model."""
    import polars as pl

    directory = tmp_path_factory.mktemp("text")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 4))
    y = np.array(NAMES)[np.arange(160) % 2 + 2 * (X[:, 0] > 0) + 4 * (X[:, 1] > 0)]
    columns = dict(zip(NAMES, [*X.T, *(["same"] * 160 for _ in range(4))], strict=True))
    pl.DataFrame(columns | {"\x1b[2Jtarget": y}).write_csv(directory / "table.csv")
    fixed = ["--hidden", "none", "-o", directory / "m.quadric"]
    run("train", directory / "table.csv", "-t", "\x1b[2Jtarget", *fixed)
    return directory


@pytest.mark.slow
def test_names_in_the_output_of_every_command(place, tmp_path):
    odd = tmp_path / "\x1b[31mmodel\n.quadric"
    odd.write_bytes((place / "m.quadric").read_bytes())
    arguments = ["train", place / "table.csv", "-t", "\x1b[2Jtarget", "-o", odd]
    trained = run(*arguments, "--hidden", "none")  # the equations contain all names
    assert_shown([*NAMES, "\x1b[2Jtarget", odd.name], trained.stdout + trained.stderr)
    assert_shown([*NAMES, "\x1b[2Jtarget", odd.name], run("info", odd).stdout)
    assert_shown(NAMES, run("explain", odd, place / "table.csv").stdout)
    predicted = run("predict", odd, place / "table.csv", "-o", tmp_path / "\x1b[1mout.csv")
    assert_shown(["\x1b[1mout.csv"], predicted.stdout)
    for suffix in (".png", ".svg"):
        picture = tmp_path / f"\x1b[1m{suffix}"
        drawn = run("plot", odd, place / "table.csv", "-o", picture)
        assert_shown([picture.name], drawn.stdout)


@pytest.mark.slow
def test_names_in_errors(place, tmp_path):
    model, table = place / "m.quadric", place / "table.csv"
    nothing = tmp_path / "\x1b[31mnothing\n"
    for arguments in (
        ["info", nothing],
        ["explain", nothing],
        ["predict", model, nothing],
        ["predict", nothing, table],
        ["train", table, "-t", "\x1b[31m", "-o", tmp_path / "m"],
        ["train", table, "-t", NAMES[0], "-o", nothing / "m"],
        ["plot", model, table, "-o", tmp_path / "a.png", "--classes", "\x1b[31m,\x1b[32m"],
        ["reproduce", "xor", "--out", table / "\x1b[31m"],
        ["export", nothing, tmp_path / "a.onnx"],
    ):
        result = run(*arguments, code=1)
        assert result.stderr.count("\n") == 1, result.stderr
        assert "\\x1b[31m" in result.stderr


def test_predictions_are_escaped_on_a_terminal_and_not_in_a_pipe(place, monkeypatch):
    arguments = ["predict", str(place / "m.quadric"), str(place / "table.csv"), "--proba"]
    piped = CliRunner().invoke(app, arguments)
    assert "\x1b[31mred" in piped.stdout
    from quadric.apps.shell.tables import _prediction as writing

    terminal = SimpleNamespace(isatty=lambda: True, write=lambda text: sys.stdout.write(text))
    monkeypatch.setattr(writing, "sys", SimpleNamespace(stdout=terminal))
    shown = CliRunner().invoke(app, arguments)
    assert not hidden(shown.stdout)
    assert "\\x1b[31mred" in shown.stdout


# ---- in Python -------------------------------------------------------------------------------


def test_an_explanation_is_escaped():
    X, y = datasets.xor()
    model = QuadraticLogisticRegression().fit(X, np.array(NAMES)[y])
    text = str(explain(model, names=NAMES[1:3]))
    assert not hidden(text)
    assert "\\x9b2Jclear" in text
    assert "two\\r\\nlines" in text


def drawn(figure):
    """Draw a figure and return its texts; invalid formulas would raise."""
    FigureCanvasAgg(figure).draw()
    return " ".join(
        text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_visible()
    )


FORMULA = r"$\frac{a}$"  # a formula that matplotlib cannot draw


@pytest.mark.slow
def test_names_in_plots_are_not_formulas():
    X, y = datasets.xor()
    labels = np.array([FORMULA, "cost in $ or $"])[y]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[FORMULA, "b\x1b"])
    model = QuadraticLogisticRegression().fit(frame, labels)
    shape = Quadric(np.diag([1.0, 2.0, 3.0]), np.zeros(3), -1.0)
    names = [FORMULA, "$x$", "c"]

    def on(draw):
        figure = Figure()
        ax = figure.subplots(subplot_kw={"projection": "3d"} if draw == "surface" else {})
        if draw == "regions":
            plotting.plot_regions(model, X, labels, ax).legend()
        elif draw == "clusters":
            plotting.plot_clusters(model, X, labels, ax).legend()
        elif draw == "slice":
            plotting.plot_slice(shape, (0, 1), ax=ax, names=names)
        else:
            plotting.plot_surface(shape, ax, names=names)
        return figure

    for draw in ("regions", "clusters", "slice", "surface"):
        text = drawn(on(draw))
        assert FORMULA.replace("$", r"\$") in text, draw
        assert "\x1b" not in text
    assert r"\$" in drawn(plotting.plot_slices(shape, names=names))

    wide = QuadraticLogisticRegression().fit(np.column_stack([X, X]), labels)
    figure = Figure()
    plotting.plot_boundaries(wide, np.column_stack([X, X]), labels, figure.subplots())
    assert r"cost in \$ or \$" in drawn(figure)
    assert r"\$" in drawn(plotting.plot_eigenvectors(wide, (2, 2), 1))


def test_an_escaped_name_is_drawn_unchanged():
    from quadric.plotting._style import plain

    for name in (FORMULA, "$", r"\$ 5", "a$b$c$"):
        text = Figure().text(0, 0, plain(name))
        assert text._preprocess_math(text.get_text()) == (name, False)
