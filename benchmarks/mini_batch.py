"""Forward and backward pass of a quadratic layer for a batch, compared with numpy.einsum.

The layer has 64 inputs and 64 neurons, and the batch has 128 samples in float32. All versions
compute z, the gradients of W, b and Q, and the gradient of the inputs, and take an SGD step.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import best_seconds
from quadric import Quadratic

B, N, M, RATE = 128, 64, 64, np.float32(1e-6)


def einsum_step(W, b, Q, X, delta):
    """Take a textbook step: one einsum for z, and one for each gradient that involves Q."""
    z = np.einsum("bi,kij,bj->bk", X, Q, X, optimize=True) + X @ W.T + b
    dQ = np.einsum("bk,bi,bj->kij", delta, X, X, optimize=True)
    dX = delta @ W + 2 * np.einsum("bk,kij,bj->bi", delta, Q, X, optimize=True)
    dQ = dQ + dQ.transpose(0, 2, 1)
    dQ[:, np.arange(N), np.arange(N)] *= np.float32(0.5)
    Q -= RATE * dQ
    W -= RATE * (delta.T @ X)
    b -= RATE * delta.sum(axis=0)
    return z, dX


def three_products_step(W, b, Q, X, delta):
    """Take the same step with each einsum written as a matrix product."""
    QX = np.tensordot(X, Q, axes=(1, 1))  # (B, M, N)
    z = np.einsum("bkj,bj->bk", QX, X) + X @ W.T + b
    dX_product = np.tensordot(X, Q, axes=(1, 2))
    dX = delta @ W + 2 * np.einsum("bk,bki->bi", delta, dX_product)
    weighted = (delta[:, :, None] * X[:, None, :]).reshape(B, M * N)
    dQ = (weighted.T @ X).reshape(M, N, N)
    dQ = dQ + dQ.transpose(0, 2, 1)
    dQ[:, np.arange(N), np.arange(N)] *= np.float32(0.5)
    Q -= RATE * dQ
    W -= RATE * (delta.T @ X)
    b -= RATE * delta.sum(axis=0)
    return z, dX


def quadric_step(layer, X, delta):
    z, cache = layer.forward(X)
    grads, dX = layer.backward(delta, cache)
    for parameter, gradient in zip(layer.arrays().values(), grads.arrays().values(), strict=True):
        parameter -= RATE * gradient
    return z, dX


def main() -> None:
    rng = np.random.default_rng(0)
    X, delta = (rng.normal(size=shape).astype(np.float32) for shape in ((B, N), (B, M)))
    start = Quadratic(*(rng.normal(size=s).astype(np.float32) for s in ((M, N), M, (M, N, N))))
    layer = start.copy()

    baselines = {"einsum": einsum_step, "three products": three_products_step}
    held = {name: start.copy().arrays() for name in baselines}
    for _ in range(3):
        z, dX = quadric_step(layer, X, delta)
        for name, step in baselines.items():
            arrays = held[name]
            z_baseline, dX_baseline = step(arrays["W"], arrays["b"], arrays["Q"], X, delta)
            np.testing.assert_allclose(z, z_baseline, rtol=2e-3, atol=2e-3)
            np.testing.assert_allclose(dX, dX_baseline, rtol=2e-3, atol=2e-3)
    for arrays in held.values():
        for name, array in layer.arrays().items():
            np.testing.assert_allclose(array, arrays[name], rtol=1e-4, atol=1e-5)

    def run(name):
        arrays = held[name]
        return lambda: baselines[name](arrays["W"], arrays["b"], arrays["Q"], X, delta)

    best = best_seconds(
        {name: run(name) for name in baselines}
        | {"quadric": lambda: quadric_step(layer, X, delta)},
        rounds=40,
    )
    print(f"one step of a quadratic layer, B = {B}, {N} inputs, {M} neurons, float32")
    for name, seconds in best.items():
        print(
            f"  {name:<16}{seconds * 1e3:8.2f} ms   quadric / this: {best['quadric'] / seconds:.2f}"
        )
    print("  target: at most 0.75 of the einsum step")


if __name__ == "__main__":
    main()
