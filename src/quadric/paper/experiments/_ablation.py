"""What the printed errors cost: the algorithms as printed beside the corrected ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quadric import datasets
from quadric._utils.arrays import Array
from quadric.paper.experiments._outcome import Claim, Outcome, Progress, Table, silent
from quadric.reference import _as_printed as as_printed
from quadric.reference import train_logistic, train_rpqnn
from quadric.reference._algorithm2 import forward

if TYPE_CHECKING:
    from matplotlib.figure import Figure


HIDDEN = 15


@dataclass(frozen=True)
class Row:
    """One epoch of one run: accuracies on the test data, in percent."""

    error: str
    seed: int
    epoch: int
    printed: float
    corrected: float


def train_biases(seed: int, epochs: int) -> list[Row]:
    """Algorithm 2, on digits with 64 - 15 - 10 reduced neurons: b and c swapped, and not."""
    data = datasets.digits()
    X, X_test = data.X_train / data.largest, data.X_test / data.largest
    Y = np.eye(10)[data.y_train]
    rng = np.random.default_rng(seed)
    layers = []
    for n, m in ((64, HIDDEN), (HIDDEN, 10)):
        shapes = {"W": (m, n), "b": (m,), "U": (m, n), "c": (m,)}
        layers.append({k: rng.normal(0, 0.3 / np.sqrt(n), shape) for k, shape in shapes.items()})
        layers[-1]["c"] += 1.0  # from about linear neurons, so that both learn at all
    printed = corrected = layers
    rows = []
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(X))
        printed = as_printed.train_rpqnn(X, Y, printed, 0.05, order=order)
        corrected = train_rpqnn(X, Y, corrected, 0.05, order=order)
        scores = [_accuracy(network, X_test, data.y_test) for network in (printed, corrected)]
        rows.append(Row("Algorithm 2 on digits: b and c", seed, epoch, *scores))
    return rows


def train_strip(seed: int, epochs: int) -> list[Row]:
    """Algorithm 2, one reduced neuron and a strip that is not about the origin: b and c matter."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (800, 2))
    along = X @ [1.0, 0.5]
    y = ((along > -0.4) & (along < 1.2)).astype(int)
    shapes = {"W": (1, 2), "b": (1,), "U": (1, 2), "c": (1,)}
    printed = corrected = [{k: rng.normal(0, 0.5, shape) for k, shape in shapes.items()}]
    rows = []
    for epoch in range(1, epochs + 1):
        for _ in range(5):  # five passes: the data set is small
            order = rng.permutation(400)
            printed = as_printed.train_rpqnn(X, y[:, None], printed, 0.05, order=order)
            corrected = train_rpqnn(X, y[:, None], corrected, 0.05, order=order)
        scores = [
            100 * float(np.mean([(forward(network, ["logistic"], x).z[-1][0] > 0) == label
                                 for x, label in zip(X[400:], y[400:], strict=True)]))
            for network in (printed, corrected)
        ]  # fmt: skip
        rows.append(Row("Algorithm 2, one neuron and a strip: b and c", seed, epoch, *scores))
    return rows


def _accuracy(layers: Any, X: Array, y: Array) -> float:
    outputs = [forward(layers, ["logistic"] * len(layers), x).a[-1] for x in X]
    return 100 * float((np.argmax(outputs, axis=1) == y).mean())


