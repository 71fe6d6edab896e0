"""The methods of `Network`."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

from quadric import Network, datasets
from quadric.checks import as_csr
from tests.support.networks import make_network, max_difference, stacks, targets

RNG = np.random.default_rng(0)


def test_the_basic_example_has_the_documented_shapes_and_summary():
    net = Network.create(
        784,
        [("linear", 30, "logistic"), ("quadratic", 10, "logistic")],
        init="normal",
        scale=0.005,
        rng=0,
        dtype="float32",
    )
    assert net.layers[0].W.shape == (30, 784)
    assert net.layers[1].Q.shape == (10, 30, 30)
    assert net.n_parameters == 30 * 785 + 10 * (465 + 30 + 1)
    X = RNG.random((4, 784))
    assert net.forward(X).shape == net.logits(X).shape == (4, 10)
    assert net.forward(X).dtype == np.float32
    assert repr(net) == "Network(784 -> linear 30 logistic, quadratic 10 logistic; float32)"
    assert net.summary() == (
        "layer  kind       inputs  neurons  activation  parameters\n"
        "0      linear        784       30  logistic        23,550\n"
        "1      quadratic      30       10  logistic         4,960\n"
        "                                   total           28,510"
    )


@pytest.mark.parametrize("kinds", stacks(2))
@pytest.mark.parametrize("offset", [None, -0.5])
def test_sparse_input_gives_the_same_logits(kinds, offset):
    net = make_network(kinds, "tanh", "softmax", n=6)
    X = RNG.normal(size=(9, 6)) * (RNG.random((9, 6)) < 0.4)
    dense = net.logits(X if offset is None else X + offset)
    for form in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        np.testing.assert_allclose(net.logits(form(X), offset=offset), dense, atol=1e-13)
    np.testing.assert_allclose(net.logits(X, offset=offset), dense, atol=1e-13)
    Y = targets("cross_entropy", 9, 2, RNG)
    if offset is None:
        for sparse_grad, grad in zip(
            net.gradients(sparse.csr_array(X), Y)[1], net.gradients(X, Y)[1], strict=True
        ):
            for name, array in grad.arrays().items():
                np.testing.assert_allclose(sparse_grad.arrays()[name], array, atol=1e-13)


def test_a_valid_csr_matrix_is_not_copied():
    X = sparse.csr_array(np.eye(3))
    _ = X.has_canonical_format, X.has_sorted_indices  # SciPy caches these flags
    taken = as_csr("X", X, np.dtype(np.float64))
    assert np.shares_memory(taken.data, X.data)
    assert np.shares_memory(taken.indices, X.indices)


def test_csr_with_duplicates_and_unsorted_indices_equals_dense():
    data, columns, starts = np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), [0, 3, 4]
    X = sparse.csr_array((data, columns, starts), shape=(2, 3))
    untouched = X.copy()
    net = make_network(("quadratic", "linear"), "tanh", "logistic")
    other = net.copy()
    Y = np.ones((2, 2))
    np.testing.assert_allclose(net.logits(X), net.logits(X.toarray()))
    net.fit(X, Y, epochs=3)
    other.fit(X.toarray(), Y, epochs=3)
    assert max_difference(net, other) < 1e-14
    assert np.array_equal(X.indices, untouched.indices)
    assert np.array_equal(X.data, untouched.data)


def test_copies_are_independent():
    net = make_network(("linear", "quadratic"), "tanh", "logistic")
    X, Y = RNG.normal(size=(9, 3)), targets("binary_cross_entropy", 9, 2, RNG)
    copies = [net.copy(), copy.deepcopy(net), pickle.loads(pickle.dumps(net))]
    for other in copies:
        assert max_difference(net, other) == 0.0
        other.fit(X, Y, epochs=1)
        assert max_difference(net, other) > 0.0
        other.layers[1].Q = np.zeros((2, 4, 4))  # a copied layer still checks its parameters
    assert np.abs(net.layers[1].Q).max() > 0


def test_create_is_reproducible_and_takes_a_generator():
    layers = [("reduced", 4, "tanh"), ("quadratic", 2, "softmax")]
    a, b = Network.create(3, layers, rng=7), Network.create(3, layers, rng=7)
    assert max_difference(a, b) == 0.0
    generator = np.random.default_rng(7)
    assert max_difference(a, Network.create(3, layers, rng=generator)) == 0.0
    assert max_difference(a, Network.create(3, layers, rng=generator)) > 0.0


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"solver": "lbfgs"}])
def test_history_holds_what_the_callback_saw(options):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    Y = np.eye(2)[(np.abs(X).sum(axis=1) < 1).astype(int)]
    net = Network.create(2, [("quadratic", 2, "softmax")], rng=0)
    seen = []

    def callback(epoch):
        seen.append(epoch)
        assert epoch.validation_score == pytest.approx(
            (net.logits(X).argmax(axis=1) == Y.argmax(axis=1)).mean()
        )
        return epoch.index == 3

    history = net.fit(
        X,
        Y,
        learning_rate=0.05,
        epochs=20,
        l2=0.01,
        validation=(X, Y),
        callback=callback,
        **options,
    )
    assert history.stopped
    assert history.epochs == len(seen) == 4
    assert history.loss == [epoch.loss for epoch in seen]
    assert history.validation_score == [epoch.validation_score for epoch in seen]
    assert len(history.seconds) == 4
    assert history.loss[-1] < history.loss[0]


def test_history_loss_contains_the_penalty():
    X, Y = np.zeros((1, 3)), np.full((1, 2), 0.5)
    net = make_network(["quadratic"], "tanh", "logistic", widths=(2,))
    net.layers[0].b = [0.0, 0.0]
    wanted = 2 * np.log(2) + 0.3 * net.layers[0].penalty()
    one, batch = net.copy(), net.copy()
    assert one.fit(X, Y, learning_rate=1e-12, epochs=1, l2=0.3).loss[0] == pytest.approx(wanted)
    history = batch.fit(X, Y, learning_rate=1e-12, epochs=1, l2=0.3, batch_size=2)
    assert history.loss[0] == pytest.approx(wanted)


def test_a_custom_score_replaces_the_default():
    X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=(8, 2))
    net = make_network(["quadratic"], "tanh", "identity", widths=(2,))
    history = net.fit(
        X, Y, epochs=2, validation=(X, Y), score=lambda Y, outputs: float(len(Y) + outputs.shape[1])
    )
    assert history.validation_score == [10.0, 10.0]
    history = net.fit(X, Y, epochs=1, validation=(X, Y))
    assert history.validation_score[0] == pytest.approx(-net.gradients(X, Y)[0])


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"solver": "lbfgs"}])
def test_a_failing_callback_leaves_the_last_finished_epoch(options):
    X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=(8, 2))
    net = make_network(["quadratic"], "tanh", "identity", widths=(2,))
    other = net.copy()

    def callback(epoch):
        if epoch.index == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        net.fit(X, Y, epochs=5, callback=callback, **options)
    other.fit(X, Y, epochs=2, **options)
    assert max_difference(net, other) == 0.0


def test_fit_prints_nothing(capfd):
    X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=(8, 2))
    for options in ({}, {"batch_size": 3}, {"solver": "adam"}, {"solver": "lbfgs"}):
        make_network(["quadratic"], "tanh", "identity", widths=(2,)).fit(X, Y, **options)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_zero_epochs_change_nothing():
    net = make_network(["quadratic"], "tanh", "identity", widths=(2,))
    before = net.copy()
    history = net.fit(np.ones((2, 3)), np.ones((2, 2)), epochs=0)
    assert history.epochs == 0
    assert max_difference(net, before) == 0.0


def test_six_quadratic_neurons_learn_the_six_clusters_of_the_paper():
    """Six quadratic neurons, no hidden layer: a short run of the paper's second experiment."""
    X, labels = datasets.clusters(300, rng=0)
    net = Network.create(2, [("quadratic", 6, "logistic")], init="normal", scale=0.01, rng=0)
    net.fit(X, np.eye(6)[labels], learning_rate=1e-4, epochs=300)
    accuracy = (net.logits(X).argmax(axis=1) == labels).mean()
    assert accuracy > 0.99


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"solver": "lbfgs"}])
def test_a_callback_that_stops_can_restore_other_parameters(options):
    X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=(8, 2))
    net = make_network(["quadratic"], "tanh", "identity", widths=(2,))

    def callback(epoch):
        net.layers[0].W = np.full((2, 3), 7.0)
        return True

    net.fit(X, Y, epochs=5, callback=callback, **options)
    assert np.array_equal(net.layers[0].W, np.full((2, 3), 7.0))


def test_lbfgs_at_an_optimum_still_reports_a_loss():
    net = make_network(["linear"], "tanh", "identity", widths=(2,))
    X = RNG.normal(size=(8, 3))
    history = net.fit(X, net.forward(X), solver="lbfgs")
    assert history.loss == pytest.approx([0.0], abs=1e-20)


def test_divergence_error_can_be_pickled():
    from quadric import DivergenceError

    net = make_network(["linear"], "tanh", "identity", widths=(2,))
    with pytest.raises(DivergenceError) as caught:
        net.fit(np.full((1, 3), 1e200), np.full((1, 2), 1e200), learning_rate=1.0, epochs=1)
    for again in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert str(again) == str(caught.value)
        assert again.epoch == 0
        assert again.history.epochs == 0
