"""Compare three heads for a small convolutional network on scikit-learn's digits.

    python examples/torch_head.py

The linear head is compared with the quadratic head and the reduced head that `replace_head`
creates. Initial weights and batches are the same for all three. The example takes half a minute on
one thread and does not download anything.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from quadric.torch import replace_head

HEADS = ("linear", "quadratic", "reduced")


def data():
    """Return training and test images, shape (N, 1, 8, 8), and their labels."""
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.25, stratify=y, random_state=0)
    X_train, X_test = (
        torch.tensor(part, dtype=torch.float32).view(-1, 1, 8, 8) for part in parts[:2]
    )
    return X_train, X_test, torch.tensor(parts[2]), torch.tensor(parts[3])


def network():
    """Return a small convolutional network with a linear head of 64 inputs."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def accuracy(model, X, y):
    """Return the fraction of images that the model classifies correctly."""
    model.eval()
    with torch.no_grad():
        return (model(X).argmax(dim=1) == y).float().mean().item()


def train(head, seed, epochs):
    """Train the network with this head and return its test accuracy."""
    X_train, X_test, y_train, y_test = data()
    torch.manual_seed(seed)
    model = network()
    if head != "linear":
        replace_head(model, head)
    order = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(X_train), generator=order).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(X_train[batch]), y_train[batch]).backward()
            optimizer.step()
    return accuracy(model, X_test, y_test)


def main():
    """Print the test accuracies of each head, their mean first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for head in HEADS:
        scores = [train(head, seed, options.epochs) for seed in range(options.seeds)]
        shown = " ".join(f"{100 * score:.1f}" for score in scores)
        print(f"{head:10s} {100 * sum(scores) / len(scores):.2f} % of the test images ({shown})")


if __name__ == "__main__":
    main()
