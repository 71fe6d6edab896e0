"""The training engine: state, divergence rule and limits."""

import json
import pickle
import threading
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from quadric import (
    DivergenceError,
    Linear,
    Network,
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
    load,
)
from quadric.core import Stack
from quadric.training import Options, Samples, TrainingState, train
from quadric.training._divergence import Watch
from quadric.training._run import Schedule
from quadric.training._steppers import MiniBatch
from tests.support.networks import make_network, max_difference, targets

FIXTURES = Path(__file__).parents[1] / "fixtures"
PAPER = {"solver": "sgd", "batch_size": 1, "momentum": 0.0}


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def run(net, samples, options, state, rng=None):
    stack = Stack(net.layers, net.activations, "binary_cross_entropy")
    return train(stack, samples, options, state, rng=rng)


# ---- state -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "adam", "batch_size": 7},
        {"solver": "sgd", "batch_size": 7, "momentum": 0.9, "nesterov": True},
        {"solver": "sgd", "batch_size": 7, "schedule": "adaptive", "n_iter_no_change": 0},
        {"solver": "sgd", "batch_size": 1, "l2": 0.1, "schedule": "invscaling"},
    ],
)
def test_a_state_continues_bit_identically_after_a_round_trip(options):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), targets("binary_cross_entropy", 40, 2, rng)
    samples, options = Samples(X, Y), Options(epochs=1, resume=True, tol=0.0, **options)
    whole = make_network(("linear", "quadratic"), "tanh", "logistic")
    parts, state, states = whole.copy(), TrainingState(), TrainingState()
    for call in range(6):
        for net, where in ((whole, state), (parts, states)):
            run(net, samples, options, where, np.random.default_rng(call))
        arrays, numbers = states.to_arrays()
        arrays = {name: array.copy() for name, array in arrays.items()}
        states = TrainingState.from_arrays(arrays, json.loads(json.dumps(numbers)))
    assert max_difference(whole, parts) == 0.0
    assert state.history.loss == states.history.loss
    assert state.samples == states.samples == 240
    assert state.optimizer.steps == states.optimizer.steps


def test_without_resume_no_state_is_kept():
    rng = np.random.default_rng(0)
    samples = Samples(rng.normal(size=(20, 3)), targets("binary_cross_entropy", 20, 2, rng))
    options = Options(solver="adam", batch_size=5, epochs=2)
    one = make_network(("linear", "quadratic"), "tanh", "logistic")
    other, used = one.copy(), TrainingState(schedule=Schedule(damping=0.1))
    spare = one.copy()
    for net, state in ((spare, used), (one, used), (other, TrainingState())):
        run(net, samples, options, state, np.random.default_rng(1))
    assert max_difference(one, other) == 0.0
    assert used.history.epochs == 4


def test_a_pickled_estimator_has_one_private_state():
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier((), solver="adam", random_state=0)
    model.partial_fit(X, y, classes=[0, 1, 2])
    private = {name for name in vars(model) if name.startswith("_")}
    assert private == {"_state", "_alpha", "_label_binarizer"}
    again = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    assert np.array_equal(model.partial_fit(X, y).coefs_[0], again.coefs_[0])


@pytest.mark.parametrize("early_stopping", [False, True])
def test_an_interrupted_fit_keeps_its_finished_epochs(early_stopping, monkeypatch):
    X, y = load_iris(return_X_y=True)
    options = {"solver": "adam", "random_state": 0, "early_stopping": early_stopping}
    run_epoch, calls = MiniBatch.run_epoch, []

    def interrupted(stepper, order, rate):
        calls.append(rate)
        if len(calls) == 4:
            stepper.stack.layers[0].W = np.zeros_like(stepper.stack.layers[0].W)
            raise KeyboardInterrupt
        return run_epoch(stepper, order, rate)

    monkeypatch.setattr(MiniBatch, "run_epoch", interrupted)
    with pytest.warns(UserWarning, match="Training interrupted by user"):
        model = QuadraticClassifier((4,), **options).fit(X, y)
    assert model.n_iter_ == len(model.loss_curve_) == 3
    with pytest.warns(ConvergenceWarning):
        other = QuadraticClassifier((4,), max_iter=3, **options).fit(X, y)
    assert np.array_equal(model.coefs_[0], other.coefs_[0])


