"""Time of each pass of a training run with denormal derivatives: `python -m benchmarks.denormals`.

Standardized MNIST, `Quadratic(784, 10)`, batches of 256, AdamW with learning rate 3e-4, two epochs.
The logits saturate soon, and some derivatives dz become denormal. Each forward + backward pass,
with the gradient of x, is timed for the torch layer, and for the NumPy layer with the same
parameters, x and dz. A training step of `Network.fit` with Adam is timed in a run of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import torch
from torch.nn.functional import cross_entropy

import quadric
from quadric import Network
from quadric.datasets import mnist
from quadric.torch import Quadratic
from quadric.training._steppers import MiniBatch

BATCH, EPOCHS, RATE = 256, 2, 3e-4
Times = dict[str, list[tuple[float, float]]]  # wall time and CPU time by contender


def standardized() -> tuple[np.ndarray, np.ndarray]:
    """Return the training images, each pixel with mean 0 and variance 1, and their labels."""
    data = mnist()
    X = data.X_train.astype(np.float32)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1), data.y_train


@contextmanager
def timed(times: Times, name: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    times.setdefault(name, []).append((time.perf_counter() - wall, time.process_time() - cpu))


def denormal_share(dz: np.ndarray) -> float:
    return float(((dz != 0) & (np.abs(dz) < np.finfo(dz.dtype).tiny)).mean())


def train_layers(X: np.ndarray, y: np.ndarray) -> tuple[Times, list[float]]:
    """Train the torch layer; return the times of its passes, and the share of denormal dz."""
    torch.manual_seed(0)
    times: Times = {}
    shares: list[float] = []
    layer = Quadratic(X.shape[1], 10)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=RATE)
    arrays = {name: p.detach().numpy() for name, p in layer.named_parameters()}
    same = quadric.Quadratic.of(**arrays)  # in the same memory
    rng = np.random.default_rng(0)
    for _ in range(EPOCHS):
        order = rng.permutation(len(X))
        for rows in np.split(order, range(BATCH, len(X), BATCH)):
            x, targets = torch.from_numpy(X[rows]).requires_grad_(), torch.from_numpy(y[rows])
            optimizer.zero_grad()
            with timed(times, "torch layer"):
                z = layer(x)
                z.retain_grad()
                cross_entropy(z, targets).backward()
            assert z.grad is not None
            dz = z.grad.numpy()
            with timed(times, "NumPy layer"):
                _, cache = same.forward(X[rows])
                same.backward(dz, cache)
            shares.append(denormal_share(dz))
            optimizer.step()
    return times, shares


def train_network(X: np.ndarray, y: np.ndarray) -> Times:
    """Return the times of the steps of `Network.fit` with Adam: both passes, and the update."""
    times: Times = {}
    step = MiniBatch._step

    def timed_step(self: MiniBatch, rows: np.ndarray, rate: float) -> float:
        with timed(times, "Network.fit step"):
            return step(self, rows, rate)

    network = Network.create(X.shape[1], [("quadratic", 10, "softmax")], rng=0, dtype="float32")
    options = {"solver": "adam", "learning_rate": RATE, "batch_size": BATCH, "epochs": EPOCHS}
    with patch.object(MiniBatch, "_step", timed_step):
        network.fit(X, np.eye(10, dtype=np.float32)[y], **options)
    return times


def report(times: Times) -> None:
    for name, found in times.items():
        whole = np.array(found[2:-1])  # without loading code and the short batch
        for kind, values in zip(("wall", "CPU"), whole.T * 1e3, strict=True):
            median, fifth = np.median(values), len(values) // 5
            ratios = [values.max(), np.quantile(values, 0.99), np.median(values[-fifth:])] / median
            first = np.median(values[:fifth])
            print(
                f"{name:<17}{kind:<5}{median:9.1f} ms"
                + "".join(f"{ratio:10.2f}" for ratio in ratios)
                + f"{np.median(values[-fifth:]) / first:12.2f}",
                flush=True,
            )


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    X, y = standardized()
    times, shares = train_layers(X, y)
    print(f"{len(shares)} passes, {torch.get_num_threads()} thread(s) for torch")
    print(f"denormal dz: mean {np.mean(shares):.1%}, largest {max(shares):.1%}")
    print("                 time     median   max/med   99%/med  last/med   last/first")
    report(times)
    report(train_network(X, y))


if __name__ == "__main__":
    main()
