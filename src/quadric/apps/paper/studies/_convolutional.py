"""A small convolutional network with a linear, quadratic or reduced head; imports torch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from quadric.apps.paper.studies._reproducible import one_torch_thread, seeded
from quadric.apps.paper.sweep import StudyTask
from quadric.datasets import ImageData
from quadric.torch import replace_head


def network(side: int, features: int, head: str) -> nn.Module:
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


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData) -> tuple[list[float], int]:
    """Return the test accuracy after each of `settings["epochs"]`, and the samples visited."""
    side = data.shape[0]
    choice, order = np.random.default_rng(task.seed).spawn(2)
    rows = choice.permutation(len(data.X_train))[: task.size]
    X, X_test = (
        _images(pixels, data.largest, side) for pixels in (data.X_train[rows], data.X_test)
    )
    y, y_test = torch.tensor(data.y_train[rows]), torch.tensor(data.y_test)
    accuracies, last = [], settings["epochs"][-1]
    with one_torch_thread():
        with seeded(task.seed):
            model = network(side, task.hidden, task.kind)
        optimizer = torch.optim.Adam(model.parameters(), lr=settings["rate"])
        for epoch in range(1, last + 1):
            model.train()
            visits = torch.from_numpy(order.permutation(task.size))
            for batch in torch.split(visits, settings["batch"]):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(X[batch]), y[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            if epoch in settings["epochs"]:
                accuracies.append(_accuracy(model, X_test, y_test))
    return accuracies, task.size * last


def _images(pixels: Any, largest: int, side: int) -> Tensor:
    return torch.from_numpy(np.divide(pixels, largest, dtype=np.float32)).view(-1, 1, side, side)


def _accuracy(model: nn.Module, X: Tensor, y: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        predicted = torch.cat([model(images).argmax(dim=1) for images in torch.split(X, 500)])
    return int((predicted == y).sum()) / len(y)