def train_sign(seed: int, epochs: int) -> list[Row]:
    """Section II, on a tilted ellipse: w moves the wrong way, and the right one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 2))
    y = ((X[:, 0] ** 2 + 2 * X[:, 1] ** 2 + 2 * X[:, 0] - X[:, 1]) < 1).astype(float)
    X, X_test, y, y_test = X[:300], X[300:], y[:300], y[300:]
    start = (np.zeros((2, 2)), np.zeros(2), 0.0)
    wrong, right = start, start
    rows = []
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(X))
        wrong = _train_with_printed_sign(X[order], y[order], *wrong, 0.05)
        right = train_logistic(X[order], y[order], *right, 0.05)
        scores = []
        for Q, w, b in (wrong, right):
            z = ((X_test @ Q) * X_test).sum(axis=1) + X_test @ w + b
            scores.append(100 * float(((z > 0) == (y_test > 0.5)).mean()))
        rows.append(Row("section II: the sign of the w update", seed, epoch, *scores))
    return rows


def _train_with_printed_sign(X: Array, y: Array, Q: Array, w: Array, b: Any, eta: float) -> Any:
    """The corrected step, with w put where the printed vector form moves it."""
    for x, target in zip(X, y, strict=True):
        gradient = as_printed.w_gradient(Q, w, b, x, target)
        Q, _, b = train_logistic(x[None], np.array([target]), Q, w, b, eta)
        w = w - eta * gradient
    return Q, w, b


def run(*, full: bool = False, jobs: int = 1, progress: Progress = silent) -> Outcome:
    """Each error, over 5 seeds and 10 epochs (2 and 4 in a quick run)."""
    seeds, epochs = (5, 10) if full else (2, 4)
    rows: list[Row] = []
    for seed in range(seeds):
        for train in (train_biases, train_strip, train_sign):
            with np.errstate(over="ignore"):  # exp in the plain sigmoid, where z is very negative
                rows += train(seed, epochs)
            progress(len(rows), 3 * seeds * epochs, f"ablation: seed {seed}")
    table_rows, claims = [], []
    for error in dict.fromkeys(row.error for row in rows):
        for epoch in range(1, epochs + 1):
            mine = [row for row in rows if row.error == error and row.epoch == epoch]
            printed, corrected = (
                float(np.mean([getattr(row, name) for row in mine]))
                for name in ("printed", "corrected")
            )
            table_rows.append((error, epoch, printed, corrected, corrected - printed))
        _, _, printed, corrected, gain = table_rows[-1]
        claims.append(
            Claim(
                f"the printed update will do ({error})", "printed",
                f"{printed:.1f} % as printed, {corrected:.1f} % corrected after {epochs} epochs",
                gain < 1.0 if full else None, erratum=True,
            )
        )  # fmt: skip
    table = Table(
        "ablation", "Test accuracy in percent, means over the seeds",
        ("error", "epoch", "as printed", "corrected", "gain"), table_rows,
        "The same initial values and the same order of samples in both columns.",
        {"as printed": ".2f", "corrected": ".2f", "gain": "+.2f"},
    )  # fmt: skip
    return Outcome(
        "ablation", "What the printed errors cost",
        f"The reference implementation as printed and corrected, {seeds} seeds, {epochs} epochs: "
        "Algorithm 2 (b and c take each other's update) on the 8x8 digits, whose weights can make "
        "up for it, and with one neuron on a strip, which has none to spare; quadratic logistic "
        "regression (the sign of the w update) on a tilted ellipse. Judged in full runs: within "
        "one point after the last epoch.",
        [table], claims, {"ablation": draw(table_rows)}, {"seeds": seeds, "epochs": epochs},
    )  # fmt: skip


def draw(rows: Any) -> Figure:
    """Accuracy against epochs, as printed and corrected."""
    from matplotlib.figure import Figure

    from quadric.plotting._style import color_of

    errors = list(dict.fromkeys(row[0] for row in rows))
    figure = Figure(figsize=(4.6 * len(errors), 3.6), layout="constrained", dpi=150)
    for ax, error in zip(figure.subplots(1, len(errors)), errors, strict=True):
        mine = [row for row in rows if row[0] == error]
        epochs = [row[1] for row in mine]
        for k, (column, name, dash) in enumerate(((3, "corrected", "-"), (2, "as printed", "--"))):
            ax.plot(
                epochs, [row[column] for row in mine], dash, marker="o", color=color_of(k),
                label=name,
            )  # fmt: skip
        ax.set_title(error, fontsize=9)
        ax.set_xlabel("epoch")
        ax.set_ylabel("test accuracy, %")
        ax.legend(frameon=False)
    return figure
