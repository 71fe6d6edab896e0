"""What notebooks show."""

import sys
import types

from quadric import Network, separate
from quadric.estimators import _messages
from quadric.explain import explain


def test_results_are_shown_as_text_with_names_escaped():
    network = Network.create(2, [("quadratic", 1, "logistic")], init="normal", scale=1.0, rng=0)
    shown = explain(network, names=["<b>", "c"])._repr_html_()
    assert shown.startswith("<pre>")
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    history = network.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1], epochs=3, rng=0)
    assert "3 epochs of 2 samples in " in history._repr_html_()
    found = separate([[0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 6]], list("aaabbb"))
    assert "2 classes, one ellipsoid around each." in found._repr_html_()


def test_progress_in_a_notebook_is_printed_in_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(_messages, "_bar", lambda *_: "bar")
    monkeypatch.setattr(_messages, "_lines", lambda *_: "lines")
    assert _messages.progress("fit", 3, verbose=True) == "lines"
