"""Per-sample SGD for 784-30-10 networks, written as users of other libraries would write it.

Each function takes a network with initial values and the data, and returns a `Training`. All of
those that train the same model give the same parameters; `_sgd` checks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.sgd_step import RATE
from quadric import Network
from quadric.reference import train_qnn, train_rpqnn

Array = np.ndarray
Layers = list[dict[str, Array]]


class Training(NamedTuple):
    """A run that can be continued: each call of `run` trains on all rows, once and in order.

    `layers` returns the current parameters, or is None if the model is another one.
    """

    run: Callable[[], object]
    layers: Callable[[], Layers] | None = None


def quadric(start: Network, X: Array, Y: Array) -> Training:
    """Return the compiled loop through the public method, with its checks of the data."""
    net = start.copy()
    return Training(
        lambda: net.fit(X, Y, learning_rate=RATE, epochs=1, shuffle=False), lambda: full(net)
    )


def quadric_sparse(start: Network, X: Array, Y: Array) -> Training:
    """Return the same, for rows that are compressed already."""
    return quadric(start, sparse.csr_array(X), Y)


def reference(start: Network, X: Array, Y: Array) -> Training:
    """Return the paper's algorithms, line by line."""
    layers = full(start)
    train = train_rpqnn if "U" in layers[-1] else train_qnn

    def run() -> None:
        nonlocal layers
        layers = train(X, Y, layers, np.float32(RATE))

    return Training(run, lambda: layers)


def torch_einsum(start: Network, X: Array, Y: Array) -> Training:
    import torch

    return _torch(start, X, Y, lambda a, Q: torch.einsum("i,kij,j->k", a, Q, a))


def torch_bilinear(start: Network, X: Array, Y: Array) -> Training:
    import torch

    return _torch(start, X, Y, lambda a, Q: torch.nn.functional.bilinear(a, a, Q))


def _torch(start: Network, X: Array, Y: Array, form: Callable[[Any, Any], Any]) -> Training:
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    first, last = ({k: torch.tensor(v) for k, v in layer.items()} for layer in full(start))
    parameters = [p.requires_grad_() for p in (*first.values(), *last.values())]
    if "Q" in last:  # q_ij and q_ji are one parameter
        twice = torch.tensor(_twice(start))
        last["Q"].register_hook(lambda gradient: gradient * twice)
    optimizer = torch.optim.SGD(parameters, lr=RATE)
    rows, targets = torch.tensor(X), torch.tensor(Y)

    def run() -> None:
        for x, y in zip(rows, targets, strict=True):
            a = torch.sigmoid(first["W"] @ x + first["b"])
            z = last["W"] @ a + last["b"]
            if "Q" in last:
                z = z + form(a, last["Q"])
            if "U" in last:
                z = z * (last["U"] @ a + last["c"])
            optimizer.zero_grad()
            binary_cross_entropy_with_logits(z, y, reduction="sum").backward()
            optimizer.step()

    def layers() -> Layers:
        return [{k: p.detach().numpy() for k, p in layer.items()} for layer in (first, last)]

    return Training(run, layers)


def jax_scan(start: Network, X: Array, Y: Array) -> Training:
    import jax
    from jax import lax, nn, numpy as jnp

    twice = jnp.asarray(_twice(start))

    def loss(layers: Any, x: Any, y: Any) -> Any:
        first, last = layers
        a = nn.sigmoid(first["W"] @ x + first["b"])
        z = last["W"] @ a + last["b"]
        if "Q" in last:
            z = z + jnp.einsum("i,kij,j->k", a, last["Q"], a)
        if "U" in last:
            z = z * (last["U"] @ a + last["c"])
        return jnp.sum(nn.softplus(z) - y * z)

    def step(layers: Any, row: Any) -> Any:
        gradients = jax.grad(loss)(layers, *row)
        if "Q" in gradients[1]:
            gradients[1]["Q"] = gradients[1]["Q"] * twice
        return jax.tree.map(lambda p, g: p - RATE * g, layers, gradients), None

    epoch = jax.jit(lambda layers, rows: lax.scan(step, layers, rows)[0])
    trained = jax.tree.map(jnp.asarray, full(start))
    rows = jnp.asarray(X), jnp.asarray(Y)

    def run() -> None:
        nonlocal trained
        trained = jax.block_until_ready(epoch(trained, rows))

    return Training(run, lambda: jax.tree.map(np.asarray, trained))


def sklearn_mlp(start: Network, X: Array, Y: Array) -> Training:
    """Return an MLPClassifier; a matrix of targets gives logistic outputs and binary losses."""
    from sklearn.neural_network import MLPClassifier

    first, last = full(start)
    model = MLPClassifier(
        (len(first["b"]),),
        activation="logistic",
        solver="sgd",
        alpha=0.0,
        batch_size=1,
        learning_rate_init=RATE,
        momentum=0.0,
        nesterovs_momentum=False,
        shuffle=False,
    )
    targets = Y.astype(int)
    model.partial_fit(X[:1], targets[:1], classes=range(Y.shape[1]))  # allocates
    for l, layer in enumerate((first, last)):
        model.coefs_[l][:], model.intercepts_[l][:] = layer["W"].T, layer["b"]

    def layers() -> Layers:
        pairs = zip(model.coefs_, model.intercepts_, strict=True)
        return [{"W": W.T, "b": b} for W, b in pairs]

    return Training(lambda: model.partial_fit(X, targets), layers)


def vowpal_wabbit(start: Network, X: Array, Y: Array) -> Training:
    """Return ten logistic regressions on all products of the inputs."""
    from vowpalwabbit import Workspace

    options = f"--oaa {Y.shape[1]} -q :: --loss_function logistic --sgd -l {RATE} -b 22 --quiet"
    model = Workspace(options)
    examples = []
    for x, y in zip(X, Y, strict=True):
        features = " ".join(f"{i}:{x[i]:g}" for i in np.flatnonzero(x))
        examples.append(model.example(f"{np.argmax(y) + 1} | {features}"))
    return Training(lambda: [model.learn(example) for example in examples])


def river_linear(start: Network, X: Array, Y: Array) -> Training:
    """Return a softmax regression without a hidden layer."""
    from river.linear_model import SoftmaxRegression

    return _river(SoftmaxRegression(), X, Y)


def river_quadratic(start: Network, X: Array, Y: Array) -> Training:
    """Return a softmax regression on all products of the inputs."""
    from river.feature_extraction import PolynomialExtender
    from river.linear_model import SoftmaxRegression

    return _river(PolynomialExtender(degree=2) | SoftmaxRegression(), X, Y)


def _river(model: Any, X: Array, Y: Array) -> Training:
    rows = [{int(i): float(x[i]) for i in np.flatnonzero(x)} for x in X]
    labels = [int(np.argmax(y)) for y in Y]

    def run() -> None:
        for row, label in zip(rows, labels, strict=True):
            model.learn_one(row, label)

    return Training(run)


def full(net: Network) -> Layers:
    """Return copies of a network's arrays, with the full symmetric matrices Q."""
    names = {"linear": "Wb", "quadratic": "WbQ", "reduced": "WbUc"}
    return [
        {name: np.array(getattr(layer, name)) for name in names[layer.kind]} for layer in net.layers
    ]


def _twice(start: Network) -> Array:
    """2 off the diagonal and 1 on it: M(a) = twice * a a'."""
    n = start.layers[-1].W.shape[1]
    return np.full((n, n), 2, np.float32) - np.eye(n, dtype=np.float32)