def test_a_loaded_model_continues():
    """The optimizer's state is not in the file, and starts from zero."""
    model = load(FIXTURES / "format1_pipeline.quadric")[-1]
    assert "_state" not in vars(model)
    assert not {"_rate", "_solver", "_no_improvement_count"} & set(vars(model))
    losses, seen = len(model.loss_curve_), model.t_
    X = np.random.default_rng(0).normal(size=(30, model.n_features_in_))
    model.partial_fit(X, model.predict(X))
    assert len(model.loss_curve_) == losses + 1
    assert model.t_ == seen + 30


# ---- cases that are not divergence -----------------------------------------------------------


@pytest.mark.slow
def test_one_sample_at_a_time_is_not_divergence():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = 100 * X[:, 0] + 50 * X[:, 1]
    mine = QuadraticRegressor(random_state=0, learning_rate_init=0.01)
    mlp = MLPRegressor(random_state=0, learning_rate_init=0.01)
    with warnings.catch_warnings(action="error"):
        for i in range(1500):
            mine.partial_fit(X[i : i + 1], y[i : i + 1])
            mlp.partial_fit(X[i : i + 1], y[i : i + 1])
    assert mine._state.schedule.damping == 1.0
    assert mine.score(X, y) > 0.99
    assert mlp.score(X, y) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, PAPER])
def test_class_by_class_is_not_divergence(options):
    X, y = digits()
    model = QuadraticClassifier(random_state=0, learning_rate_init=0.01, **options)
    with warnings.catch_warnings(action="error"):
        for k in range(10):
            for _ in range(30):
                model.partial_fit(X[y == k], y[y == k], classes=np.arange(10))
    assert model._state.schedule.damping == 1.0
    assert model.score(X[y == 9], y[y == 9]) == 1.0


