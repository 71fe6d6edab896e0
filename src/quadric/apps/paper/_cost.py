"""The cost of a training step: multiplications, counted, and time, measured.

`cost` is that of any network in the compiled loop, for `quadric complexity`. `FORMS` are ways to
compute one step of the paper's MNIST networks in NumPy, because the paper builds on "standard
linear algebra libraries". Algorithm 1 computes V = A Q once, in the forward pass, and uses it again
in the backward pass. It does not state how to multiply by A, which consists of zeros except for a
block for each neuron. The forms differ in this product, in what they cache, and in the Kronecker
product of the update.
"""

import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from quadric import Network
from quadric.apps.paper._experiment import NAMES
from quadric.checks import Array
from quadric.reference import COUNTS, PARAMETERS, QNN_FORWARD_COUNTS, A, sigma, step_count
from quadric.utils import one_blas_thread

LARGEST = 2_000_000  # parameters; a larger network is measured at a smaller size
MULTIPLICATIONS = 2e7  # per measurement, which takes about 10 ms
REPEATS = 7  # measurements, of which the best one counts


@dataclass(frozen=True)
class LayerCost:
    """The cost of one layer; multiplications and seconds are for a training step of one sample."""

    kind: str
    inputs: int
    neurons: int
    parameters: int
    forward: int
    multiplications: int
    seconds: float


def cost(sizes: Sequence[int], kinds: Sequence[str], *, nonzero: float = 1.0) -> list[LayerCost]:
    """Return the cost of each layer of a network.

    The first layer has no backward pass, because no layer below it needs delta. The time of the
    network is measured, and divided among the layers in proportion to their multiplications.

    Parameters
    ----------
    sizes : sequence of int
        The number of inputs, and the number of neurons in each layer.
    kinds : sequence of str
        The kind of each layer.
    nonzero : float
        The share of non-zero inputs in the measurement. The compiled loop skips zeros.
    """
    counts = _multiplications(sizes, kinds)
    rate = seconds_per_step(sizes, kinds, nonzero=nonzero) / sum(counts)
    return [
        LayerCost(
            kind,
            inputs=n,
            neurons=m,
            parameters=PARAMETERS[NAMES[kind]](m, n),
            forward=COUNTS[NAMES[kind], "forward"](m, n),
            multiplications=count,
            seconds=count * rate,
        )
        for (n, m), kind, count in zip(pairwise(sizes), kinds, counts, strict=True)
    ]


def seconds_per_step(sizes: Sequence[int], kinds: Sequence[str], *, nonzero: float = 1.0) -> float:
    """Measure one SGD step of a network in the compiled loop, in float32: the best of several.

    A network with more than two million parameters is measured with fewer inputs and neurons, and
    the result is scaled by the number of multiplications.
    """
    small = list(sizes)
    while _parameters(small, kinds) > LARGEST and max(small) > 1:
        small = [max(1, size // 2) for size in small]
    count = sum(_multiplications(small, kinds))
    samples = int(np.clip(MULTIPLICATIONS / count, 5, 20_000))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples, small[0])).astype(np.float32)
    X *= rng.random(X.shape) < nonzero
    Y = rng.integers(0, 2, (samples, small[-1])).astype(np.float32)
    layers = [(kind, m, "logistic") for kind, m in zip(kinds, small[1:], strict=True)]
    net = Network.create(small[0], layers, init="normal", scale=1e-3, rng=0, dtype="float32")
    seconds = net.fit(X, Y, learning_rate=1e-6, epochs=REPEATS, rng=0).seconds
    return float(min(seconds)) / samples * (sum(_multiplications(sizes, kinds)) / count)


def _multiplications(sizes: Sequence[int], kinds: Sequence[str]) -> list[int]:
    return [
        step_count(NAMES[kind], m, n, first=l == 0)
        for l, (kind, (n, m)) in enumerate(zip(kinds, pairwise(sizes), strict=True))
    ]


def _parameters(sizes: Sequence[int], kinds: Sequence[str]) -> int:
    return sum(
        PARAMETERS[NAMES[kind]](m, n) for kind, (n, m) in zip(kinds, pairwise(sizes), strict=True)
    )


Layer = dict[str, Array]
INPUTS, HIDDEN, OUTPUTS, RATE = 784, 30, 10, 0.01


