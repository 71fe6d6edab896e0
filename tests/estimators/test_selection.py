"""What 'auto' chooses: the shape, the penalty and the relevance of the inputs."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import quadric
from quadric import Network, QuadraticClassifier, QuadraticLogisticRegression, QuadraticRegressor
from quadric.core import Stack
from quadric.estimators._auto_choice import (
    LEAST_RELEVANCE,
    Candidate,
    Trial,
    _expected_mistakes,
    _held_out_losses,
    _Race,
    _splits,
    relevance_of,
)
from quadric.training import Options, Samples, TrainingState, train


def classes(z, rng):
    return (z + rng.logistic(size=len(z)) > 0).astype(int)


def halves(X, y):
    half = len(y) // 2
    return X[:half], y[:half], X[half:], y[half:]


@pytest.mark.slow
def test_a_linear_truth_in_many_inputs_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 300))
    X, y, X_new, y_new = halves(X, classes(2 * X @ rng.normal(size=300) / np.sqrt(300), rng))
    model = QuadraticClassifier(random_state=0).fit(X, y)
    linear = LogisticRegression().fit(X, y)
    assert model.score(X_new, y_new) > linear.score(X_new, y_new) - 0.01


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_a_quadratic_truth_in_few_of_many_inputs_is_found(seed):
    rng = np.random.default_rng(seed)
    X, A = rng.normal(size=(10_000, 100)), rng.normal(size=(10, 10))
    z = np.einsum("ni,ij,nj->n", X[:, :10], A, X[:, :10]) + X[:, :10] @ rng.normal(size=10)
    X, y, X_new, y_new = halves(X, classes(4 * (z - np.median(z)) / z.std(), rng))
    model = QuadraticClassifier(random_state=0).fit(X, y)
    known = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=2000))
    known.fit(X[:, :10], y)
    assert model.score(X_new, y_new) > known.score(X_new[:, :10], y_new) - 0.02
    assert next(one for one in model.selection_ if one["chosen"])["relevance"]


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_the_selection_of_an_earlier_fit_is_removed(solver):
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier((), alpha=1.0, max_iter=5, random_state=0).fit(X, y)
    assert "selection_" in vars(model)
    model.set_params(solver=solver, max_iter=2).fit(X, y)
    assert "selection_" not in vars(model)


@pytest.mark.slow
def test_many_samples_are_all_used():
    """The shape is chosen on some of the samples, and the network trained on all of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 20))
    X, y, X_new, y_new = halves(X, classes((X[:, :4] ** 2).sum(axis=1) - 4, rng))
    model = QuadraticClassifier(random_state=0).fit(X, y)
    best = ((X_new[:, :4] ** 2).sum(axis=1) > 4) == y_new
    assert model.score(X_new, y_new) > best.mean() - 0.01


@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_samples_of_weight_zero_do_not_affect_the_choice():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 2)), np.arange(1000) % 2
    model = QuadraticClassifier(random_state=0, max_iter=20)
    weighted = model.fit(X, y, sample_weight=np.arange(1000) < 30).selection_
    assert weighted == model.fit(X[:30], y[:30]).selection_


