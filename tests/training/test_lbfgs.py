"""L-BFGS: optima, the line search, and runs that stop and continue."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import load_breast_cancer, load_iris

from quadric.core import Stack
from quadric.kernels import two_loop
from quadric.training import Options, Samples, TrainingState, train
from quadric.training._lbfgs import (
    CURVATURE,
    SUFFICIENT,
    Descent,
    Objective,
    _to_vector,
    search_line,
)
from tests.support.networks import make_network, max_difference, targets


def rosenbrock(x):
    return optimize.rosen(x), optimize.rosen_der(x)


def samples_of(load):
    X, y = load(return_X_y=True)
    return Samples((X - X.mean(axis=0)) / X.std(axis=0), np.eye(y.max() + 1)[y])


def stack_of(samples, kinds, dtype="float64"):
    net = make_network(
        kinds,
        "tanh",
        "softmax",
        n=samples.X.shape[1],
        widths=(*[5] * (len(kinds) - 1), samples.Y.shape[1]),
        dtype=dtype,
    )
    return Stack(net.layers, net.activations, "cross_entropy")


def dense_inverse(S, Y):
    """The inverse Hessian of BFGS as a matrix, from the pairs in the order of their age."""
    n = S.shape[1]
    H = np.eye(n) * (S[-1] @ Y[-1]) / (Y[-1] @ Y[-1])
    for s, y in zip(S, Y, strict=True):
        rho = 1 / (s @ y)
        V = np.eye(n) - rho * np.outer(y, s)
        H = V.T @ H @ V + rho * np.outer(s, s)
    return H


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 9])
def test_the_two_loops_multiply_by_the_inverse_of_bfgs(count):
    """With more pairs than rows, the rows hold the last pairs in a rotated order."""
    rng = np.random.default_rng(count)
    pairs, n = 4, 6
    A = rng.normal(size=(n, n))
    A = A @ A.T + np.eye(n)
    all_S = rng.normal(size=(count, n))
    S, Y, g = np.full((pairs, n), np.nan), np.full((pairs, n), np.nan), rng.normal(size=n)
    for k, s in enumerate(all_S):
        S[k % pairs], Y[k % pairs] = s, A @ s
    direction = two_loop(S, Y, count, g)
    last = all_S[-pairs:]
    H = dense_inverse(last, last @ A) if count else np.eye(n)
    np.testing.assert_allclose(direction, -H @ g, rtol=1e-9)


@pytest.mark.parametrize("step", [1e-6, 0.01, 1.0, 50.0])
def test_a_step_satisfies_the_strong_wolfe_conditions(step):
    def evaluate(x):  # more than one minimum along a line
        return float((x**4 - 3 * x**2 + x).sum()), 4 * x**3 - 6 * x + 1

    rng = np.random.default_rng(0)
    for _ in range(50):
        x = rng.normal(size=3)
        value, gradient = evaluate(x)
        length, new_value, new_gradient = search_line(evaluate, x, value, gradient, -gradient, step)
        slope = -gradient @ gradient
        assert new_value <= value + SUFFICIENT * length * slope
        assert abs(new_gradient @ gradient) <= CURVATURE * abs(slope)
        expected = evaluate(x - length * gradient)
        assert new_value == expected[0]
        np.testing.assert_array_equal(new_gradient, expected[1])


def test_an_infinite_objective_shortens_the_step():
    def evaluate(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return (float(x[0] - np.log(x[0])) if x[0] > 0 else np.inf), 1 - 1 / x

    x = np.array([10.0])
    step, value, _ = search_line(evaluate, x, *evaluate(x), np.array([-100.0]), 1.0)
    assert x[0] - 100 * step > 0
    assert value < 10 - np.log(10)


def test_a_direction_that_does_not_descend_has_no_step():
    x = np.array([1.0, 1.0])
    value, gradient = 1.0, np.array([1.0, 0.0])
    assert search_line(rosenbrock, x, value, gradient, gradient, 1.0) is None


def test_rosenbrock_is_minimized():
    descent = Descent.start(rosenbrock, np.full(10, -1.2), 10)
    for _ in range(300):
        if np.abs(descent.gradient).max() < 1e-9 or not descent.iterate(rosenbrock):
            break
    np.testing.assert_allclose(descent.x, 1, atol=1e-8)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("kind", ["linear", "quadratic"])
@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_convex_fits_reach_the_loss_of_scipy(load, kind, alpha):
    samples, stack = samples_of(load), stack_of(samples_of(load), [kind])
    options = Options(solver="lbfgs", l2=alpha, by_weight=True, tol=1e-7, epochs=5000)
    objective = Objective(stack, samples, options)
    expected = optimize.minimize(
        objective,
        _to_vector(stack.layers) * objective.scales,
        jac=True,
        method="L-BFGS-B",
        options={"gtol": 1e-7, "ftol": 0.0, "maxiter": 5000, "maxfun": 10**6},
    )
    stack, state = stack_of(samples, [kind]), TrainingState()
    train(stack, samples, options, state)
    assert state.history.loss[-1] == pytest.approx(expected.fun, abs=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kinds", [["quadratic"], ["linear", "quadratic"]])
def test_a_fit_stopped_at_any_iteration_and_continued_from_a_file_is_bit_identical(
    tmp_path, kinds, dtype
):
    samples = samples_of(load_iris)
    samples = Samples(samples.X.astype(dtype), samples.Y.astype(dtype))
    rng = np.random.default_rng(0)
    options = Options(solver="lbfgs", l2=0.01, by_weight=True, epochs=60, tol=1e-9)
    whole, state = stack_of(samples, kinds, dtype), TrainingState()
    train(whole, samples, options, state)
    total = state.call.epochs
    for stop in rng.integers(1, total, 5):
        parts, before = stack_of(samples, kinds, dtype), TrainingState()
        train(parts, samples, Options(**{**vars(options), "epochs": int(stop)}), before)
        arrays, numbers = before.to_arrays()
        np.savez(tmp_path / "state.npz", **arrays)
        np.savez(tmp_path / "weights.npz", *[a for l in parts.layers for a in l.arrays().values()])
        with np.load(tmp_path / "state.npz") as stored:
            after = TrainingState.from_arrays(dict(stored), numbers)
        fresh = stack_of(samples, kinds, dtype)
        with np.load(tmp_path / "weights.npz") as stored:
            for array, value in zip(
                [a for l in fresh.layers for a in l.arrays().values()],
                stored.values(),
                strict=True,
            ):
                array[...] = value
        rest = Options(**{**vars(options), "epochs": total - int(stop), "resume": True})
        train(fresh, samples, rest, after)
        assert after.history.loss == state.history.loss
        for a, b in zip(fresh.layers, whole.layers, strict=True):
            for name, array in a.arrays().items():
                assert array.tobytes() == b.arrays()[name].tobytes(), name


def test_without_resume_the_memory_is_forgotten():
    rng = np.random.default_rng(0)
    net = make_network(["quadratic"], "tanh", "logistic", widths=(2,))
    other = net.copy()
    samples = Samples(rng.normal(size=(30, 3)), targets("binary_cross_entropy", 30, 2, rng))
    options, state = Options(solver="lbfgs", l2=0.1, epochs=5), TrainingState()
    for _ in range(2):
        train(Stack(net.layers, net.activations), samples, options, state)
        train(Stack(other.layers, other.activations), samples, options, TrainingState())
    assert max_difference(net, other) == 0
