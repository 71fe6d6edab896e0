"""Compare a recurrent layer of quadratic neurons with `torch.nn.RNN` on running parity.

    python examples/torch_parity.py

The input is a sequence of random bits, each 1 or -1. After every bit, the network predicts the
product of all bits so far. The product of state and input, h' = h x, solves the task. A quadratic
neuron computes this product directly, whereas ordinary neurons have to approximate it. All networks
are trained on sequences of one length. They are tested on the last product of new sequences, some
of the same length and some ten times as long.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from quadric.torch import QuadraticRNN


@dataclass(frozen=True)
class Task:
    """Settings of the sequences, the batches and the Adam optimizer, common to all networks."""

    length: int = 40
    batch: int = 64
    steps: int = 150
    learning_rate: float = 0.01
    tested: int = 1000


@dataclass(frozen=True)
class Contestant:
    """A recurrent network that is trained for `patience` times as many steps as the task has."""

    name: str
    kind: type[nn.Module]
    hidden: int
    patience: int = 1

    def make(self) -> nn.ModuleList:
        """Return the recurrent network followed by a linear neuron that reads its state."""
        return nn.ModuleList([self.kind(1, self.hidden), nn.Linear(self.hidden, 1)])

    def parameters(self) -> int:
        """Return the number of parameters."""
        return sum(parameter.numel() for parameter in self.make().parameters())


@dataclass(frozen=True)
class Result:
    """Fractions of correct last products, one for each seed."""

    same_length: list[float]
    ten_times: list[float]


def contestants(hidden: int = 4) -> list[Contestant]:
    """Return the quadratic network and three RNNs.

    The first RNN has as many neurons, the second at least as many parameters. The third is the
    second, trained for ten times as many steps.
    """
    quadratic = Contestant("QuadraticRNN", QuadraticRNN, hidden)
    rival = Contestant("torch.nn.RNN", nn.RNN, hidden)
    larger = rival
    while larger.parameters() < quadratic.parameters():
        larger = Contestant("torch.nn.RNN", nn.RNN, larger.hidden + 1)
    patient = Contestant("torch.nn.RNN", nn.RNN, larger.hidden, patience=10)
    return [quadratic, rival, larger, patient]


def sequences(length: int, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return bits and the products of all bits so far, both of shape (length, count, 1)."""
    bits = 2.0 * torch.randint(2, (length, count, 1), generator=generator) - 1
    return bits, bits.cumprod(0)


def train(contestant: Contestant, task: Task, seed: int) -> tuple[float, float]:
    """Train, and return the fractions of correct last products at both lengths."""
    torch.manual_seed(seed)
    network = contestant.make()
    rnn, readout = network
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=task.learning_rate)
    for _ in range(task.steps * contestant.patience):
        bits, products = sequences(task.length, task.batch, generator)
        z = readout(rnn(bits)[0])
        loss = nn.functional.softplus(-products * z).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    shares = []
    for length in (task.length, 10 * task.length):
        bits, products = sequences(length, task.tested, generator)
        with torch.no_grad():
            z = readout(rnn(bits)[0][-1])
        shares.append(float((z * products[-1] > 0).double().mean()))
    return shares[0], shares[1]


def run(contestant: Contestant, task: Task, seeds: Iterable[int]) -> Result:
    """Train once for each seed and print progress to stderr."""
    results = []
    for seed in seeds:
        results.append(train(contestant, task, seed))
        print(
            f"{contestant.name} of {contestant.hidden}, {contestant.patience}x steps, seed {seed}: "
            f"{results[-1][0]:.1%}, {results[-1][1]:.1%}",
            file=sys.stderr,
        )
    same_length, ten_times = zip(*results, strict=True)
    return Result(list(same_length), list(ten_times))


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)  # the networks are too small for several threads
    task, seeds = Task(), range(5)
    print(
        f"Last product of {task.length} bits, and of {10 * task.length}; {len(seeds)} seeds. "
        "Solved: at least 99 % correct at both lengths."
    )
    print("network       neurons  parameters  steps  solved   worst  median  median, 10 x length")
    for contestant in contestants():
        result = run(contestant, task, seeds)
        same, ten_times = sorted(result.same_length), sorted(result.ten_times)
        solved = sum(
            min(shares) >= 0.99 for shares in zip(result.same_length, result.ten_times, strict=True)
        )
        print(
            f"{contestant.name:12s}  {contestant.hidden:7d}  {contestant.parameters():10d}  "
            f"{task.steps * contestant.patience:5d}  {f'{solved}/{len(seeds)}':>6s}  "
            f"{same[0]:6.1%}  {same[len(same) // 2]:6.1%}  "
            f"{ten_times[len(ten_times) // 2]:19.1%}"
        )


if __name__ == "__main__":
    main()
