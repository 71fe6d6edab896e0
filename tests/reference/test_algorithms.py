"""The reference: the printed forms fail, the corrected ones pass; counts of multiplications."""

import numpy as np
import pytest

from quadric.reference import (
    COUNTS,
    EXTRA_MEMORY,
    OTHER_UPDATES,
    PARAMETERS,
    PRINTED_COUNTS,
    PRINTED_UPDATES,
    QNN_FORWARD_COUNTS,
    WHY_COUNTS_DIFFER,
    A,
    M,
    _as_printed as as_printed,
    compare_counts,
    count_layer,
    gradients_qnn,
    gradients_rpqnn,
    kronecker,
    printed_count,
    sigma,
    train_logistic,
    train_qnn,
    train_rpqnn,
    update_qnn,
    update_rpqnn,
)
from quadric.reference._algorithms import (
    backward_qnn,
    backward_rpqnn,
    forward_qnn,
    forward_rpqnn,
    gradients_logistic,
)
from quadric.reference._counts import Counter
from tests.support.networks import difference


@pytest.fixture
def neuron():
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(3, 3))
    x, y = rng.normal(size=3), 1.0
    parts = (Q + Q.T) / 2, rng.normal(size=3), np.array([0.3])

    def loss():
        y_hat = sigma(x @ parts[0] @ x + parts[1] @ x + parts[2][0])
        return -(y * np.log(y_hat) + (1 - y) * np.log(1 - y_hat))

    return parts, x, y, loss


@pytest.fixture
def two_layers():
    """Return a layer 3 -> 4, a quadratic and a reduced layer 4 -> 2, an input and its target."""
    rng = np.random.default_rng(1)
    Q = rng.normal(size=(2, 4, 4))
    first = {"W": rng.normal(size=(4, 3)), "b": rng.normal(size=4)}
    quadratic = {
        "W": rng.normal(size=(2, 4)),
        "b": rng.normal(size=2),
        "Q": (Q + Q.transpose(0, 2, 1)) / 2,
    }
    reduced = {
        "W": rng.normal(size=(2, 4)),
        "b": rng.normal(size=2),
        "U": rng.normal(size=(2, 4)),
        "c": rng.normal(size=2),
    }
    return first, quadratic, reduced, rng.normal(size=3), np.array([0.0, 1.0])


# ---- the four gradient errors --------------------------------------------------------------


def test_w_update_of_section_2(neuron):
    (Q, w, b), x, y, loss = neuron
    wanted = difference(loss, w)
    np.testing.assert_allclose(gradients_logistic(Q, w, b[0], x, y)[1], wanted, atol=1e-8)
    printed = as_printed.w_gradient(Q, w, b[0], x, y)
    assert np.abs(printed - wanted).max() > 0.01
    np.testing.assert_allclose(printed, -wanted, atol=1e-8)  # its only error is the sign


def test_bias_updates_of_algorithm_2(two_layers):
    first, _, reduced, x, y = two_layers
    layers = [first, reduced]
    activations = ["logistic", "logistic"]

    def loss():
        return gradients_rpqnn(layers, activations, x, y)[0]

    cache = forward_rpqnn(layers, activations, x)
    delta = backward_rpqnn(layers, activations, cache, y, "binary_cross_entropy")[1]
    wanted = {name: difference(loss, reduced[name]) for name in ("W", "b", "U", "c")}
    for update, right in ((update_rpqnn, True), (PRINTED_UPDATES["b and c swapped"], False)):
        layer = dict(reduced)
        update(layer, delta, cache.v1[1], cache.v2[1], cache.a[1], 1.0)
        errors = {n: np.abs(reduced[n] - layer[n] - wanted[n]).max() for n in wanted}
        assert errors["W"] < 1e-8
        assert errors["U"] < 1e-8
        assert (max(errors["b"], errors["c"]) < 1e-8) == right
        if not right:
            assert errors["b"] > 0.01
            assert errors["c"] > 0.01
            np.testing.assert_allclose(reduced["b"] - layer["b"], wanted["c"], atol=1e-8)


def _delta_below(two_layers):
    first, quadratic, _, x, y = two_layers
    layers, activations = [first, quadratic], ["tanh", "logistic"]
    cache = forward_qnn(layers, activations, x)
    deltas = backward_qnn(layers, activations, cache, y, "binary_cross_entropy")
    # delta^1 = dL/dz^1 = dL/db^1
    wanted = difference(lambda: gradients_qnn(layers, activations, x, y)[0], first["b"])
    return quadratic, deltas, cache, wanted