@pytest.mark.parametrize("options", [{"solver": "adam"}, {"solver": "sgd"}, PAPER])
def test_a_warm_start_on_other_targets_is_not_divergence(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] * X[:, 1]
    model = QuadraticRegressor(
        (), warm_start=True, random_state=0, learning_rate_init=0.01, max_iter=300, **options
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        assert model.fit(X, y).loss_ < 1e-2
        model.fit(X, y + 100.0)
    assert model._state.call.recoveries == 0
    assert model.n_iter_ > 12  # the loss is not compared with the best loss of the old targets
    assert model._state.call.loss_at_end < 0.9 * model._state.call.loss_at_start


def test_heavy_tails_are_not_divergence():
    """The epoch includes the one large target; the rows that are evaluated do not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2500, 2)), rng.normal(size=2500)
    y[1], X[1] = 1e4, 0.0
    model = QuadraticRegressor((), solver="adam", max_iter=3, random_state=0, on_divergence="raise")
    with pytest.warns(ConvergenceWarning, match="Maximum iterations"):
        model.fit(X, y)


def test_the_loss_of_a_large_penalty_is_not_divergence():
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier((4,), alpha=1e4, on_divergence="raise", random_state=0, **PAPER)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.set_params(learning_rate_init=1e-5, max_iter=5).fit(
            StandardScaler().fit_transform(X), y
        )


# ---- divergence ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_rate_far_too_high_is_lowered_until_it_works():
    X, y = digits()
    model = QuadraticClassifier(solver="sgd", learning_rate_init=0.5, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"diverged 1 time.*from 0\.5 to 0\.05"):
        model.fit(X, y)
    assert model.score(X, y) > 0.95


@pytest.mark.slow
def test_a_lowered_rate_rises_again():
    X, y = digits()
    model = QuadraticClassifier(
        (), solver="sgd", learning_rate_init=10.0, random_state=0, batch_size=50
    )
    with pytest.warns(ConvergenceWarning, match="diverged"):
        model.partial_fit(X, y, classes=np.arange(10))
    damping = model._state.schedule.damping
    assert damping < 1
    model.set_params(learning_rate_init=1e-4)
    for call in range(1, 12):
        model.partial_fit(X, y)
        assert model._state.schedule.damping == min(1.0, damping * 2**call)


def test_a_rate_that_fails_again_rises_more_slowly():
    net = Network([Linear([[1.0]], [0.0])], ["identity"])
    schedule = Schedule(damping=1e-3, failed_calls=3)
    state = TrainingState(schedule=schedule)
    samples = Samples(np.ones((2, 1)), np.ones((2, 1)))
    watch = Watch(Stack(net.layers, net.activations), samples, Options(resume=True), state, 0.0)
    for call in range(1, 13):
        watch.end_call()
        assert schedule.damping == 1e-3 * 2 ** (call // 4)
    state.call.recoveries = 1
    watch.end_call()
    assert schedule.failed_calls == 4
    state.call.recoveries, schedule.damping = 0, 1.0
    for _ in range(128):
        assert schedule.failed_calls == 4
        watch.end_call()
    assert schedule.failed_calls == 0


@pytest.mark.filterwarnings("ignore:Training diverged")
def test_a_single_step_that_diverges_is_undone():
    X, y = digits()
    X, y = X[:200], y[:200]
    model = QuadraticClassifier(solver="sgd", learning_rate_init=0.5, random_state=0)
    for _ in range(50):
        model.partial_fit(X, y, classes=np.arange(10))
    assert model._state.schedule.failed_calls > 0
    assert max(model.loss_curve_) < 10 * model.loss_curve_[0]
    assert model.score(X, y) > 0.98


def test_a_batch_that_fails_at_every_rate_does_not_lower_the_rate():
    X, y = digits()
    model = QuadraticClassifier((), solver="sgd", random_state=0)
    model.partial_fit(X, y, classes=np.arange(10))
    with pytest.raises(DivergenceError, match="lowered 12 times before"):
        model.partial_fit(np.full((3, 64), 1e200), y[:3])
    assert model._state.schedule.damping == 1.0


@pytest.mark.parametrize("options", [{"solver": "adam"}, {"solver": "sgd"}, PAPER])
def test_training_continues_after_a_caught_error(options):
    X, y = digits()
    model = QuadraticClassifier((), random_state=0, on_divergence="raise", **options)
    model.partial_fit(X, y, classes=np.arange(10))
    before, scores = model.network_.copy(), []
    with pytest.raises(DivergenceError):
        model.partial_fit(np.full((3, 64), 1e200), y[:3])
    assert max_difference(before, model.network_) == 0.0
    for _ in range(5):
        scores.append(model.partial_fit(X, y).score(X, y))
    assert scores[-1] > scores[0]


def test_the_divergence_error_describes_the_cause():
    X, y = digits()
    model = QuadraticClassifier(
        solver="sgd", learning_rate_init=0.5, random_state=0, on_divergence="raise"
    )
    with pytest.raises(
        DivergenceError, match=r"the loss grew from 2\.\d+ at the start to"
    ) as caught:
        model.fit(X, y)
    error = caught.value
    assert isinstance(error, ValueError)
    assert isinstance(error, ArithmeticError)
    assert error.loss > 10 * error.reference
    assert error.learning_rate == 0.5
    assert "learning_rate=0.5" in str(error)
    assert "not finite" not in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.loss, again.reference, str(again)) == (error.loss, error.reference, str(error))
    net = Network.create(2, [("quadratic", 1, "identity")], rng=0)
    with pytest.raises(DivergenceError, match=r"a value was not finite at epoch \d+.*rate=1000"):
        net.fit(np.ones((5, 2)), np.ones(5), learning_rate=1000.0, epochs=50)
    hopeless = QuadraticRegressor((), solver="sgd", random_state=0)
    with pytest.raises(DivergenceError, match="lowered 12 times before") as caught:
        hopeless.fit(1e200 * np.ones((5, 2)), np.ones(5))
    assert caught.value.recoveries == 12
    assert caught.value.learning_rate == pytest.approx(1e-15)


def test_a_fit_that_ends_worse_than_it_began_warns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.normal(size=300)
    model = QuadraticRegressor((), solver="adam", max_iter=3, random_state=0, batch_size=10)
    model.set_params(learning_rate_init=0.05)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert not [w for w in caught if "larger loss" in str(w.message)]
    model = QuadraticRegressor((), solver="adam", max_iter=100, random_state=0, warm_start=True)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.set_params(learning_rate_init=0.05).fit(X, y)
    model.set_params(learning_rate_init=0.7, max_iter=1, batch_size=1)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert [w for w in caught if "than it began with" in str(w.message)]


def test_warnings_point_to_the_users_line():
    X, y = digits()
    model = QuadraticClassifier((3,), solver="adam", max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__


# ---- L-BFGS ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:lbfgs failed")
@pytest.mark.parametrize("most", [1, 2, 7, 40, 100])
def test_max_fun_is_respected_while_auto_chooses(most, monkeypatch):
    calls = 0

    def counted(*arguments):
        nonlocal calls
        calls += 1
        return gradients(*arguments)

    gradients = Stack.gradients
    monkeypatch.setattr(Stack, "gradients", counted)
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier(random_state=0, max_fun=most).fit(X, y)
    assert calls <= most
    assert np.isfinite(model.loss_)


@pytest.mark.parametrize("size", [5.0, 1e160])  # the second trial point has an infinite loss
@pytest.mark.parametrize("most", [1, 2])
def test_evaluations_that_run_out_keep_the_start_and_its_loss(size, most):
    """The last trial point of an unfinished line search is not kept, nor is its loss."""
    first = Linear(np.full((1, 1), size), np.zeros(1))
    second = Linear(np.zeros((1, 1)), np.zeros(1))
    net = Network([first, second], ["identity", "identity"])
    stack, samples = (
        Stack(net.layers, net.activations, "squared_error"),
        Samples(np.array([[1.0], [2.0]]), np.full((2, 1), 3.0)),
    )
    state, start = TrainingState(), net.copy()
    train(stack, samples, Options(solver="lbfgs", epochs=5, max_evaluations=most), state)
    assert state.history.exhausted
    assert max_difference(net, start) == 0
    assert state.history.loss == [pytest.approx(4.5)]


def test_monomials_are_penalized_as_monomials():
    rng = np.random.default_rng(0)
    net = make_network(["quadratic"], "tanh", "logistic", widths=(2,))
    samples = Samples(rng.normal(size=(30, 3)), targets("binary_cross_entropy", 30, 2, rng))
    losses = {}
    for penalty in ("entries", "monomials"):
        options = Options(solver="lbfgs", l2=0.3, penalty=penalty, epochs=1, max_evaluations=1)
        state = TrainingState()
        copy = net.copy()
        run(copy, samples, options, state)
        assert max_difference(copy, net) == 0.0
        losses[penalty] = state.history.loss[-1]
    Q = net.layers[0].Q
    off = sum(float((Q[:, i, j] ** 2).sum()) for i in range(3) for j in range(i + 1, 3))
    assert losses["monomials"] - losses["entries"] == pytest.approx(0.3 / 2 * 3 * off, rel=1e-9)


def test_scale_of_inputs_does_not_change_the_iterations():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    iterations = [
        QuadraticLogisticRegression(C=np.inf, tol=1e-3, max_iter=60).fit(X * s, y).n_iter_
        for s in ([1, 1, 1, 1], [0.1, 1, 10, 1])
    ]
    assert abs(iterations[0] - iterations[1]) <= 3


# ---- CSR indices -----------------------------------------------------------------------------


def damaged(X, bad, form=sparse.csr_matrix):
    X = form(X)
    X.indices = X.indices.copy()
    X.indices[3] = bad
    return X


@pytest.mark.slow
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("bad", [4, -1, 10**8])
@pytest.mark.parametrize(
    "model",
    [
        QuadraticClassifier(random_state=0),
        QuadraticClassifier((), random_state=0, max_iter=2, tol=1e9, **PAPER),
        QuadraticRegressor((), solver="adam", max_iter=2, random_state=0, early_stopping=True),
        QuadraticLogisticRegression(),
    ],
)
def test_indices_outside_a_sparse_matrix_are_refused_everywhere(model, bad, form):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    wrong = damaged(X, bad if bad != 4 or form is sparse.csr_matrix else 150, form)
    with pytest.raises(ValueError, match=r"must be a valid CS[RC] matrix"):
        model.fit(wrong, y)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X, y)
    calls = [model.predict, lambda X: model.score(X, y)]
    if hasattr(model, "decision_function"):
        calls += [model.decision_function, model.predict_proba]
    if hasattr(model, "partial_fit") and not model.early_stopping:
        calls += [lambda X: model.partial_fit(X, y)]
    for call in calls:
        with pytest.raises(ValueError, match=r"must be a valid CS[RC] matrix"):
            call(wrong)


def test_networks_refuse_indices_outside_a_csc_matrix():
    net = make_network(["quadratic"], "tanh", "logistic", n=4, widths=(1,))
    wrong = damaged(np.eye(4), 10**8, sparse.csc_matrix)
    for call in (net.forward, lambda X: net.fit(X, np.ones(4))):
        with pytest.raises(ValueError, match="X must be a valid CSC matrix"):
            call(wrong)


# ---- BLAS threads ----------------------------------------------------------------------------


def blas_threads():
    from threadpoolctl import threadpool_info

    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.slow
def test_the_number_of_blas_threads_is_restored():
    X, y = load_iris(return_X_y=True)
    QuadraticLogisticRegression().fit(X, y)
    before = blas_threads()
    together = [
        threading.Thread(target=lambda: [QuadraticLogisticRegression().fit(X, y) for _ in range(5)])
        for _ in range(4)
    ]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert blas_threads() == before


@pytest.mark.parametrize("limited", [True, False])
def test_the_last_of_several_fits_restores_the_number_of_threads(limited):
    """The first fit to start ends first; the second has started with the lowered number.

    Both threads keep running, and the user may have set a number of threads before. The last fit to
    end restores that number.
    """
    from threadpoolctl import threadpool_limits

    net = make_network(["linear"], "tanh", "logistic", n=4, widths=(1,))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.integers(0, 2, 50)
    inside, left = ([threading.Event(), threading.Event()] for _ in range(2))
    seen, end, over = [], threading.Event(), threading.Event()

    def fit(k):
        def meet(epoch):
            inside[k].set()
            assert inside[1 - k].wait(60)
            seen.append(blas_threads())
            assert k == 0 or end.wait(60)

        net.copy().fit(X, y, batch_size=10, epochs=1, callback=meet)
        left[k].set()
        over.wait(60)

    with threadpool_limits(2, user_api="blas") if limited else nullcontext():
        before = blas_threads()
        threads = [threading.Thread(target=fit, args=(k,)) for k in range(2)]
        threads[0].start()
        assert inside[0].wait(60)
        threads[1].start()
        assert left[0].wait(60)
        during = blas_threads()
        end.set()
        assert left[1].wait(60)
        after = blas_threads()
        over.set()
        for thread in threads:
            thread.join()
    assert len(seen) == 2
    assert {n for numbers in (*seen, during) for n in numbers} == {1}
    assert after == before


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_rate_of_zero_leaves_the_weights_unchanged():
    X, y = load_iris(return_X_y=True)
    model = QuadraticClassifier((), solver="sgd", learning_rate="invscaling", power_t=1e30)
    model.set_params(max_iter=2, momentum=0.0, random_state=0).fit(X, y)
    weights = model.network_.layers[0].W.copy()
    model.partial_fit(X, y)
    assert np.array_equal(model.network_.layers[0].W, weights)
