"""The equations of the paper, written out next to the reference."""

import numpy as np
import pytest

from quadric.reference import COUNTS, A, M, gradients_qnn, gradients_rpqnn, sigma, update_qnn
from quadric.reference._algorithms import forward_qnn
from quadric.reference._counts import Counter
from quadric.reference._pieces import delta_L, loss_value
from tests.support.networks import difference

BCE = "binary_cross_entropy"
m, n = 3, 4


@pytest.fixture
def layer():
    """Parameters of a quadratic layer of 3 neurons with 4 inputs, the inputs a, and delta."""
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(m, n, n))
    return {
        "W": rng.normal(size=(m, n)),
        "b": rng.normal(size=m),
        "Q": (Q + Q.transpose(0, 2, 1)) / 2,
        "a": rng.normal(size=n),
        "delta": rng.normal(size=m),
    }


# ---- section II --------------------------------------------------------------------------------


def test_derivative_of_the_sigmoid():
    z = np.linspace(-5, 5, 21)
    slopes = np.diag(difference_of_vector(sigma, z))
    np.testing.assert_allclose(slopes, sigma(z) * (1 - sigma(z)), atol=1e-9)


def difference_of_vector(function, x, step=1e-6):
    """Return the matrix of central differences of a vector function."""
    columns = []
    for k in range(len(x)):
        shift = step * np.eye(len(x))[k]
        columns.append((function(x + shift) - function(x - shift)) / (2 * step))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("y", [0.0, 1.0])
def test_derivative_of_the_loss_by_z(y):
    """The product of dl/dy_hat and dy_hat/dz is y_hat - y."""
    z = np.array([0.7])
    y_hat = sigma(z)[0]
    by_output = (y_hat - y) / (y_hat * (1 - y_hat))
    assert by_output * y_hat * (1 - y_hat) == pytest.approx(y_hat - y)
    by_z = difference(lambda: loss_value(BCE, sigma(z), np.array([y])), z)
    np.testing.assert_allclose(by_z, [y_hat - y], atol=1e-9)


def test_labels_of_xor_do_not_fit_the_loss():
    """With the label -1, the loss falls without bound as the output approaches 0."""
    outputs = np.array([1e-3, 1e-6, 1e-12])
    losses = [loss_value(BCE, np.array([output]), np.array([-1.0])) for output in outputs]
    np.testing.assert_allclose(losses, np.log(outputs), atol=0.003)
    assert losses[2] < losses[1] < losses[0] < -6


# ---- section III -------------------------------------------------------------------------------


def test_block_form_of_the_forward_pass(layer):
    """z = b + (W + A Q) a with the stacked Q, against the sums over components."""
    W, b, Q, a = (layer[name] for name in ("W", "b", "Q", "a"))
    by_component = [
        b[k]
        + sum(W[k, i] * a[i] for i in range(n))
        + sum(Q[k, i, j] * a[i] * a[j] for i in range(n) for j in range(n))
        for k in range(m)
    ]
    block = b + (W + A(a, m) @ Q.reshape(m * n, n)) @ a
    np.testing.assert_allclose(block, by_component, atol=1e-13)
    np.testing.assert_allclose(A(a, m) @ Q.reshape(m * n, n), [a @ Q_k for Q_k in Q], atol=1e-13)
    cache = forward_qnn([{name: layer[name] for name in ("W", "b", "Q")}], ["identity"], a)
    np.testing.assert_allclose(cache.z[0], by_component, atol=1e-13)


def test_M_is_shared_by_the_neurons_and_has_a_row_per_input(layer):
    """dz_k/dQ_k is the same matrix for all neurons, of the size of the inputs."""
    Q, a = layer["Q"], layer["a"]
    derivatives = [difference(lambda k=k: a @ Q[k] @ a, Q[k], symmetric=True) for k in range(m)]
    for derivative in derivatives:
        assert derivative.shape == M(a).shape == (n, n) != (m, m)
        np.testing.assert_allclose(derivative, M(a), atol=1e-8)


def test_kronecker_form_of_the_gradient(layer):
    """The stacked gradients delta_k M(a) are the Kronecker product, and the outer product is dW."""
    delta, a = layer["delta"], layer["a"]
    stacked = np.concatenate([delta_k * M(a) for delta_k in delta])
    np.testing.assert_array_equal(np.kron(delta[:, None], M(a)), stacked)
    before = {name: layer[name].copy() for name in ("W", "b", "Q")}
    after = dict(before)
    update_qnn(after, delta, a, 1.0)
    np.testing.assert_allclose((before["Q"] - after["Q"]).reshape(m * n, n), stacked, atol=1e-13)
    np.testing.assert_allclose(before["W"] - after["W"], np.outer(delta, a), atol=1e-13)


def test_transposed_block_product(layer):
    """(A Q)' has the columns Q_k a, which gives delta of the layer below."""
    W, Q, a, delta = (layer[name] for name in ("W", "Q", "a", "delta"))
    V = A(a, m) @ Q.reshape(m * n, n)
    np.testing.assert_allclose(V.T, np.stack([Q_k @ a for Q_k in Q], axis=1), atol=1e-13)
    by_sum = W.T @ delta + 2 * sum(delta[k] * Q[k] @ a for k in range(m))
    np.testing.assert_allclose((W + 2 * V).T @ delta, by_sum, atol=1e-13)
    wanted = difference(lambda: delta @ (W @ a + np.einsum("i,kij,j->k", a, Q, a)), a)
    np.testing.assert_allclose(by_sum, wanted, atol=1e-8)