def test_expansion_of_delta(two_layers):
    layer, deltas, cache, wanted = _delta_below(two_layers)
    np.testing.assert_allclose(deltas[0], wanted, atol=1e-8)
    W, Q, delta, a, slope = layer["W"], layer["Q"], deltas[1], cache.a[1], 1 - cache.a[1] ** 2
    printed = slope * (delta @ W) + slope * (2 * Q @ a).sum(axis=0)  # the second term lacks delta_k
    assert np.abs(printed - wanted).max() > 0.01


def test_upper_triangular_Q_of_section_5(two_layers):
    layer, deltas, cache, wanted = _delta_below(two_layers)
    a = cache.a[1]
    # q_ij with i < j holds the whole coefficient: a'Q + Q a would be right, and 2 a'Q is printed
    upper = np.triu(layer["Q"]) + np.triu(layer["Q"], 1)
    for V, right in ((a @ upper, False), ((a @ upper + upper @ a) / 2, True)):
        found = (1 - a**2) * ((layer["W"] + 2 * V).T @ deltas[1])
        assert (np.abs(found - wanted).max() < 1e-8) == right
    # the pre-activations themselves are the same for the unsymmetric Q
    z = layer["b"] + layer["W"] @ a + np.einsum("i,kij,j->k", a, upper, a)
    np.testing.assert_allclose(z, cache.z[1], atol=1e-13)


def test_derivative_by_a_matrix_of_section_2():
    """The definition [dF/dA_ij] gives xx'; M(x) moves q_ij and q_ji together."""
    rng = np.random.default_rng(8)
    Q, x = rng.normal(size=(3, 3)), rng.normal(size=3)
    Q = (Q + Q.T) / 2
    defined = difference(lambda: x @ Q @ x, Q)
    np.testing.assert_allclose(defined, np.outer(x, x), atol=1e-8)
    np.testing.assert_allclose(difference(lambda: x @ Q @ x, Q, symmetric=True), M(x), atol=1e-8)
    assert np.abs(defined - M(x)).max() > 0.01


def test_storage_of_section_5_halves_the_gradient():
    """With the whole coefficient in q_ij and q_ji = 0, the derivative is x_i x_j, not M(x)."""
    rng = np.random.default_rng(9)
    Q, x = np.triu(rng.normal(size=(3, 3))), rng.normal(size=3)
    stored = np.triu(difference(lambda: x @ Q @ x, Q), 1)
    np.testing.assert_allclose(2 * stored, np.triu(M(x), 1), atol=1e-7)
    assert np.abs(stored).max() > 0.01


# ---- correct gradients, by differences -----------------------------------------------------


def test_logistic_gradients(neuron):
    (Q, w, b), x, y, loss = neuron
    dQ, dw, db = gradients_logistic(Q, w, b[0], x, y)
    np.testing.assert_allclose(dQ, difference(loss, Q, symmetric=True), atol=1e-7)
    np.testing.assert_allclose(dw, difference(loss, w), atol=1e-8)
    np.testing.assert_allclose([db], difference(loss, b), atol=1e-8)


def test_logistic_training_is_algorithm_1_with_one_neuron(neuron):
    (Q, w, b), *_ = neuron
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 2, 20).astype(float)
    order = rng.permutation(20)
    Q1, w1, b1 = train_logistic(X, y, Q, w, b[0], 0.1, epochs=3, order=order)
    layer = {"W": w[None], "b": b, "Q": Q[None]}
    (trained,) = train_qnn(X, y[:, None], [layer], 0.1, epochs=3, order=order)
    np.testing.assert_allclose(trained["Q"][0], Q1, atol=1e-13)
    np.testing.assert_allclose(trained["W"][0], w1, atol=1e-13)
    np.testing.assert_allclose(trained["b"], [b1], atol=1e-13)


def test_training_does_not_change_its_arguments(two_layers):
    first, quadratic, reduced, x, y = two_layers
    before = {name: array.copy() for name, array in quadratic.items()}
    train_qnn(x[None], y[None], [first, quadratic], 0.1)
    train_rpqnn(x[None], y[None], [first, reduced], 0.1)
    for name, array in before.items():
        np.testing.assert_array_equal(quadratic[name], array)