def test_a_choice_among_many_samples_of_weight_zero():
    """Few have a weight, so a random part of all samples may have none."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_001, 2)), np.arange(20_001) % 2
    model = QuadraticClassifier(random_state=0, max_iter=20)
    model.fit(X, y, sample_weight=np.arange(20_001) < 4)
    assert model.score(X[:4], y[:4]) == 1


def test_selection_is_a_record_of_plain_values(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier(random_state=0).fit(X, y)
    tried = model.selection_
    assert json.loads(json.dumps(tried)) == tried
    assert [one["chosen"] for one in tried].count(True) == 1
    losses = [one["loss"] for one in tried]
    assert losses == sorted(losses)
    assert {one["shape"] for one in tried} >= {
        "linear output",
        "quadratic output",
        "32 hidden, quadratic output",
        "32 hidden, linear output",
    }
    quadric.save(model, tmp_path / "model.quadric")
    assert quadric.load(tmp_path / "model.quadric").selection_ == tried


def test_the_same_seed_chooses_the_same_model():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    first, second = (QuadraticClassifier(random_state=3).fit(X, y) for _ in range(2))
    assert first.selection_ == second.selection_
    assert first.predict_proba(X).tobytes() == second.predict_proba(X).tobytes()


def test_candidates_that_need_too_much_memory_are_skipped():
    X = np.random.default_rng(0).normal(size=(300, 60))
    y = (X[:, 0] > 0).astype(int)
    quadric.set_config(max_memory="1500 kB")
    try:
        model = QuadraticClassifier(random_state=0).fit(X, y)
        skipped = [one["shape"] for one in model.selection_ if "skipped" in one]
        quadric.set_config(max_memory="100 kB")
        with pytest.raises(MemoryError):
            QuadraticClassifier(random_state=0).fit(X, y)
    finally:
        quadric.set_config(max_memory=None)
    assert "quadratic output" in skipped
    assert model.score(X, y) > 0.95


def test_regression_chooses_a_shape():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    model = QuadraticRegressor(random_state=0).fit(X, 1000 + 50 * X[:, 0] * X[:, 1])
    assert next(one for one in model.selection_ if one["chosen"])["shape"] == "quadratic output"
    assert model.score(X, 1000 + 50 * X[:, 0] * X[:, 1]) > 0.999


def test_relevance_scales_the_inputs():
    """With the relevance s, the optimum is that for inputs s * x."""
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(200, 3)), np.array([1.0, 0.5, 0.1])
    y = classes(X[:, 0] ** 2 + X[:, 1] - X[:, 2], rng)
    scaled = QuadraticLogisticRegression(C=0.5, tol=1e-9, max_iter=2000).fit(X * s, y)
    net = Network.create(3, [("quadratic", 1, "logistic")], init="relinear", rng=0)
    options = Options(
        solver="lbfgs", epochs=2000, l2=2.0, penalty="monomials", relevance=s, by_weight=True
    )
    stack = Stack(net.layers, net.activations, "binary_cross_entropy")
    train(stack, Samples(X, y[:, None].astype(float)), options, TrainingState())
    np.testing.assert_allclose(
        stack.logits(X)[:, 0], scaled.decision_function(X * s), rtol=1e-4, atol=1e-5
    )


def test_the_relevance_of_an_input_is_the_norm_of_its_weights():
    net = Network.create(3, [("quadratic", 2, "softmax")], init="relinear", rng=0)
    layer = net.layers[0]
    layer.W[...] = [[3.0, 0, 0], [4.0, 0, 0]]
    layer.packed[...] = 0
    layer.packed[1, 0] = 1.0  # q_12
    np.testing.assert_allclose(relevance_of(net), [1, 2 / np.sqrt(29), LEAST_RELEVANCE])
    layer.W[...] = layer.packed[...] = 0
    np.testing.assert_array_equal(relevance_of(net), [1, 1, 1])


def test_curved_functions_are_learned():
    """For many iterations, a network may be no better than a single layer."""
    X, y = make_moons(100, noise=0.1, random_state=1)
    moons = make_pipeline(StandardScaler(), QuadraticClassifier(random_state=1)).fit(X, y)
    assert moons.score(*make_moons(1000, noise=0.1, random_state=2)) > 0.98
    rng = np.random.default_rng(3)
    U = rng.uniform(-3, 3, (3000, 2))
    z = np.sin(2 * U[:, 0]) * np.cos(2 * U[:, 1]) + 0.1 * rng.normal(size=3000)
    waves = make_pipeline(StandardScaler(), QuadraticRegressor(random_state=3))
    assert waves.fit(U[:2000], z[:2000]).score(U[2000:], z[2000:]) > 0.93


def test_a_curved_function_of_two_of_ten_inputs_is_learned():
    """The relevance that a quadratic layer finds helps the network with hidden neurons."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 10))
    radius = np.hypot(X[:, 0], X[:, 1])
    X, y, X_new, y_new = halves(X, ((radius > 0.75) & (radius < 1.5)).astype(int))
    model = QuadraticClassifier(random_state=2).fit(X, y)
    assert model.score(X_new, y_new) > 0.94


def test_a_confident_candidate_pays_for_the_mistake_it_will_make():
    X = np.linspace(-1, 1, 40)[:, None]
    held = Samples(X, (X > 0).astype(float))
    losses = {}
    for slope in (5.0, 1000.0):
        layer = quadric.Linear(np.array([[slope]]), np.zeros(1))
        losses[slope] = _held_out_losses(Stack([layer], ["logistic"]), held, 40).mean()
    assert losses[1000.0] > losses[5.0]
    # the loss if all 40 samples belonged to the other class, divided by their number
    np.testing.assert_allclose(losses[1000.0], (1000 * np.abs(X)).mean() / 40, rtol=1e-3)


