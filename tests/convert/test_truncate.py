"""Truncated networks: exact at full rank, within the tolerance otherwise, and trainable."""

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadric import Network, QuadraticLogisticRegression, QuadraticRegressor, datasets
from quadric.convert import fold, truncate, truncation_scores
from quadric.core import Linear, Quadratic, Reduced
from quadric.explain import spectrum
from tests.support.networks import CURVED, LAST, LINEAR, SEEDS, WIDTHS, create, largest_error

DIGITS = datasets.digits()
X, Y = DIGITS.X_train / 16, DIGITS.y_train
X_TEST, Y_TEST = DIGITS.X_test / 16, DIGITS.y_test


@pytest.fixture(scope="module")
def mlp():
    """A bilinear MLP for 8x8 digits."""
    layers = [("linear", 16, "identity"), ("reduced", 32, "identity"), ("linear", 10, "softmax")]
    network = Network.create(64, layers, rng=0)
    options = {"solver": "adam", "learning_rate": 3e-3, "batch_size": 32, "epochs": 25}
    network.fit(X, np.eye(10)[Y], **options)
    return network


def accuracy(network, inputs=X_TEST, labels=Y_TEST):
    return np.mean(network.logits(inputs).argmax(axis=1) == labels)


def ranks_of(network):
    return np.count_nonzero(network.layers[1].W, axis=1) - 1


@given(WIDTHS, LINEAR, CURVED, LINEAR, LAST, SEEDS)
def test_at_full_rank_the_outputs_are_the_models(n, before, curved, after, last, seed):
    network = create(n, [*before, curved, *after], last, seed)
    full = truncate(network, n)
    assert [type(layer) for layer in full.layers] == [Reduced, Linear]
    assert full.activations == ("identity", last)
    inputs = np.random.default_rng(seed).normal(size=(20, n))
    found, wanted = full.logits(inputs), network.logits(inputs)
    size = np.abs(wanted).max()
    if last == "softmax":  # the logits of each row differ by the same number
        found, wanted = (z - z[:, :1] for z in (found, wanted))
    assert np.abs(found - wanted).max() <= 1e-12 * size


def test_certify_C11_a_matrix_added_to_all_classes_changes_the_truncated_softmax():
    rng = np.random.default_rng(0)
    data, labels = load_iris(return_X_y=True)
    layer = QuadraticLogisticRegression().fit(data - data.mean(axis=0), labels).network_.layers[0]
    data = data - data.mean(axis=0)
    common = 30 * rng.normal(size=(4, 4))
    moved = Quadratic(layer.W, layer.b, layer.Q + common + common.T)
    for rank in (0, 1, 2, [0, 3, 1]):
        first, second = (
            truncate(Network([one], ["softmax"]), rank).forward(data) for one in (layer, moved)
        )
        np.testing.assert_allclose(first, second, atol=1e-9)
    scores = [
        truncation_scores(Network([one], ["softmax"]), data, labels)[1] for one in (layer, moved)
    ]
    np.testing.assert_array_equal(*scores)
    assert scores[0][1] > 0.95
    lowest = [
        truncate(Network([one], ["softmax"]), tolerance=0.01, X=data, y=labels)
        for one in (layer, moved)
    ]
    assert ranks_of(lowest[0]).tolist() == ranks_of(lowest[1]).tolist()


def test_certify_C11_truncate_keeps_other_eigenvectors_than_spectrum_shows():
    network = Network.create(6, [("quadratic", 3, "softmax")], init="normal", scale=1.0, rng=0)
    for centered in (None, True, False):
        found, kept = spectrum(network, centered=centered), truncate(network, 2, centered=centered)
        Q, vectors = fold(kept).layers[0].Q, found.eigenvectors[:, :2]
        wanted = np.einsum("kr,kri,krj->kij", found.eigenvalues[:, :2], vectors, vectors)
        np.testing.assert_allclose(Q, wanted, atol=1e-12)


def test_the_eigenvalues_of_largest_magnitude_are_kept():
    Q = np.diag([3.0, -5.0, 1.0])
    layer = Quadratic([[1.0, 2.0, 3.0]], [4.0], [Q])
    kept = truncate(layer, 2)
    inputs = np.random.default_rng(0).normal(size=(10, 3))
    a, b, c = inputs.T
    wanted = 3 * a**2 - 5 * b**2 + a + 2 * b + 3 * c + 4
    np.testing.assert_allclose(kept.logits(inputs)[:, 0], wanted, rtol=1e-12)
    np.testing.assert_allclose(
        truncate(layer, 0).logits(inputs)[:, 0], a + 2 * b + 3 * c + 4, rtol=1e-12
    )


def test_a_prediction_costs_as_many_products_as_the_ranks():
    network = Network.create(50, [("quadratic", 3, "softmax")], rng=0)
    small = truncate(network, [4, 0, 7])
    assert (small.layers[0].n_outputs, small.layers[1].n_outputs) == (4 + 0 + 7 + 3, 3)
    assert ranks_of(small).tolist() == [4, 0, 7]
    assert small.n_parameters < network.n_parameters / 2


def test_pipelines_are_truncated_in_the_scaled_features():
    data, labels = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), PCA(3), QuadraticLogisticRegression())
    model.fit(data * [1.0, 100.0, 1.0, 0.01], labels)
    data = data * [1.0, 100.0, 1.0, 0.01]
    full = truncate(model, 3, centered=False)
    assert largest_error(full.logits(data), model.decision_function(data)) <= 1e-12
    scaled = model[:-1].transform(data)
    alone = truncate(model[-1], 1)
    assert largest_error(truncate(model, 1).logits(data), alone.logits(scaled)) <= 1e-12