def test_the_papers_matrices():
    a = np.array([2.0, 3.0])
    np.testing.assert_array_equal(A(a, 2), [[2, 3, 0, 0], [0, 0, 2, 3]])
    np.testing.assert_array_equal(M(a), [[4, 12], [12, 9]])
    stacked = kronecker(np.array([1.0, -2.0]), M(a))
    np.testing.assert_array_equal(stacked, [[4, 12], [12, 9], [-8, -24], [-24, -18]])


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (3, 2)])
def test_the_papers_matrices_are_kronecker_products(m, n):
    rng = np.random.default_rng(10)
    a, delta = rng.normal(size=n), rng.normal(size=m)
    np.testing.assert_array_equal(A(a, m), np.kron(np.eye(m), a))
    np.testing.assert_array_equal(kronecker(delta, M(a)), np.kron(delta[:, None], M(a)))


# ---- counts --------------------------------------------------------------------------------

SIZES = [(1, 1), (2, 3), (3, 2), (4, 4), (5, 3)]  # (m, n)


@pytest.mark.parametrize("kind", ["ann", "qnn", "rpqnn"])
@pytest.mark.parametrize(("m", "n"), SIZES)
def test_formulas_equal_counts(kind, m, n):
    counted = count_layer(kind, m, n)
    for step in ("forward", "backward", "update"):
        assert counted[step] == COUNTS[kind, step](m, n), step


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_dense_block_product(m, n):
    counted = count_layer("qnn", m, n)
    products_of_V = counted["forward"] - m * n + counted["forward, by structural zeros"]
    assert products_of_V == QNN_FORWARD_COUNTS["dense blocks"](m, n)


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_triangular_forward(m, n):
    rng = np.random.default_rng(4)
    counter = Counter()
    Q, a = counter.wrap(rng.normal(size=(m, n, n))), counter.wrap(rng.normal(size=n))
    for k in range(m):  # a'Qa with the whole coefficient in the upper triangle
        for i in range(n):
            _ = a[i] * sum(Q[k, i, j] * a[j] for j in range(i, n))
    assert counter.multiplications == QNN_FORWARD_COUNTS["triangle"](m, n)
    assert counter.multiplications == PRINTED_COUNTS["qnn", "extra forward"](m, n)


@pytest.mark.parametrize("n", [1, 3])
def test_logistic_regression_runs_on_counting_numbers(n):
    rng = np.random.default_rng(5)
    counter = Counter()
    X, y = counter.wrap(rng.normal(size=(1, n))), counter.wrap([1.0])
    Q, w, b = counter.wrap(np.eye(n)), counter.wrap(np.zeros(n)), counter.wrap([0.0])[0]
    trained = train_logistic(X, y, Q, w, b, 0.1)
    # z: n^2 + n + n; b: 1; w: 1 + n; Q: 1 + n^2 and M(x): n^2
    assert counter.multiplications == (n * n + 2 * n) + 1 + (1 + n) + (1 + n * n + n * n)
    plain = train_logistic(X.astype(float), y.astype(float), np.eye(n), np.zeros(n), 0.0, 0.1)
    np.testing.assert_allclose(trained[0].astype(float), plain[0], atol=1e-15)


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_ways_to_count_the_linear_update(m, n):
    """The printed mn + m + n is correct: it scales a, where the reference scales delta twice."""
    eta = 0.1

    def counted(update):
        counter = Counter()
        rng = np.random.default_rng(6)
        update(counter.wrap(rng.normal(size=m)), counter.wrap(rng.normal(size=n)))
        return counter.multiplications

    def scaling_a(delta, a):
        return eta * delta, np.outer(delta, eta * a)

    def scaling_delta_once(delta, a):
        scaled = eta * delta
        return scaled, np.outer(scaled, a)

    printed = PRINTED_COUNTS["ann", "update"](m, n)
    assert counted(scaling_a) == m * n + m + n == printed
    assert counted(scaling_delta_once) == m * n + m


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_scaling_delta_once_saves_m_multiplications_of_the_quadratic_update(m, n):
    """Each line of Algorithm 1 scales delta by eta: for b, for W and for Q."""
    counter, rng, eta = Counter(), np.random.default_rng(11), 0.1
    delta, a = counter.wrap(rng.normal(size=m)), counter.wrap(rng.normal(size=n))
    scaled = eta * delta
    _ = np.outer(scaled, a), kronecker(scaled, M(a))
    assert COUNTS["qnn", "update"](m, n) - counter.multiplications == 2 * m
    shared_by_W_and_Q = counter.multiplications + m
    assert COUNTS["qnn", "update"](m, n) - shared_by_W_and_Q == m


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_the_sum_R_BP_is_the_total_of_backward_and_update(m, n):
    """4mn + 6m + n, if delta . v1 and delta . v2 are kept from the backward pass."""
    rng, counter = np.random.default_rng(7), Counter()
    shapes = {"W": (m, n), "b": m, "U": (m, n), "c": m}
    layer = {name: counter.wrap(rng.normal(size=shape)) for name, shape in shapes.items()}
    a, delta, slope = (counter.wrap(rng.normal(size=size)) for size in (n, m, n))
    v1, v2 = (layer[x] @ a + layer[y] for x, y in (("W", "b"), ("U", "c")))
    counter.multiplications = 0
    first, second, eta = delta * v1, delta * v2, 0.1
    _ = slope * (layer["U"].T @ first + layer["W"].T @ second)
    backward = counter.multiplications
    for weights, bias, vector in (("W", "b", second), ("U", "c", first)):
        layer[bias] = layer[bias] - eta * vector
        layer[weights] = layer[weights] - np.outer(eta * vector, a)
    assert backward == COUNTS["rpqnn", "backward"](m, n)
    assert counter.multiplications - backward == 2 * m * n + 4 * m
    printed = PRINTED_COUNTS["rpqnn", "text backward and update"](m, n)
    assert counter.multiplications == printed


