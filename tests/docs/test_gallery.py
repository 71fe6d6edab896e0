"""Every script of the gallery draws one figure that can be read without its code."""

import ast
import re
import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

import quadric

SCRIPTS = sorted((Path(__file__).parents[2] / "docs" / "gallery").glob("*.py"))
SENTENCE = re.compile(r"[.?!](?=\s|$)")


@pytest.fixture
def pyplot():
    mpl.use("agg")
    from matplotlib import pyplot

    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def titles(figure):
    """Return the titles of the figure and of its axes."""
    texts = [figure.get_suptitle()]
    for ax in figure.axes:
        texts += [ax.get_title(loc=place) for place in ("left", "center", "right")]
    return [text for text in texts if text]


def unlabeled(ax):
    """Return the axes (x, y or z) that show numbers but have no label; names explain themselves."""
    found = []
    for axis in ax._axis_map.values():
        texts = [tick.get_text() for tick in axis.get_ticklabels() if tick.get_visible()]
        if ax.axison and any(map(is_number, texts)) and not axis.get_label().get_text():
            found.append(axis.axis_name)
    return found


def is_number(text):
    return bool(re.fullmatch(r"[-−]?\d+(\.\d+)?|\$\\mathdefault.*", text))


def check_figure(figure):
    """Assert that a figure is not empty, has a title, and has labels where it shows numbers."""
    figure.canvas.draw()
    assert figure.axes
    assert all(ax.has_data() or ax.get_images() for ax in figure.axes)
    assert titles(figure)
    assert [unlabeled(ax) for ax in figure.axes] == [[]] * len(figure.axes)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_draws_one_figure(script, pyplot, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    installed = tmp_path / "site-packages" / "quadric" / "__init__.py"  # outside the clone
    monkeypatch.setattr(quadric, "__file__", str(installed))
    runpy.run_path(str(script))
    assert len(pyplot.get_fignums()) == 1
    check_figure(pyplot.gcf())
    assert not list(tmp_path.iterdir())  # no files are written


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_has_a_title_a_short_text_and_short_code(script):
    text = script.read_text()
    title, empty, *lines = ast.get_docstring(ast.parse(text)).splitlines()
    assert title
    assert not title.endswith(".")
    assert not empty
    assert 1 <= len(SENTENCE.findall(" ".join(lines))) <= 4
    code = text.split('"""', 2)[2].strip().splitlines()
    assert len(list(filter(None, code))) <= 35
    assert not re.search(r"plt\.show|savefig|print\(|import quadric\..*\._|from quadric.*\._", text)


def test_there_are_enough_pictures():
    assert len(SCRIPTS) >= 18


def test_figures_without_data_titles_or_labels_are_detected(pyplot):
    def draw(**properties):
        figure, ax = pyplot.subplots()
        ax.plot([0, 1], [0, 1])
        ax.set(**({"title": "A line", "xlabel": "x", "ylabel": "y"} | properties))
        return figure

    check_figure(draw())
    check_figure(draw(xlabel="", xticks=[]))
    check_figure(draw(xlabel="", xticks=[0, 1], xticklabels=["no", "yes 1"]))
    wrong = [{"title": ""}, {"xlabel": ""}, {"ylabel": ""}, {"xlabel": "", "xscale": "log"}]
    for properties in wrong:
        with pytest.raises(AssertionError):
            check_figure(draw(**properties))
    figure, ax = pyplot.subplots()
    ax.set(title="Nothing", xlabel="x", ylabel="y")
    with pytest.raises(AssertionError):
        check_figure(figure)
