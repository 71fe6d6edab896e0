"""Layers and compiled loop agree with the parity fixture that `quadric.reference` generates."""

import numpy as np
import pytest

from tests.support.fixtures import CASES, NAMES, assert_packed, network, parity


@pytest.mark.slow
def test_fixture_is_what_the_reference_generates():
    made = parity()["cases"]
    assert len(made) == len(CASES) == 18
    for new, old in zip(made, CASES, strict=True):
        assert new.keys() == old.keys()
        for part in ("kind", "loss", "l2", "activations"):
            assert new[part] == old[part]
        for part in ("X", "Y", "logits", "outputs", "mean_loss"):
            np.testing.assert_allclose(new[part], old[part], atol=1e-13)
        for part in ("parameters", "mean_gradients"):
            for name, array in old[part].items():
                np.testing.assert_allclose(new[part][name], array, atol=1e-13)
        for name, array in old["sgd"]["parameters"].items():
            np.testing.assert_allclose(new["sgd"]["parameters"][name], array, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_forward_and_gradients_match_the_fixture(case):
    net = network(case)
    np.testing.assert_allclose(net.logits(case["X"]), case["logits"], atol=1e-13)
    np.testing.assert_allclose(net.forward(case["X"]), case["outputs"], atol=1e-13)
    loss, grads = net.gradients(case["X"], case["Y"], case["loss"])
    assert loss == pytest.approx(case["mean_loss"], rel=1e-12)
    assert_packed(grads, case["mean_gradients"], atol=1e-13)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-11), (np.float32, 1e-4)])
def test_200_steps_of_the_compiled_loop(case, dtype, atol):
    net = network(case, dtype)
    epochs = case["sgd"]["steps"] // len(case["X"])
    net.fit(
        case["X"],
        case["Y"],
        case["loss"],
        learning_rate=case["sgd"]["rate"],
        epochs=epochs,
        l2=case["l2"],
        shuffle=False,
    )
    assert_packed(net.layers, case["sgd"]["parameters"], atol)