def test_layers_of_another_algorithm_are_refused(two_layers):
    first, quadratic, reduced, x, y = two_layers
    with pytest.raises(ValueError, match="layer 1 has U, c"):
        train_qnn(x[None], y[None], [first, reduced], 0.1)
    with pytest.raises(ValueError, match="layer 1 has Q"):
        train_rpqnn(x[None], y[None], [first, quadratic], 0.1)


def test_differences_between_printed_and_counted():
    m, n = 10, 30
    printed, counted = PRINTED_COUNTS, COUNTS

    def extra(kind, step):
        return counted[kind, step](m, n) - counted["ann", step](m, n)

    # equal counts
    assert printed["ann", "forward"](m, n) == counted["ann", "forward"](m, n)
    assert printed["ann", "backward"](m, n) == counted["ann", "backward"](m, n)
    assert printed["qnn", "extra backward"](m, n) == extra("qnn", "backward")
    assert printed["rpqnn", "extra forward"](m, n) == extra("rpqnn", "forward")
    assert printed["rpqnn", "extra backward"](m, n) == extra("rpqnn", "backward")
    assert printed["rpqnn", "text forward"](m, n) == counted["rpqnn", "forward"](m, n)
    # counts that differ
    assert printed["ann", "update"](m, n) - counted["ann", "update"](m, n) == n - m
    assert extra("qnn", "forward") == m * n * n  # V; the printed count does not produce it
    assert extra("qnn", "update") == n * n + m + m * n * (n + 1) // 2
    assert printed["qnn", "extra update"](m, n) - extra("qnn", "update") == m * n - n * n - m
    total = printed["ann", "update"](m, n) + printed["qnn", "extra update"](m, n)
    assert total - counted["qnn", "update"](m, n) == -590
    # relative to the printed ANN update, mn + m + n, the extra cost is mn - n + 7m
    over_printed = counted["rpqnn", "update"](m, n) - printed["ann", "update"](m, n)
    assert over_printed == m * n - n + 7 * m
    assert printed["rpqnn", "extra update"](m, n) - over_printed == 2 * m * n
    both = counted["rpqnn", "backward"](m, n) + counted["rpqnn", "update"](m, n)
    assert both - printed["rpqnn", "text backward and update"](m, n) == 4 * m


def test_printed_counts_of_the_reduced_update_contradict_each_other():
    m, n = 10, 30
    printed = PRINTED_COUNTS
    table = printed["ann", "update"](m, n) + printed["rpqnn", "extra update"](m, n)
    backward = printed["ann", "backward"](m, n) + printed["rpqnn", "extra backward"](m, n)
    text = printed["rpqnn", "text backward and update"](m, n) - backward
    assert table == 4 * m * n + 8 * m
    assert text == 2 * m * n + 4 * m == 2 * m * n + 4 * m


def test_printed_count_of_each_Q_is_that_of_all_neurons():
    m, n = 10, 30
    M_a = n * n  # shared by the neurons
    one_neuron = COUNTS["qnn", "update"](1, n) - COUNTS["ann", "update"](1, n) - M_a
    assert one_neuron == n * (n + 1) // 2 + 1  # and eta delta_k
    assert PRINTED_COUNTS["qnn", "extra update"](m, n) > m * one_neuron


