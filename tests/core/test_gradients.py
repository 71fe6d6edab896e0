"""Gradients agree with central differences, the reference and autograd."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from quadric import Network
from quadric.core import ACTIVATIONS
from tests.support.networks import (
    ENDS,
    HIDDEN,
    KINDS,
    has_reference,
    make_network,
    reference_gradients,
    stacks,
    targets,
)


def away_from_kinks(net, X):
    """Return X without the rows where a central difference could cross the kink of a relu."""
    keep = np.ones(len(X), dtype=bool)
    a = X
    for layer, activation in zip(net.layers, net.activations, strict=True):
        z = layer.forward(a)[0]
        if activation == "relu":
            keep &= (np.abs(z) > 1e-3).all(axis=1)
            a = np.maximum(z, 0)
        elif activation != "softmax":
            a = ACTIVATIONS[activation].function(z)
    assert keep.any()
    return X[keep]


# a single layer has no hidden activation
DEPTHS = [(1, HIDDEN[0]), *((depth, hidden) for depth in (2, 3) for hidden in HIDDEN)]


@pytest.mark.slow
@pytest.mark.sample(20)
@pytest.mark.parametrize(("depth", "hidden"), DEPTHS)
@pytest.mark.parametrize(("loss", "last"), ENDS)
def test_central_differences_and_reference(depth, hidden, loss, last):
    for number, kinds in enumerate(stacks(depth)):
        rng = np.random.default_rng(number)
        net = make_network(kinds, hidden, last, widths=(3, 2, 2)[-depth:], seed=number)
        X = away_from_kinks(net, 0.7 * rng.normal(size=(6, 3)))
        Y = targets(loss, len(X), 2, rng)
        check = net.check_gradients(X, Y, loss)
        assert check.worst < 1e-6, f"{kinds}\n{check}"
        if has_reference(kinds):
            value, grads = net.gradients(X, Y, loss)
            wanted_value, wanted = reference_gradients(net, X, Y, loss)
            np.testing.assert_allclose(value, wanted_value, rtol=1e-10)
            for grad, expected in zip(grads, wanted, strict=True):
                for name, array in expected.items():
                    np.testing.assert_allclose(getattr(grad, name), array, atol=1e-13)


RANDOM_SHAPES = {
    "kinds": st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
    "widths": st.lists(st.integers(1, 4), min_size=3, max_size=3),
    "n": st.integers(1, 5),
    "samples": st.integers(1, 5),
    "hidden": st.sampled_from(["identity", "logistic", "tanh"]),
    "end": st.sampled_from(ENDS[:5]),
    "seed": st.integers(0, 2**32),
}


@pytest.mark.slow
@settings(max_examples=60)
@given(**RANDOM_SHAPES)
def test_gradients_of_random_shapes_match_central_differences(**case):
    assert_central_differences(**case)


def test_gradients_of_a_strongly_curved_network_match_central_differences():
    """Three quadratic layers have degree eight; plain differences have errors of 1e-5."""
    assert_central_differences(
        ["quadratic"] * 3, [2, 4, 2], 5, 3, "identity", ("binary_cross_entropy", "logistic"), 266
    )


@pytest.mark.full
@settings(max_examples=5000, derandomize=False)
@given(**RANDOM_SHAPES)
def test_gradients_of_5000_random_shapes_match_central_differences(**case):
    assert_central_differences(**case)


def assert_central_differences(kinds, widths, n, samples, hidden, end, seed):
    loss, last = end
    rng = np.random.default_rng(seed)
    net = make_network(kinds, hidden, last, n=n, widths=widths[: len(kinds)], seed=seed)
    X, m = rng.normal(size=(samples, n)), net.n_outputs
    check = net.check_gradients(X, targets(loss, samples, m, rng), loss, l2=0.1)
    assert check.worst < 1e-6, check


@pytest.mark.parametrize("kinds", stacks(3))
def test_agrees_with_torch_autograd(kinds):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    net = make_network(kinds, "tanh", "logistic", widths=(4, 3, 2), seed=11)
    X, Y = rng.normal(size=(7, 3)), targets("binary_cross_entropy", 7, 2, rng)

    leaves, a = [], torch.tensor(X)
    for l, layer in enumerate(net.layers):
        arrays = layer.arrays()
        if "packed" in arrays:
            arrays["Q"] = layer.Q.copy()
            del arrays["packed"]
        p = {k: torch.tensor(v, requires_grad=True) for k, v in arrays.items()}
        leaves.append(p)
        z = a @ p["W"].T + p["b"]
        if layer.kind == "quadratic":
            z = z + torch.einsum("bi,kij,bj->bk", a, p["Q"], a)
        if layer.kind == "reduced":
            z = z * (a @ p["U"].T + p["c"])
        a = torch.tanh(z) if l < 2 else z
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        a, torch.tensor(Y), reduction="sum"
    ) / len(X)
    loss.backward()

    value, grads = net.gradients(X, Y)
    assert value == pytest.approx(loss.item(), rel=1e-13)
    for grad, p in zip(grads, leaves, strict=True):
        for name, leaf in p.items():
            wanted = leaf.grad.numpy()
            if name == "Q":  # autograd treats all n^2 entries as independent; M does not
                wanted = wanted + wanted.transpose(0, 2, 1)
                np.einsum("kii->ki", wanted)[...] /= 2
            np.testing.assert_allclose(getattr(grad, name), wanted, atol=1e-13)


def test_check_gradients_detects_a_wrong_gradient(monkeypatch):
    from quadric.core._layers import Quadratic

    net = make_network(["quadratic"], "tanh", "logistic", widths=(2,))
    X, Y = np.random.default_rng(0).normal(size=(5, 3)), np.ones((5, 2))
    right = Quadratic.backward

    def wrong(self, delta, cache, *, inputs=True):
        grads, d = right(self, delta, cache, inputs=inputs)
        grads.arrays()["packed"][2, 1] += 0.01  # q_02 of neuron 1
        return grads, d

    monkeypatch.setattr(Quadratic, "backward", wrong)
    check = net.check_gradients(X, Y)
    worst = max(check.entries, key=lambda entry: entry.error)
    assert (worst.parameter, worst.index) == ("layers.0.Q", (1, 0, 2))
    assert worst.error == pytest.approx(0.01, rel=1e-3)
    assert "layers.0.Q" in str(check)


def test_check_gradients_detects_an_undefined_gradient(monkeypatch):
    from quadric.core._layers import Linear

    net = make_network(["linear"], "tanh", "logistic", widths=(2,))
    right = Linear.backward

    def wrong(self, delta, cache, *, inputs=True):
        grads, d = right(self, delta, cache, inputs=inputs)
        grads.arrays()["W"][1, 1] = np.nan
        return grads, d

    monkeypatch.setattr(Linear, "backward", wrong)
    assert net.check_gradients(np.ones((5, 3)), np.ones((5, 2))).worst == np.inf


def test_gradients_are_the_same_in_blocks(monkeypatch):
    from quadric.core import _layers

    net = make_network(["quadratic", "quadratic"], "tanh", "softmax", widths=(4, 3))
    rng = np.random.default_rng(3)
    X, Y, w = rng.normal(size=(23, 3)), targets("cross_entropy", 23, 3, rng), rng.random(23)
    value, grads = net.gradients(X, Y, sample_weight=w)
    z = net.logits(X)
    monkeypatch.setattr(_layers, "BLOCK_ROWS", 4)
    value_in_blocks, grads_in_blocks = net.gradients(X, Y, sample_weight=w)
    assert value_in_blocks == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(net.logits(X), z, rtol=1e-14)
    for one, other in zip(grads, grads_in_blocks, strict=True):
        for name, array in one.arrays().items():
            np.testing.assert_allclose(other.arrays()[name], array, atol=1e-14)


def test_gradient_of_one_neuron_matches_hand_worked_values():
    # z = x'Qx + w'x + b at x = (1, 2): Q = [[1, 0.5], [0.5, -1]], w = (2, 0), b = -1
    #   = 1 + 2 * 0.5 * 2 - 4 + 2 - 1 = 0, so yhat = 1/2, delta = 1/2 - 1 = -1/2
    # dQ = delta M(x) = -1/2 [[1, 4], [4, 4]];  dw = -1/2 (1, 2);  db = -1/2;  loss = ln 2
    from quadric import Quadratic

    net = Network([Quadratic([[2, 0]], [-1], [[[1, 0.5], [0.5, -1]]])], ["logistic"])
    loss, (grad,) = net.gradients([[1, 2]], [1])
    assert loss == pytest.approx(np.log(2))
    np.testing.assert_allclose(grad.Q, [[[-0.5, -2], [-2, -2]]])
    np.testing.assert_allclose(grad.W, [[-0.5, -1]])
    np.testing.assert_allclose(grad.b, [-0.5])
