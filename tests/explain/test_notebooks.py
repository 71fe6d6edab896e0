"""What notebooks show."""

import sys
import types
from html.parser import HTMLParser

import pytest

from quadric import Network, QuadraticRegressor, separate
from quadric.explain import explain
from quadric.utils import notebook

POINTS = [[0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 6]]


class Page(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert not {"src", "href"} & {name for name, _ in attrs}
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def network():
    return Network.create(2, [("quadratic", 1, "logistic")], init="normal", scale=1.0, rng=0)


def test_an_explanation_is_a_table_of_terms_with_names_escaped(network):
    shown = explain(network, names=["<b>", "c"])._repr_html_()
    page = Page(shown)
    assert page.tags.count("table") == 2  # importances and one equation
    assert page.tags.count("rect") == 2 + 5  # a bar for each input and for each term
    assert "<b> " not in shown
    assert any(text.startswith("z = ") for text in page.text)
    assert "linear" in page.text
    assert any(text.startswith("The surface z = 0: ") for text in page.text)


def test_a_history_is_a_curve(network):
    history = network.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1], epochs=3, rng=0)
    page = Page(history._repr_html_())
    assert page.text[0].startswith("3 epochs of 2 samples in ")
    assert page.tags.count("polyline") == 1
    assert f"{max(history.loss):.4g}" in page.text
    short = network.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1], epochs=1, rng=0)
    page = Page(short._repr_html_())
    assert page.text[0].startswith("1 epoch of 2 samples in ")
    assert "svg" not in page.tags


def test_a_separation_is_a_table_of_classes():
    page = Page(separate(POINTS, list("aaabbb"))._repr_html_())
    assert "2 classes, one ellipsoid around each." in page.text
    assert page.text.count("ellipse") == 2
    mixed = separate([[0, 0], [2, 0], [1, 2], [1, 1], [3, 1], [1, 3]], list("aaabbb"))
    crossed = Page(mixed._repr_html_())
    assert "overlaps with" in crossed.text


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_a_curve_without_a_range_is_not_drawn(values):
    assert notebook.curve(values, "loss") == ""


def test_progress_in_a_notebook_is_a_bar_that_is_updated(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=lambda piece: shown.append(piece))
    display = types.SimpleNamespace(HTML=str, display=lambda piece, display_id: handle)
    kernel = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(
        sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: kernel, display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    model = QuadraticRegressor((), alpha=0.1, verbose=True, max_iter=50, random_state=0)
    model.fit(POINTS, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    page = Page(shown[-1])
    assert "progress" in page.tags
    assert f"{model.n_iter_} of 50 loss" in page.text[-1]
    kernel.kernel = None  # IPython on a terminal
    assert not notebook.has_display()


def test_progress_elsewhere_is_printed_in_lines(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    model = QuadraticRegressor((), alpha=0.1, verbose=True, max_iter=50, random_state=0)
    model.fit(POINTS, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    lines = capsys.readouterr().err.splitlines()
    assert f"epoch {model.n_iter_} of 50, loss" in lines[-1]
