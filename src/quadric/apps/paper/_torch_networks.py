"""The torch networks of the studies and how they are trained; the only module that imports torch.

A convolutional network with a linear, quadratic or reduced head, recurrent networks of about equal
size for three tasks on sequences, and a bilinear MLP. The numbers are the same for a seed in any
thread.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from quadric import Linear, Network, Reduced
from quadric.apps.paper.sweep import Measured, StudyTask
from quadric.datasets import ImageData
from quadric.torch import QuadraticRNN, replace_head

_lock = threading.Lock()  # torch's random state is shared by all threads


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread within the context."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def seeded(seed: int, make: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``make(*arguments)``, with torch's seed set; the random state is then restored."""
    with _lock, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(*arguments)


def convolutional(side: int, features: int, head: str) -> nn.Module:
    """Return the network. All heads have the same initial weights and start as a linear head."""
    model: nn.Module = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * (side // 4) ** 2, features),
        nn.ReLU(),
        nn.Linear(features, 10),
    )
    return model if head == "linear" else replace_head(model, head)


@one_torch_thread()
def train_convolutional(task: StudyTask, settings: Mapping[str, Any], data: ImageData) -> Measured:
    """Return the test accuracy after each of `settings["epochs"]`, and the samples visited."""
    side = data.shape[0]
    choice, order = np.random.default_rng(task.seed).spawn(2)
    rows = choice.permutation(len(data.X_train))[: task.size]
    X, X_test = (
        _scaled(pixels, data).view(-1, 1, side, side)
        for pixels in (data.X_train[rows], data.X_test)
    )
    y, y_test = torch.tensor(data.y_train[rows]), torch.tensor(data.y_test)
    accuracies, last = [], settings["epochs"][-1]
    model = seeded(task.seed, convolutional, side, task.hidden, task.kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["rate"])
    for epoch in range(1, last + 1):
        visits = torch.from_numpy(order.permutation(task.size))
        for batch in torch.split(visits, settings["batch"]):
            _step(optimizer, nn.functional.cross_entropy(model(X[batch]), y[batch]))
        if epoch in settings["epochs"]:
            accuracies.append(_accuracy(model, X_test, y_test))
    return tuple(accuracies), task.size * last


def _scaled(pixels: Any, data: ImageData) -> Tensor:
    """Return pixels from 0 to 1."""
    return torch.from_numpy(np.divide(pixels, data.largest, dtype=np.float32))


