"""Explanations check the memory limit before they build matrices that are larger than the model."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from quadric import Network, QuadraticClassifier, get_config, set_config
from quadric.core import Layer, Linear, Quadratic, Reduced
from quadric.errors import MemoryLimitError
from quadric.explain import explain, quadrics, spectrum

LIMIT = 12_000_000  # less than a single matrix of the models below
ONE = np.ones((1, 1))


@contextmanager
def _limit(size: int) -> Iterator[None]:
    before = get_config()["max_memory"]
    set_config(max_memory=size)
    try:
        yield
    finally:
        set_config(max_memory=before)


def _wide(n: int, last: Layer, *between: Layer) -> Network:
    """A network whose first layer, with n inputs and one neuron, is linear."""
    first = Linear(np.full((1, n), 1 / n), np.zeros(1))
    layers = [first, *between, last]
    return Network(layers, ["identity"] * (len(layers) - 1) + ["logistic"])


def _peak(call: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(params=["quadratic", "reduced"])
def last(request: pytest.FixtureRequest) -> Layer:
    if request.param == "quadratic":
        return Quadratic(ONE, [0.0], ONE[None])
    return Reduced(ONE, [0.0], ONE, [1.0])


@pytest.mark.parametrize("function", [explain, spectrum, quadrics])
def test_faults_R2_a_small_file_with_many_inputs_is_refused_before_it_is_folded(
    function: Callable[[Any], Any], last: Layer
) -> None:
    def refused() -> None:
        with _limit(LIMIT), pytest.raises(MemoryLimitError, match="1,500"):
            function(_wide(1500, last))

    assert _peak(refused) < LIMIT


def test_faults_R2_a_wide_layer_between_narrow_ones_is_refused(last: Layer) -> None:
    there = Linear(np.ones((1500, 1)), np.zeros(1500))
    back = Linear(np.ones((1, 1500)), np.zeros(1))

    def refused() -> None:
        with _limit(LIMIT), pytest.raises(MemoryLimitError, match="1,500"):
            explain(_wide(2, last, there, back))

    assert _peak(refused) < LIMIT


def test_faults_R2_folding_linear_layers_checks_the_limit(last: Layer) -> None:
    there = Linear(np.ones((20_000, 1)), np.zeros(20_000))
    back = Linear(np.ones((1, 20_000)), np.zeros(1))

    def refused() -> None:
        with _limit(LIMIT), pytest.raises(MemoryLimitError, match="20,000"):
            spectrum(_wide(200, last, there, back))

    assert _peak(refused) < LIMIT


@pytest.mark.parametrize("function", [explain, spectrum])
def test_faults_R2_a_transformer_of_many_columns_is_refused(
    function: Callable[[Any], Any], last: Layer
) -> None:
    rng, n = np.random.default_rng(0), 1500
    X = rng.normal(size=(4, n))
    columns = ColumnTransformer([("all", "passthrough", list(range(n)))]).fit(X)
    model = QuadraticClassifier(hidden_layer_sizes=(), max_iter=1).fit(X[:, :1], [0, 1, 0, 1])
    model.network_, model.n_features_in_ = _wide(n, last), n
    pipeline = Pipeline([("columns", columns), ("model", model)])

    def refused() -> None:
        with _limit(LIMIT), pytest.raises(MemoryLimitError, match="1,500"):
            function(pipeline)

    assert _peak(refused) < LIMIT


def test_faults_R2_all_terms_and_their_json_are_refused_before_they_are_listed() -> None:
    rng, n = np.random.default_rng(0), 200
    model = Quadratic(rng.normal(size=(1, n)), [0.0], rng.normal(size=(1, n, n)))
    with _limit(LIMIT):
        explain(model, top=10)

        def refused() -> None:
            with pytest.raises(MemoryLimitError, match="20,300 terms"):
                explain(model, top=None)

        assert _peak(refused) < LIMIT
    found = explain(model, top=None)
    with _limit(LIMIT), pytest.raises(MemoryLimitError, match="20,300 terms"):
        found.to_dict()


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("function", [explain, spectrum])
def test_faults_R2_the_estimate_is_at_least_what_is_used(
    function: Callable[[Any], Any], m: int
) -> None:
    rng, n = np.random.default_rng(0), 200
    linear = Linear(rng.normal(size=(2, n)), rng.normal(size=2))
    curved = Quadratic(rng.normal(size=(m, 2)), rng.normal(size=m), rng.normal(size=(m, 2, 2)))
    model = Network([linear, curved], ["identity", "softmax" if m > 1 else "logistic"])
    function(model)  # imports
    used = _peak(lambda: function(model))
    with _limit(1), pytest.raises(MemoryLimitError) as caught:
        function(model)
    assert used <= caught.value.needed <= 3 * used