def test_the_tolerance_is_kept_and_no_rank_can_be_lowered(mlp):
    full = accuracy(mlp)
    small = truncate(mlp, tolerance=0.01, X=X_TEST, y=Y_TEST)
    ranks = ranks_of(small)
    assert accuracy(small) >= full - 0.01
    assert ranks.sum() < 64 * 10 / 4
    assert len(set(ranks.tolist())) > 1  # each class has its own rank
    for k in np.flatnonzero(ranks):
        fewer = ranks.copy()
        fewer[k] -= 1
        assert accuracy(truncate(mlp, fewer)) < full - 0.01


def test_scores_by_rank_are_those_of_the_truncated_networks(mlp):
    ranks, scores = truncation_scores(mlp, X_TEST, Y_TEST, [8, 0, 64])
    assert ranks.tolist() == [0, 8, 64]
    wanted = [accuracy(truncate(mlp, rank)) for rank in ranks]
    np.testing.assert_array_equal(scores, wanted)
    assert scores[2] == accuracy(mlp)
    assert scores[0] < scores[1]
    assert truncation_scores(mlp, X_TEST[:50], Y_TEST[:50])[0].tolist() == list(range(65))


def test_scores_at_full_rank_are_those_of_the_estimator():
    data, target = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[target]
    for labels, rows in ((names, slice(None)), (names[50:], slice(50, None))):
        model = make_pipeline(StandardScaler(), QuadraticLogisticRegression())
        model.fit(data.iloc[rows], labels)
        _, scores = truncation_scores(model, data.iloc[rows], labels, [4])
        assert scores[0] == model.score(data.iloc[rows], labels)
    data, y = load_diabetes(return_X_y=True)
    regressor = QuadraticRegressor((), random_state=0).fit(data, y)
    _, scores = truncation_scores(regressor, data, y, [0, 10])
    assert scores[1] == pytest.approx(regressor.score(data, y), abs=1e-9)
    assert scores[0] < scores[1]


def test_the_score_of_numbers_is_that_of_scikit_learn():
    """The mean over the outputs, and 0 or 1 for constant targets."""
    inputs = np.random.default_rng(0).normal(size=(100, 3))
    targets = np.column_stack([inputs[:, 0] * inputs[:, 1], 10 * inputs[:, 2] ** 2])
    model = QuadraticRegressor((), max_iter=5, random_state=0).fit(inputs, targets)
    for y in (targets, np.ones((100, 2)), np.column_stack([targets[:, 0], np.ones(100)])):
        _, scores = truncation_scores(model, inputs, y)
        assert scores[-1] == pytest.approx(r2_score(y, model.predict(inputs)), abs=1e-9)
    zero = Quadratic(np.zeros((1, 3)), [2.0], np.zeros((1, 3, 3)))
    np.testing.assert_array_equal(truncation_scores(zero, inputs, np.full(100, 2.0))[1], 1.0)
    constant = truncate(model, tolerance=0.1, X=inputs, y=np.ones((100, 2)))
    assert ranks_of(constant).tolist() == [0, 0]


def test_a_truncated_network_can_be_trained_further(mlp):
    small = truncate(mlp, 2)
    before, _ = small.gradients(X, np.eye(10)[Y])
    score = accuracy(small)
    small.fit(X, np.eye(10)[Y], solver="adam", learning_rate=1e-3, batch_size=32, epochs=10)
    after, _ = small.gradients(X, np.eye(10)[Y])
    assert after < before / 2
    assert accuracy(small) > score
    assert [type(layer) for layer in small.layers] == [Reduced, Linear]


def test_a_truncated_network_can_be_trained_with_torch(mlp):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from quadric.torch import from_network, to_network

    module = from_network(truncate(mlp, 2))
    x, y = torch.tensor(X[:300]), torch.tensor(Y[:300])
    optimizer = torch.optim.Adam(module.parameters(), lr=3e-3)
    losses = []
    for _ in range(10):
        loss = torch.nn.functional.cross_entropy(module.logits(x), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < 0.9 * losses[0]
    assert fold(to_network(module)).layers[0].n_inputs == 64


def test_wrong_arguments_are_refused(mlp):
    with pytest.raises(TypeError, match="exactly one of rank and tolerance"):
        truncate(mlp)
    with pytest.raises(TypeError, match="tolerance needs X and y"):
        truncate(mlp, tolerance=0.1)
    with pytest.raises(ValueError, match=r"one for each of the 10 outputs, up to 64"):
        truncate(mlp, [1, 2])
    with pytest.raises(ValueError, match=r"one for each of the 10 outputs, up to 64"):
        truncate(mlp, 65)
    with pytest.raises(ValueError, match="rank must be a whole number of at least 0"):
        truncate(mlp, -1)
    with pytest.raises(ValueError, match=r"y must hold the model's classes.*Got \[10\]"):
        truncate(mlp, tolerance=0.1, X=X[:2], y=[1, 10])
    with pytest.raises(ValueError, match=r"y must have shape \(2,\)"):
        truncate(mlp, tolerance=0.1, X=X[:2], y=[1])
    classifier = QuadraticLogisticRegression().fit(X[:20], Y[:20] % 3)
    with pytest.raises(ValueError, match=r"y must have shape \(20,\).*Got \(20, 3\)"):
        truncation_scores(classifier, X[:20], np.eye(3)[Y[:20] % 3])
    with pytest.raises(ValueError, match="ranks must hold whole numbers up to 64"):
        truncation_scores(mlp, X, Y, [65])
    deep = Network.create(4, [("quadratic", 3, "tanh"), ("linear", 2, "softmax")], rng=0)
    with pytest.raises(ValueError, match=r"must fold to a single quadratic layer.*2 layers"):
        truncate(deep, 1)