def test_the_expected_mistakes_of_exponential_tails():
    """The estimate is not far below the true number, and is cautious if there are few margins."""
    rng = np.random.default_rng(0)
    for lowest in (2.0, 6.0):
        estimates = {
            count: np.mean(
                [_expected_mistakes(lowest - rng.exponential(size=count)) for _ in range(200)]
            )
            for count in (30, 1000)
        }
        for count, estimate in estimates.items():
            assert estimate > 0.5 * min(1, count * np.exp(-lowest))
        assert estimates[30] / 30 > estimates[1000] / 1000
    gap = 20 + rng.random(50)
    assert _expected_mistakes(gap) < 1e-6
    assert _expected_mistakes(np.append(gap, -1)) > 0.5  # one mistake has been made
    assert _expected_mistakes(np.full(50, 20.0)) == 1  # nothing is known about the tail


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_probabilities_are_confident_only_if_the_classes_are_separate(noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3))
    z = X[:, 0] * X[:, 1] + X[:, 2]
    X, y = X[np.abs(z) > 1], z[np.abs(z) > 1] > 0
    y ^= rng.random(len(y)) < noise
    model = QuadraticClassifier(random_state=0).fit(X[:500], y[:500])
    loss = log_loss(y[500:], model.predict_proba(X[500:]))
    smallest = -noise * np.log(noise) - (1 - noise) * np.log(1 - noise) if noise else 0
    assert loss < smallest + (0.15 if noise else 2e-3)


@pytest.mark.parametrize(
    ("count", "inputs", "held_out"), [(100, 100, 100), (100, 101, 50), (101, 1, 51), (300, 1, 75)]
)
def test_the_fewer_samples_there_are_the_more_of_them_are_held_out(count, inputs, held_out):
    X = np.broadcast_to(np.arange(count)[:, None], (count, inputs))
    samples = Samples(X, np.zeros((count, 1)))
    seen: list[int] = []
    for kept, held in _splits(samples, np.random.RandomState(0)):
        assert sorted([*kept.X[:, 0], *held.X[:, 0]]) == list(range(count))
        seen += list(held.X[:, 0])
    assert len(seen) == len(set(seen)) == held_out


def test_a_fit_that_stops_while_it_improves_warns():
    X, y = make_moons(300, noise=0.1, random_state=0)
    given = {"hidden_layer_sizes": (8,), "alpha": 0.01, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        QuadraticClassifier(max_iter=10, **given).fit(X, y)
    model = QuadraticClassifier(**given).fit(X, y)  # no warning
    assert model.score(X, y) == 1


def test_of_equally_good_models_the_simplest_is_chosen():
    networks = [
        Network.create(2, [(kind, 1, "logistic")], rng=0) for kind in ("linear", "quadratic")
    ]
    small, large = (Stack(network.layers, network.activations) for network in networks)
    losses = np.random.default_rng(0).random(50)
    trials = [
        Trial(Candidate((("quadratic", 1),), 1.0), [large], losses=losses, loss=0.5),
        Trial(Candidate((("linear", 1),), 1.0), [small], losses=losses[::-1], loss=0.5),
    ]
    held = Samples(np.zeros((50, 2)), np.zeros((50, 1)))
    race = _Race([(held, held)], lambda candidate: small, Options(), 10, np.random.RandomState(0))
    assert race.simplest(trials) is trials[1]
    trials[1].losses = losses + 0.1  # worse for every sample
    assert race.simplest(trials) is trials[0]


def test_a_single_layer_is_chosen_among_linear_and_quadratic_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    truth = {"linear": X @ [1.0, 2.0, 0.0], "quadratic": X[:, 0] ** 2 - X[:, 1] * X[:, 2]}
    for kind, z in truth.items():
        model = QuadraticRegressor("single", random_state=0).fit(X, z + 0.3 * rng.normal(size=300))
        assert [layer.kind for layer in model.network_.layers] == [kind]
        tried = {one["shape"] for one in model.selection_}
        assert tried == {"linear output", "quadratic output"}
    for given in ({"layer_kinds": "linear"}, {"solver": "adam", "tol": 1e9}):
        (layer,) = QuadraticRegressor("single", **given).fit(X, truth["linear"]).network_.layers
        assert layer.kind == given.get("layer_kinds", "quadratic")
