"""Three tasks on sequences, and recurrent networks of about equal size; imports torch."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from quadric.apps.paper.studies._reproducible import one_torch_thread, seeded
from quadric.apps.paper.sweep import StudyTask
from quadric.torch import QuadraticRNN

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


def digit_rows(seed: int) -> tuple[Sequences, Sequences]:
    """Return training and test images of digits, one row of 8 pixels per step."""
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=seed)
    X_train, X_test = (torch.tensor(part, dtype=torch.float32).view(-1, 8, 8) for part in parts[:2])
    return (X_train, torch.tensor(parts[2])), (X_test, torch.tensor(parts[3]))


def sequences(name: str, size: int, length: int, seed: int) -> tuple[Sequences, Sequences]:
    """Return `size` training sequences and the test sequences of a task."""
    if name == "rows":
        (X, y), test = digit_rows(seed)
        return (X[:size], y[:size]), test
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
        states: Tensor = self.layer(X)[0]
        result: Tensor = self.head(states[:, -1])
        return result


def train(task: StudyTask, settings: Mapping[str, Any]) -> tuple[list[float], int]:
    """Train with every learning rate; return the best one's test score and the samples visited.

    The best learning rate has the highest score on the held-out sixth of the training sequences.
    """
    training, test = sequences(settings["task"], task.size, settings["length"], task.seed)
    steps, batch = settings["steps"], settings["batch"]
    with one_torch_thread():
        runs = [_train(task, training, test, rate, steps, batch) for rate in settings["rates"]]
    _, test_score = max(runs, key=lambda scores: scores[0])
    return [test_score], len(runs) * steps * batch


def _train(
    task: StudyTask, training: Sequences, test: Sequences, rate: float, steps: int, batch: int
) -> tuple[float, float]:
    """Return the scores on held-out training sequences and on test sequences."""
    X, y = training
    used = len(X) - len(X) // 6
    is_sum = y.is_floating_point()
    with seeded(task.seed):
        model = Recurrent(task.kind, X.shape[2], task.hidden, 1 if is_sum else int(y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    rng = np.random.default_rng(task.seed)
    for _ in range(steps):
        rows = torch.from_numpy(rng.integers(0, used, batch))
        optimizer.zero_grad()
        loss = _loss(model(X[rows]), y[rows])
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return _score(model, X[used:], y[used:]), _score(model, *test)


def _loss(outputs: Tensor, y: Tensor) -> Tensor:
    if y.is_floating_point():
        return nn.functional.mse_loss(outputs.squeeze(1), y)
    return nn.functional.cross_entropy(outputs, y)


def _score(model: nn.Module, X: Tensor, y: Tensor) -> float:
    """Return the share of sequences with the right class or a sum within NEAR."""
    model.eval()
    with torch.no_grad():
        outputs = model(X)
    model.train()
    if y.is_floating_point():
        right = (outputs.squeeze(1) - y).abs() < NEAR
    else:
        right = outputs.argmax(dim=1) == y
    return float(right.float().mean())


def parameters(kind: str, inputs: int, hidden: int, outputs: int) -> int:
    """Return the number of parameters of a network."""
    return sum(p.numel() for p in Recurrent(kind, inputs, hidden, outputs).parameters())
