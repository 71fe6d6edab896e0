"""Optimizers checked by hand and against torch; L-BFGS finds the convex optimum."""

import numpy as np
import pytest
from scipy import sparse

from quadric import Linear, Network
from tests.support.networks import make_network, max_difference, targets

RNG = np.random.default_rng(0)


def test_momentum_matches_hand_worked_steps():
    # one weight w = 1, x = 1, y = 0, loss (w + b)^2/2
    # rate 0.1, momentum 0.5. Parameters (w, b) share the gradient g = w + b.
    #   step 1: g = 1, v = -0.1, w = 0.9, b = -0.1
    #   step 2: g = 0.8, v = 0.5 * -0.1 - 0.08 = -0.13, w = 0.77, b = -0.23
    net = Network([Linear([[1.0]], [0.0])], ["identity"])
    net.fit([[1.0]], [0.0], learning_rate=0.1, momentum=0.5, epochs=2)
    np.testing.assert_allclose([net.layers[0].W[0, 0], net.layers[0].b[0]], [0.77, -0.23])
    # Nesterov: step 1: v = -0.1, moved by 0.5 * -0.1 - 0.1 = -0.15: w = 0.85, b = -0.15
    #   step 2: g = 0.7, v = -0.05 - 0.07 = -0.12, moved by -0.06 - 0.07 = -0.13
    net = Network([Linear([[1.0]], [0.0])], ["identity"])
    net.fit([[1.0]], [0.0], learning_rate=0.1, momentum=0.5, nesterov=True, epochs=2)
    np.testing.assert_allclose([net.layers[0].W[0, 0], net.layers[0].b[0]], [0.72, -0.28])


@pytest.mark.parametrize(
    ("options", "make"),
    [
        ({}, lambda torch, p: torch.optim.SGD(p, lr=0.02, weight_decay=0.0)),
        ({"momentum": 0.8}, lambda torch, p: torch.optim.SGD(p, lr=0.02, momentum=0.8)),
        (
            {"momentum": 0.8, "nesterov": True},
            lambda torch, p: torch.optim.SGD(p, lr=0.02, momentum=0.8, nesterov=True),
        ),
    ],
)
def test_sgd_matches_torch(options, make):
    torch = pytest.importorskip("torch")
    net = Network.create(3, [("linear", 4, "tanh"), ("linear", 2, "identity")], rng=0)
    X, Y = RNG.normal(size=(12, 3)), RNG.normal(size=(12, 2))
    parameters = [
        torch.tensor(array.copy(), requires_grad=True)
        for layer in net.layers
        for array in layer.arrays().values()
    ]
    optimizer = make(torch, parameters)
    for _ in range(5):
        for start in range(0, 12, 4):
            rows = slice(start, start + 4)
            W1, b1, W2, b2 = parameters
            out = torch.tanh(torch.tensor(X[rows]) @ W1.T + b1) @ W2.T + b2
            optimizer.zero_grad()
            (0.5 * ((out - torch.tensor(Y[rows])) ** 2).sum() / 4).backward()
            optimizer.step()
    net.fit(X, Y, learning_rate=0.02, batch_size=4, epochs=5, shuffle=False, **options)
    held = [array for layer in net.layers for array in layer.arrays().values()]
    for array, parameter in zip(held, parameters, strict=True):
        np.testing.assert_allclose(array, parameter.detach().numpy(), atol=1e-12)


def test_the_first_step_of_adam_matches_its_formula():
    # the first step is rate * g / (|g| + eps') for every parameter, eps' = eps / sqrt(1 - beta_2)
    net = make_network(("linear", "quadratic"), "tanh", "identity")
    before = net.copy()
    X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
    _, grads = net.gradients(X, Y)
    net.fit(X, Y, solver="adam", learning_rate=0.1, batch_size=5, epochs=1)
    for old, new, grad in zip(before.layers, net.layers, grads, strict=True):
        for name, g in grad.arrays().items():
            moved = new.arrays()[name] - old.arrays()[name]
            wanted = -0.1 * g / (np.abs(g) + 1e-8 / np.sqrt(1 - 0.999))
            np.testing.assert_allclose(moved, wanted, rtol=1e-6)


def test_batches_average_their_samples():
    net = make_network(("reduced", "quadratic"), "tanh", "logistic")
    X, Y = RNG.normal(size=(7, 3)), targets("binary_cross_entropy", 7, 2, RNG)
    _, grads = net.gradients(X, Y)
    before = net.copy()
    net.fit(X, Y, learning_rate=0.1, batch_size=100, epochs=1)
    for old, new, grad in zip(before.layers, net.layers, grads, strict=True):
        for name, g in grad.arrays().items():
            np.testing.assert_allclose(new.arrays()[name], old.arrays()[name] - 0.1 * g, atol=1e-14)


@pytest.mark.parametrize("options", [{"batch_size": 4}, {"solver": "adam", "batch_size": 4}])
def test_same_seed_same_bits_and_sparse_equals_dense(options):
    X = RNG.normal(size=(30, 5)) * (RNG.random((30, 5)) < 0.5)
    Y = targets("cross_entropy", 30, 3, RNG)
    start = make_network(("linear", "quadratic"), "relu", "softmax", n=5, widths=(6, 3))
    runs = []
    for data in (X, X, sparse.csr_array(X)):
        net = start.copy()
        net.fit(data, Y, epochs=4, rng=5, l2=0.01, offset=0.2, **options)
        runs.append(net)
    assert max_difference(runs[0], runs[1]) == 0.0
    assert max_difference(runs[0], runs[2]) < 1e-14


def test_lbfgs_finds_the_optimum_of_the_convex_problem():
    """One quadratic layer with cross-entropy is convex, so every start leads to the same point."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3))
    Y = np.eye(3)[np.argmax(X**2 + 0.5 * rng.normal(size=X.shape), axis=1)]
    ends = []
    for seed in range(3):
        net = Network.create(3, [("quadratic", 3, "softmax")], rng=seed)
        history = net.fit(X, Y, solver="lbfgs", l2=0.05, epochs=500, tol=1e-10)
        assert history.loss == sorted(history.loss, reverse=True)
        check = net.check_gradients(X, Y, l2=0.05)
        assert check.worst < 1e-6
        ends.append(net)
    z = [net.logits(X) - net.logits(X).mean(axis=1, keepdims=True) for net in ends]
    np.testing.assert_allclose(z[0], z[1], atol=1e-6)
    np.testing.assert_allclose(z[0], z[2], atol=1e-6)


def test_lbfgs_weights_equal_repetition():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(20, 2)), targets("binary_cross_entropy", 20, 1, rng)
    weights = rng.integers(0, 4, 20)
    # the mean over 20 weighted samples is the mean weight times the mean over the repeated ones;
    # the penalty has the same factor, so the optimum is the same
    one = Network.create(2, [("quadratic", 1, "logistic")], rng=0)
    other = one.copy()
    one.fit(X, Y, solver="lbfgs", l2=0.1, sample_weight=weights, epochs=300, tol=1e-11)
    repeated = np.repeat(np.arange(20), weights)
    other.fit(X[repeated], Y[repeated], solver="lbfgs", l2=0.1, epochs=300, tol=1e-11)
    np.testing.assert_allclose(one.logits(X), other.logits(X), atol=1e-7)