@dataclass(frozen=True)
class Form:
    """How the output layer of a network computes its step.

    Attributes
    ----------
    name : str
    model : {'ann', 'qnn', 'rpqnn'}
    forward : callable(layer, a)
        Returns z and the values that the backward pass uses again.
    backward : callable(layer, a, cached, delta)
        Returns dL/da and the values that the update uses again.
    update : callable(layer, a, reused, scaled)
        Changes the parameters other than W and b in place; `scaled` is eta delta.
    count : callable(m, n)
        The multiplications of a step of this layer.
    """

    name: str
    model: str
    forward: Callable[[Layer, Array], tuple[Array, Any]]
    backward: Callable[[Layer, Array, Any, Array], tuple[Array, Any]]
    update: Callable[[Layer, Array, Any, Array], None]
    count: Callable[[int, int], int]


def block_product(layer: Layer, a: Array) -> Array:
    """V = A Q as an ordinary matrix product, which also multiplies the zeros of A."""
    return np.asarray(A(a, len(layer["b"])) @ layer["Q"].reshape(-1, len(a)))


def product_per_neuron(layer: Layer, a: Array) -> Array:
    """V_k = a'Q_k for each neuron, without the zeros of A."""
    return np.asarray(layer["Q"] @ a)  # Q is symmetric


def _forward_qnn(
    product: Callable[[Layer, Array], Array], layer: Layer, a: Array
) -> tuple[Array, Any]:
    """z by Algorithm 1, and V."""
    V = product(layer, a)
    return layer["b"] + (layer["W"] + V) @ a, V


def _forward_triangle(layer: Layer, a: Array) -> tuple[Array, Any]:
    """z from the products a_i a_j with i <= j, each computed once for all neurons."""
    rows, columns = layer["triangle"]
    return layer["b"] + layer["W"] @ a + layer["packed"] @ (a[rows] * a[columns]), None


def _backward_qnn(layer: Layer, a: Array, cached: Any, delta: Array) -> tuple[Array, Any]:
    """(W + 2V)' delta, computing V if it is not cached."""
    V = product_per_neuron(layer, a) if cached is None else cached
    return (layer["W"] + 2 * V).T @ delta, None


def _M(a: Array) -> Array:
    products = np.outer(a, a)
    return 2 * products - np.diag(products.diagonal())


def _update_qnn(layer: Layer, a: Array, reused: Any, scaled: Array) -> None:
    layer["Q"] -= scaled[:, None, None] * _M(a)


def _update_kronecker(layer: Layer, a: Array, reused: Any, scaled: Array) -> None:
    layer["Q"] -= np.kron(scaled[:, None], _M(a)).reshape(layer["Q"].shape)


def _factors(layer: Layer, a: Array) -> tuple[Array, Array]:
    return layer["W"] @ a + layer["b"], layer["U"] @ a + layer["c"]


def _forward_rpqnn(layer: Layer, a: Array) -> tuple[Array, Any]:
    v1, v2 = _factors(layer, a)
    return v1 * v2, (v1, v2)


def _backward_rpqnn(layer: Layer, a: Array, cached: Any, delta: Array) -> tuple[Array, Any]:
    v1, v2 = cached
    return layer["U"].T @ (delta * v1) + layer["W"].T @ (delta * v2), cached


def _update_rpqnn(layer: Layer, a: Array, reused: Any, scaled: Array) -> None:
    v1, _ = reused
    layer["c"] -= scaled * v1
    layer["U"] -= np.outer(scaled * v1, a)


