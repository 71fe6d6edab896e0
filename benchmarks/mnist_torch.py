"""Training on standardized MNIST, two epochs in batches of 256: `python -m benchmarks.mnist_torch`.

`Quadratic(784, 10)` is compared with the same function written by hand (`quadratic_rivals`), both
with AdamW and a rate of 3e-4, with one thread. Both start with the same parameters and take turns,
step by step. Then follow rates of 1e-3 for all parameters and with `parameter_groups`, low-rank
layers, and a small CNN whose first convolution is linear or quadratic. Each pixel is standardized
by itself, or all with the same mean and deviation.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.denormals import BATCH, EPOCHS, standardized
from benchmarks.quadratic_rivals import ByHand
from quadric.datasets import mnist
from quadric.torch import LowRankQuadratic, Quadratic, QuadraticConv2d, parameter_groups


class Written(nn.Module):
    """The layer as written by hand, with the same values."""

    def __init__(self, layer: Quadratic) -> None:
        super().__init__()
        self.Q = nn.Parameter(layer.Q.detach().permute(1, 2, 0).contiguous())
        self.linear = nn.Linear(layer.in_features, layer.out_features)
        with torch.no_grad():
            self.linear.weight.copy_(layer.W)
            self.linear.bias.copy_(layer.b)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ByHand.apply(x, self.Q) + self.linear(x)


def cnn(first: type[nn.Module]) -> nn.Module:
    """Two convolutions and a linear layer."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        first(1, 8, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(400, 10),
    )


def batches(X: torch.Tensor, y: torch.Tensor, seed: int):
    rng = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        for rows in np.split(rng.permutation(len(X)), range(BATCH, len(X), BATCH)):
            yield X[rows], y[rows]


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x, y) -> float:
    start = time.process_time()
    optimizer.zero_grad()
    cross_entropy(model(x), y).backward()
    optimizer.step()
    return time.process_time() - start


def scores(model: nn.Module, X: torch.Tensor, y: torch.Tensor) -> str:
    with torch.no_grad():
        z = model(X)
    loss, right = cross_entropy(z, y).item(), (z.argmax(1) == y).float().mean().item()
    return f"test loss {loss:.3f}, accuracy {right:.4f}"


def main() -> None:
    torch.set_num_threads(1)
    X, labels = standardized()
    data = mnist()
    raw = data.X_train.astype(np.float32)
    mean, spread = raw.mean(axis=0), raw.std(axis=0)
    test = (data.X_test.astype(np.float32) - mean) / np.where(spread > 0, spread, 1)
    X, y = torch.from_numpy(X), torch.from_numpy(labels)
    X_test, y_test = torch.from_numpy(test), torch.from_numpy(data.y_test)

    torch.manual_seed(0)
    layer = Quadratic(784, 10)
    models = {"quadric": layer, "by hand": Written(layer)}
    optimizers = {
        name: torch.optim.AdamW(model.parameters(), lr=3e-4) for name, model in models.items()
    }
    seconds = dict.fromkeys(models, 0.0)
    for x, targets in batches(X, y, 0):
        for name, model in models.items():
            seconds[name] += step(model, optimizers[name], x, targets)
    for name, model in models.items():
        print(f"rate 3e-4, {name:<10}{seconds[name]:7.1f} s, {scores(model, X_test, y_test)}")

    def run(name: str, model: nn.Module, groups) -> None:
        optimizer = torch.optim.AdamW(groups, lr=1e-3)
        total = sum(step(model, optimizer, *batch) for batch in batches(X, y, 0))
        print(f"rate 1e-3, {name:<24}{total:7.1f} s, {scores(model, X_test, y_test)}", flush=True)

    for seed in (0, 1):
        for first in (nn.Conv2d, QuadraticConv2d):
            torch.manual_seed(seed)
            model = cnn(first)
            run(f"{first.__name__}, seed {seed}", model, parameter_groups(model, 1e-3))
        torch.manual_seed(seed)
        model = Quadratic(784, 10)
        run(f"one rate, seed {seed}", model, model.parameters())
        model = Quadratic(784, 10)
        run(f"groups, seed {seed}", model, parameter_groups(model, 1e-3))
        for rank in (8, 32):
            model = LowRankQuadratic(784, 10, rank)
            run(f"rank {rank}, seed {seed}", model, parameter_groups(model, 1e-3))

    print("all pixels with the same mean and deviation")
    X = torch.from_numpy((raw - raw.mean()) / raw.std())
    X_test = torch.from_numpy((data.X_test.astype(np.float32) - raw.mean()) / raw.std())
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = Quadratic(784, 10)
        run(f"one rate, seed {seed}", model, model.parameters())
        model = Quadratic(784, 10)
        run(f"groups, seed {seed}", model, parameter_groups(model, 1e-3))


if __name__ == "__main__":
    main()