def test_memory_and_parameters():
    m, n = 10, 30
    Q_and_V = m * n * (n + 1) // 2 + m * n
    assert PRINTED_COUNTS["qnn", "extra memory"](m, n) - Q_and_V == m * n
    ann, reduced = PARAMETERS["ann"](m, n), PARAMETERS["rpqnn"](m, n)
    assert reduced - ann == m * (n + 1)
    assert PRINTED_COUNTS["rpqnn", "extra parameters, abstract"](m, n) == m * n
    assert PRINTED_COUNTS["rpqnn", "extra parameters, section IV"](m, n) == 2 * m * n


def test_what_the_sums_from_layer_2_contain_depends_on_the_number_of_the_input():
    """For 784-30-10: every layer if the input is a^1, all but the largest update if it is a^0."""

    def term(m, n):
        return 2 * m * n + m + 2 * n  # as printed in A_BP

    for m, n in ((30, 784), (10, 30)):
        assert term(m, n) == sum(printed_count("ann", s, m, n) for s in ("backward", "update"))
    sizes = {1: 784, 2: 30, 3: 10}  # a^1 <- x, as printed: two sums of weights, l = 2 and 3
    assert sum(term(sizes[l], sizes[l - 1]) for l in (2, 3)) == 48_638 + 670
    sizes = {0: 784, 1: 30, 2: 10}  # the input is a^0, as in A_FP
    assert sum(term(sizes[l], sizes[l - 1]) for l in (2,)) == 670
    assert printed_count("ann", "update", 30, 784) == 24_334


def test_rates_of_mixed_terms_and_squares_with_other_matrices_than_M():
    """How fast the coefficients of a_i a_j (i < j) and a_i^2 change, relative to M(a)."""
    rng = np.random.default_rng(13)
    m, n = 2, 3
    layer = {"W": rng.normal(size=(m, n)), "b": rng.normal(size=m), "Q": np.zeros((m, n, n))}
    delta, a = rng.normal(size=m), rng.normal(size=n)

    def coefficients(update):
        after = dict(layer)
        update(after, delta, a, 0.1)
        whole = after["Q"] + after["Q"].transpose(0, 2, 1)
        rows, columns = np.triu_indices(n, 1)
        return whole[:, rows, columns], whole[:, range(n), range(n)] / 2

    mixed, squares = coefficients(update_qnn)
    for update, rates in (
        (PRINTED_UPDATES["upper triangular Q"], (0.5, 1)),
        (PRINTED_UPDATES["aa'"], (0.5, 1)),
        (OTHER_UPDATES["2aa'"], (1, 2)),
    ):
        found = coefficients(update)
        np.testing.assert_allclose(found[0], rates[0] * mixed, atol=1e-13)
        np.testing.assert_allclose(found[1], rates[1] * squares, atol=1e-13)


def test_the_second_term_of_delta_is_twice_the_printed_sum(two_layers):
    """Before (eq9), the sum of delta_k Q_k a is called the second term of (deltav)."""
    layer, deltas, cache, _ = _delta_below(two_layers)
    slope = 1 - np.tanh(cache.z[0]) ** 2
    second = deltas[0] / slope - layer["W"].T @ deltas[1]
    sum_ = sum(d * (Q @ cache.a[1]) for d, Q in zip(deltas[1], layer["Q"], strict=True))
    np.testing.assert_allclose(second, 2 * sum_, atol=1e-13)


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_extra_memory_is_what_the_algorithms_store(m, n):
    rng = np.random.default_rng(12)
    a, shapes = rng.normal(size=n), {"W": (m, n), "b": m, "U": (m, n), "c": m, "Q": (m, n, n)}
    layer = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    quadratic = forward_qnn([{name: layer[name] for name in "WbQ"}], ["identity"], a)
    triangle = np.triu(np.ones((n, n))).sum()
    assert EXTRA_MEMORY["qnn"](m, n) == m * triangle + quadratic.V[0].size
    reduced = forward_rpqnn([{name: layer[name] for name in "WbUc"}], ["identity"], a)
    stored = (layer["U"], layer["c"], reduced.v1[0], reduced.v2[0])
    assert EXTRA_MEMORY["rpqnn"](m, n) == sum(array.size for array in stored)


def test_every_difference_between_printed_and_counted_is_explained():
    for m, n in SIZES:
        for line in compare_counts(m, n):
            assert line.why or line.printed == line.counted, line
    differ = {line[:2] for m, n in SIZES for line in compare_counts(m, n) if line[2] != line[3]}
    assert differ == set(WHY_COUNTS_DIFFER)