def test_backward_matrix_is_the_transpose_up_to_a_factor(layer):
    """The forward pass multiplies by W + V, the backward pass by (W + 2V)'."""
    W, Q, a, delta = (layer[name] for name in ("W", "Q", "a", "delta"))
    V = A(a, m) @ Q.reshape(m * n, n)
    wanted = difference(lambda: delta @ (W @ a + np.einsum("i,kij,j->k", a, Q, a)), a)
    np.testing.assert_allclose((W.T + 2 * V.T) @ delta, wanted, atol=1e-8)
    assert np.abs((W + V).T @ delta - wanted).max() > 0.1


@pytest.mark.parametrize(("neurons", "inputs"), [(1, 2), (10, 30), (50, 50)])
def test_V_is_the_largest_part_of_the_forward_pass(neurons, inputs):
    total = COUNTS["qnn", "forward"](neurons, inputs)
    V = neurons * inputs**2
    assert total == V + neurons * inputs
    assert total < 2 * V
    assert COUNTS["ann", "forward"](30, 784) == 23_520 > 9000 == 10 * 30**2


def test_delta_of_the_last_layer():
    """The printed reason begins with 'a = y_hat =', but its expression is delta."""
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=m), np.array([0.0, 1.0, 1.0])
    y_hat = sigma(z)
    wanted = difference(lambda: loss_value(BCE, sigma(z), y), z)
    np.testing.assert_allclose(delta_L(BCE, "logistic", z, y_hat, y), wanted, atol=1e-8)
    expression = -(y / y_hat - (1 - y) / (1 - y_hat)) * y_hat * (1 - y_hat)
    np.testing.assert_allclose(expression, y_hat - y, atol=1e-13)
    assert np.abs(expression - y_hat).max() > 0.1


# ---- section IV --------------------------------------------------------------------------------


def test_gradients_of_a_reduced_layer():
    """The derived equations for W, U, b, c and the error of the layer below."""
    rng = np.random.default_rng(2)
    first = {"W": rng.normal(size=(n, 2)), "b": rng.normal(size=n)}
    shapes = {"W": (m, n), "b": m, "U": (m, n), "c": m}
    layer = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    x, y = rng.normal(size=2), np.array([0.0, 1.0, 1.0])
    layers, activations = [first, layer], ["tanh", "logistic"]

    def loss():
        return gradients_rpqnn(layers, activations, x, y)[0]

    z = first["W"] @ x + first["b"]
    a = np.tanh(z)
    v1, v2 = layer["W"] @ a + layer["b"], layer["U"] @ a + layer["c"]
    delta = sigma(v1 * v2) - y
    wanted = {name: difference(loss, layer[name]) for name in shapes}
    np.testing.assert_allclose(np.outer(delta * v2, a), wanted["W"], atol=1e-8)
    np.testing.assert_allclose(np.outer(delta * v1, a), wanted["U"], atol=1e-8)
    np.testing.assert_allclose(delta * v2, wanted["b"], atol=1e-8)
    np.testing.assert_allclose(delta * v1, wanted["c"], atol=1e-8)
    below = (1 - a**2) * (layer["U"].T @ (delta * v1) + layer["W"].T @ (delta * v2))
    np.testing.assert_allclose(below, difference(loss, first["b"]), atol=1e-8)
    W, U, b, c = (layer[name] for name in ("W", "U", "b", "c"))
    four = U.T @ (delta * b) + W.T @ (delta * c)
    four += W.T @ (delta * (U @ a)) + U.T @ (delta * (W @ a))  # the first vectorized form
    np.testing.assert_allclose((1 - a**2) * four, below, atol=1e-13)


# ---- section V ---------------------------------------------------------------------------------


def test_Q_is_dense_unless_stored_as_a_triangle(layer):
    """A step from Q = 0 changes all entries; the storage of section V-B keeps q_ji = 0."""
    first = {"W": np.eye(n), "b": np.zeros(n)}
    last = {"W": layer["W"], "b": layer["b"], "Q": np.zeros((m, n, n))}
    _, gradients = gradients_qnn(
        [first, last], ["tanh", "logistic"], layer["a"], np.array([0.0, 1.0, 1.0])
    )
    assert np.count_nonzero(gradients[1]["Q"]) == m * n * n
    stored = np.triu(2 * layer["Q"][0]) - np.diag(np.diag(layer["Q"][0]))
    assert np.count_nonzero(stored) == n * n - n * (n - 1) // 2
    a = layer["a"]
    assert a @ stored @ a == pytest.approx(a @ layer["Q"][0] @ a)


def test_gaussian_elimination_is_cubic():
    def counted(size):
        """Eliminate all entries below the diagonal, and check the result by the determinant."""
        counter = Counter()
        start = np.random.default_rng(3).normal(size=(size, size)) + size * np.eye(size)
        matrix = counter.wrap(start)
        for k in range(size):
            for i in range(k + 1, size):
                factor = float(matrix[i, k]) / float(matrix[k, k])
                matrix[i, k + 1 :] = matrix[i, k + 1 :] - factor * matrix[k, k + 1 :]
        diagonal = np.diag(matrix).astype(float)
        assert np.log(diagonal).sum() == pytest.approx(np.linalg.slogdet(start)[1])
        return counter.multiplications

    assert counted(12) == sum(k * k for k in range(12)) == 12 * 11 * 23 // 6
    assert counted(32) / counted(16) == pytest.approx(8, rel=0.1)
