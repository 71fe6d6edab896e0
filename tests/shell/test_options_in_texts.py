"""The library's texts name arguments of Python; the command line prints its options instead."""

import re

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from quadric import Network, QuadraticLogisticRegression, set_config, with_scaling
from quadric.apps.shell.commands._console import OPTIONS, as_options
from quadric.certify import radius
from quadric.datasets import DatasetError, download
from quadric.explain import explain, spectrum
from quadric.plotting import plot_boundaries

HIDDEN = Network.create(2, [("quadratic", 3, "tanh"), ("quadratic", 3, "softmax")], rng=0)
WIDE = Network.create(30, [("quadratic", 30, "softmax")], rng=0)


def error_of(function, *arguments, **options):
    with pytest.raises((ValueError, MemoryError, DatasetError)) as caught:
        function(*arguments, **options)
    return str(caught.value)


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """Texts of the library, and a part of what the command line prints."""
    monkeypatch.setenv("QUADRIC_CACHE", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte").write_bytes(b"bad")
    X = np.random.default_rng(0).normal(size=(402, 2))
    many = GaussianNB().fit(X, np.arange(402) // 2)
    long_tails = with_scaling(QuadraticLogisticRegression(), tails="power")
    long_tails.fit(np.exp(X), X[:, 0] > 0)
    large = Network.create(300, [("quadratic", 2, "softmax")], rng=0)
    set_config(max_memory=2**24)
    try:
        too_large = error_of(explain, large, top=None)
    finally:
        set_config(max_memory=None)
    return {
        error_of(download, "mnist"): "`quadric data fetch mnist --force`",
        error_of(download, "mnist", tmp_path): f"fetch mnist --data-dir {tmp_path} --force`",
        error_of(spectrum, HIDDEN): "Train with `quadric train --equation`, or",
        str(explain(HIDDEN)): "partial dependence need data: quadric explain MODEL DATA.",
        explain(
            HIDDEN
        ).note: "train with `quadric train --equation`. The equations in h1 ... h3, the "
        "activations of the hidden layer, are in `classes` (--json).",
        error_of(radius, long_tails, np.exp(X)): "Fit with --tails keep instead.",
        error_of(plot_boundaries, many, X): "Choose some of them with --classes.",
        too_large: "Give a number as --top.",
        str(explain(WIDE)): "smaller terms; use --all for more)  ",
        str(spectrum(WIDE)): "(10 more outputs; use --all for more)",
    }


def test_the_command_line_names_options(texts):
    for text, part in texts.items():
        assert part in as_options(text)
    for argument in OPTIONS:
        assert any(re.search(argument, text) for text in texts), argument


def test_the_columns_of_equations_stay_aligned():
    text = str(explain(WIDE))
    assert as_options(text) != text
    assert list(map(len, as_options(text).splitlines())) == list(map(len, text.splitlines()))