# The count of a step of Algorithm 1 in a layer that passes delta down.
_qnn = partial(step_count, "qnn")
FORMS = (
    Form(
        "ANN",
        "ann",
        lambda layer, a: (layer["W"] @ a + layer["b"], None),
        lambda layer, a, cached, delta: (layer["W"].T @ delta, None),
        lambda layer, a, reused, scaled: None,
        partial(step_count, "ann"),
    ),
    Form(
        "QNN, V cached",
        "qnn",
        partial(_forward_qnn, product_per_neuron),
        _backward_qnn,
        _update_qnn,
        _qnn,
    ),
    Form(
        "QNN, V computed again in the backward pass",
        "qnn",
        partial(_forward_qnn, product_per_neuron),
        lambda layer, a, cached, delta: _backward_qnn(layer, a, None, delta),
        _update_qnn,
        lambda m, n: _qnn(m, n) + m * n * n,
    ),
    Form(
        "QNN, z from the triangle, V in the backward pass",
        "qnn",
        _forward_triangle,
        _backward_qnn,
        _update_qnn,
        lambda m, n: _qnn(m, n) + (m + 1) * n * (n + 1) // 2,
    ),
    Form(
        "QNN, block product A Q",
        "qnn",
        partial(_forward_qnn, block_product),
        _backward_qnn,
        _update_qnn,
        lambda m, n: _qnn(m, n) + QNN_FORWARD_COUNTS["dense blocks"](m, n) - m * n * n,
    ),
    Form(
        "QNN, block product and full Kronecker product",
        "qnn",
        partial(_forward_qnn, block_product),
        _backward_qnn,
        _update_kronecker,
        lambda m, n: (
            _qnn(m, n) + QNN_FORWARD_COUNTS["dense blocks"](m, n) - m * n * n + m * n * (n - 1) // 2
        ),
    ),
    Form(
        "RPQNN, v1 and v2 cached",
        "rpqnn",
        _forward_rpqnn,
        _backward_rpqnn,
        _update_rpqnn,
        partial(step_count, "rpqnn"),
    ),
    Form(
        "RPQNN, v1 and v2 computed again",
        "rpqnn",
        _forward_rpqnn,
        lambda layer, a, cached, delta: _backward_rpqnn(layer, a, _factors(layer, a), delta),
        _update_rpqnn,
        lambda m, n: step_count("rpqnn", m, n) + 2 * m * n,
    ),
)


def make_layer(model: str, m: int, n: int, rng: np.random.Generator) -> Layer:
    """Return the parameters of a layer; 'packed' holds the coefficients of x_i x_j, i <= j.

    The updates change Q but not 'packed', so the form with the triangle is exact for one step only.
    """
    layer = {"W": rng.normal(0, 0.1, (m, n)), "b": rng.normal(0, 0.1, m)}
    if model == "qnn":
        Q = rng.normal(0, 0.1, (m, n, n))
        layer["Q"] = (Q + Q.transpose(0, 2, 1)) / 2
        rows, columns = np.triu_indices(n)
        layer["triangle"] = np.stack([rows, columns])
        layer["packed"] = np.where(rows == columns, 1, 2) * layer["Q"][:, rows, columns]
    elif model == "rpqnn":
        layer |= {"U": rng.normal(0, 0.1, (m, n)), "c": rng.normal(0, 0.1, m)}
    return layer


def train_step(form: Form, hidden: Layer, output: Layer, x: Array, y: Array) -> Array:
    """Take one SGD step of a network with a linear hidden layer; return delta of that layer."""
    a = sigma(hidden["W"] @ x + hidden["b"])
    z, cached = form.forward(output, a)
    delta = sigma(z) - y
    back, reused = form.backward(output, a, cached, delta)
    below = a * (1 - a) * back
    scaled = RATE * delta
    form.update(output, a, reused, scaled)
    by_w = scaled if form.model != "rpqnn" else scaled * reused[1]
    for layer, inputs, change in ((output, a, by_w), (hidden, x, RATE * below)):
        layer["b"] -= change
        layer["W"] -= np.outer(change, inputs)
    return below


def network_count(form: Form) -> int:
    """Return the multiplications of a step of the whole network: layer 1 has no backward pass."""
    return step_count("ann", HIDDEN, INPUTS, first=True) + form.count(OUTPUTS, HIDDEN)


def form_rows(steps: int = 50, rounds: int = 20) -> list[tuple[Any, ...]]:
    """Return a row per form: multiplications and microseconds of a step, relative to the ANN.

    The time is the best of several rounds, in which the forms take turns.
    """
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=INPUTS), np.eye(OUTPUTS)[3]
    cases = [
        (form, make_layer("ann", HIDDEN, INPUTS, rng), make_layer(form.model, OUTPUTS, HIDDEN, rng))
        for form in FORMS
    ]
    seconds = dict.fromkeys((form.name for form in FORMS), np.inf)
    with one_blas_thread():
        for form, hidden, output in cases * rounds:
            step = partial(train_step, form, hidden, output, x, y)
            taken = timeit.timeit(step, number=steps) / steps
            seconds[form.name] = min(seconds[form.name], taken)
    ann, ann_count = seconds["ANN"], network_count(FORMS[0])
    return [
        (
            form.name,
            form.count(OUTPUTS, HIDDEN),
            network_count(form),
            network_count(form) / ann_count,
            1e6 * seconds[form.name],
            seconds[form.name] / ann,
        )
        for form in FORMS
    ]