def _step(optimizer: torch.optim.Optimizer, loss: Tensor, largest: float | None = None) -> None:
    """Change the parameters by the gradient of the loss, whose norm may be at most `largest`."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    if largest is not None:
        nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], largest)
    optimizer.step()


@torch.no_grad()
def _accuracy(model: nn.Module, X: Tensor, y: Tensor) -> float:
    predicted = torch.cat([model(images).argmax(dim=1) for images in torch.split(X, 500)])
    return int((predicted == y).sum()) / len(y)


NEAR = 0.04  # how far a predicted sum may be off
Sequences = tuple[Tensor, Tensor]  # inputs of shape (N, T, n), and N targets
LAYERS: dict[str, Callable[..., nn.Module]] = {
    "quadratic": QuadraticRNN,
    "rnn": nn.RNN,
    "gru": nn.GRU,
}


def adding(count: int, length: int, rng: np.random.Generator) -> Sequences:
    """Return numbers from 0 to 1 with two of them marked; the target is the sum of these two."""
    X = np.zeros((count, length, 2), np.float32)
    X[..., 0] = rng.random((count, length))
    marked = rng.random((count, length)).argsort(axis=1)[:, :2]
    np.put_along_axis(X[..., 1], marked, 1.0, axis=1)
    return torch.from_numpy(X), torch.from_numpy((X[..., 0] * X[..., 1]).sum(axis=1))


def parity(count: int, length: int, rng: np.random.Generator) -> Sequences:
    """Return sequences of -1 and 1; the target is 1 if the product is positive, otherwise 0."""
    X = rng.choice(np.array([-1.0, 1.0], np.float32), (count, length, 1))
    return torch.from_numpy(X), torch.from_numpy((X.prod(axis=(1, 2)) > 0).astype(np.int64))


def sequences(name: str, size: int, length: int, seed: int) -> tuple[Sequences, Sequences]:
    """Return `size` training sequences and the test sequences of a task.

    The rows are those of images of digits, one row of 8 pixels per step.
    """
    if name == "rows":
        X, y = load_digits(return_X_y=True)
        parts = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=seed)
        images = [torch.tensor(part, dtype=torch.float32).view(-1, 8, 8) for part in parts[:2]]
        labels = [torch.tensor(part) for part in parts[2:]]
        return (images[0][:size], labels[0][:size]), (images[1], labels[1])
    rng = np.random.default_rng(seed)
    make = {"adding": adding, "parity": parity}[name]
    return make(size, length, rng), make(2000, length, rng)


class Recurrent(nn.Module):
    """A recurrent layer, and a linear layer that reads its last state."""

    def __init__(self, kind: str, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.layer = LAYERS[kind](inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, X: Tensor) -> Tensor:
        """Return the outputs after the last step."""
        return self.head(self.layer(X)[0][:, -1])


@one_torch_thread()
def train_recurrent(task: StudyTask, settings: Mapping[str, Any]) -> Measured:
    """Train with every learning rate; return the best one's test score and the samples visited.

    The best learning rate has the highest score on the held-out sixth of the training sequences.
    """
    data = sequences(settings["task"], task.size, settings["length"], task.seed)
    runs = [_train(task, settings, rate, *data) for rate in settings["rates"]]
    _, test_score = max(runs, key=lambda scores: scores[0])
    return (test_score,), len(runs) * settings["steps"] * settings["batch"]


def _train(
    task: StudyTask,
    settings: Mapping[str, Any],
    rate: float,
    training: Sequences,
    test: Sequences,
) -> tuple[float, float]:
    """Return the scores on held-out training sequences and on test sequences."""
    X, y = training
    used = len(X) - len(X) // 6
    outputs = 1 if y.is_floating_point() else int(y.max()) + 1
    model = seeded(task.seed, Recurrent, task.kind, X.shape[2], task.hidden, outputs)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    rng = np.random.default_rng(task.seed)
    for _ in range(settings["steps"]):
        rows = torch.from_numpy(rng.integers(0, used, settings["batch"]))
        _step(optimizer, _loss(model(X[rows]), y[rows]), largest=1.0)
    return _score(model, X[used:], y[used:]), _score(model, *test)


def _loss(outputs: Tensor, y: Tensor) -> Tensor:
    if y.is_floating_point():
        return nn.functional.mse_loss(outputs.squeeze(1), y)
    return nn.functional.cross_entropy(outputs, y)


@torch.no_grad()
def _score(model: nn.Module, X: Tensor, y: Tensor) -> float:
    """Return the share of sequences with the right class or a sum within NEAR."""
    outputs = model(X)
    right = (
        (outputs.squeeze(1) - y).abs() < NEAR
        if y.is_floating_point()
        else outputs.argmax(dim=1) == y
    )
    return float(right.float().mean())


def parameters(kind: str, inputs: int, hidden: int, outputs: int) -> int:
    """Return the number of parameters of a network."""
    return sum(p.numel() for p in Recurrent(kind, inputs, hidden, outputs).parameters())


class BilinearMLP(nn.Module):
    """``head (W h * V h)`` with ``h = embed x``, without biases."""

    def __init__(self, n_inputs: int, width: int, n_outputs: int) -> None:
        super().__init__()
        self.embed = nn.Linear(n_inputs, width, bias=False)
        self.factors = nn.Linear(width, 2 * width, bias=False)  # W above V
        self.head = nn.Linear(width, n_outputs, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        left, right = self.factors(self.embed(x)).chunk(2, dim=1)
        return self.head(left * right)

    def to_network(self) -> Network:
        """Return the same function as a linear, a reduced and a linear layer."""
        E, F, out = (
            layer.weight.detach().numpy().copy() for layer in (self.embed, self.factors, self.head)
        )
        width = len(E)
        zeros = np.zeros(width, dtype=E.dtype)
        return Network(
            [
                Linear(E, zeros),
                Reduced(F[:width], zeros, F[width:], zeros),
                Linear(out, np.zeros(len(out), dtype=E.dtype)),
            ],
            ["identity", "identity", "softmax"],
        )


@one_torch_thread()
def train_bilinear(
    task: StudyTask, settings: Mapping[str, Any], data: ImageData, *, noise: float, decay: float
) -> tuple[Network, int]:
    """Train a network with AdamW and a cosine schedule; return it and the number of images visited.

    In every step, Gaussian noise with the standard deviation `noise` is added to the pixels, which
    range from 0 to 1. An epoch leaves out the images that do not fill a batch.
    """
    X, y = _scaled(data.X_train[: task.size], data), torch.tensor(data.y_train[: task.size])
    batch = min(settings["batch"], task.size)
    epochs, steps = settings["epochs"], task.size // batch
    random = torch.Generator().manual_seed(task.seed)
    model = seeded(task.seed, BilinearMLP, X.shape[1], task.hidden, int(data.y_train.max()) + 1)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings["rate"], weight_decay=decay, foreach=True
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(task.size, generator=random), batch)[:steps]:
            images = X[rows]
            if noise:
                images += noise * torch.randn(images.shape, generator=random)
            _step(optimizer, nn.functional.cross_entropy(model(images), y[rows]))
        schedule.step()
    return model.to_network(), epochs * steps * batch
