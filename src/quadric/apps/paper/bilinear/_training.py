"""Train a bilinear MLP as in the original publication; imports torch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from quadric.apps.paper.studies._reproducible import one_torch_thread, seeded
from quadric.apps.paper.sweep import StudyTask
from quadric.core import Linear, Reduced
from quadric.datasets import ImageData
from quadric.network import Network


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
        logits: torch.Tensor = self.head(left * right)
        return logits

    def to_network(self) -> Network:
        """Return the same function as a linear, a reduced and a linear layer."""
        E, F, out = (
            layer.weight.detach().numpy().copy() for layer in (self.embed, self.factors, self.head)
        )
        width = len(E)
        zeros = np.zeros(width, dtype=E.dtype)
        layers = [
            Linear(E, zeros),
            Reduced(F[:width], zeros, F[width:], zeros),
            Linear(out, np.zeros(len(out), dtype=E.dtype)),
        ]
        return Network(layers, ["identity", "identity", "softmax"])


def train_network(
    task: StudyTask, settings: Mapping[str, Any], data: ImageData, *, noise: float, decay: float
) -> tuple[Network, int]:
    """Train a network with AdamW and a cosine schedule; return it and the number of images visited.

    In every step, Gaussian noise with the standard deviation `noise` is added to the pixels, which
    range from 0 to 1. An epoch leaves out the images that do not fill a batch.
    """
    X = torch.from_numpy(np.divide(data.X_train[: task.size], data.largest, dtype=np.float32))
    y = torch.tensor(data.y_train[: task.size])
    batch = min(settings["batch"], task.size)
    epochs, steps = settings["epochs"], task.size // batch
    random = torch.Generator().manual_seed(task.seed)
    with one_torch_thread():
        with seeded(task.seed):
            model = BilinearMLP(X.shape[1], task.hidden, int(data.y_train.max()) + 1)
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=settings["rate"], weight_decay=decay, foreach=True
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
        for _ in range(epochs):
            order = torch.randperm(task.size, generator=random)
            for rows in torch.split(order, batch)[:steps]:
                images = X[rows]
                if noise:
                    images += noise * torch.randn(images.shape, generator=random)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images), y[rows])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            schedule.step()
    return model.to_network(), epochs * steps * batch
