"""The lists of expected differences are short and name existing tests."""

from importlib import import_module

import pytest

from tests.peers.differences import LINEAR_KINDS, LOGISTIC, OUR_DEFAULTS

RUNS = {
    "test_mlp_with_linear_kinds": (LINEAR_KINDS, 10),
    "test_mlp_with_our_defaults": (OUR_DEFAULTS, 13),
    "test_logistic": (LOGISTIC, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_the_differences_are_few_and_exist(run):
    expected, most = RUNS[run]
    module = import_module(f"tests.peers.{run}")
    for name in expected:
        start = name.split("?")[0].split("*")[0]
        assert any(test.startswith(start) for test in vars(module)), name
    if most is not None:
        assert len(expected) <= most


@pytest.mark.slow
def test_the_tests_use_our_classes():
    from tests.peers import test_mlp_with_our_defaults as run

    assert run.test_fit.__globals__["MLPClassifier"] is run.CLASSES["MLPClassifier"]
    import sklearn.neural_network

    assert sklearn.neural_network.MLPClassifier.__module__.startswith("sklearn.")
