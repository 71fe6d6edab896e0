"""The cost of the printed errors: the algorithms as printed beside the corrected ones."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric import datasets
from quadric._utils.arrays import Array
from quadric.paper.experiments._experiment import Claim, Context, Outcome, Table, new_figure
from quadric.plotting._style import color_of
from quadric.reference import _as_printed as as_printed
from quadric.reference import train_logistic, train_rpqnn
from quadric.reference._algorithm2 import forward

HIDDEN = 15

Scores = list[tuple[float, float]]  # after each epoch: test accuracy as printed and corrected, in %


def train_biases(seed: int, epochs: int) -> Scores:
    """Train 64 - 15 - 10 reduced neurons on digits by Algorithm 2."""
    data = datasets.digits()
    X, X_test = data.X_train / data.largest, data.X_test / data.largest
    rng = np.random.default_rng(seed)
    layers = []
    for n, m in ((64, HIDDEN), (HIDDEN, 10)):
        layers.append(_reduced_layer(rng, n, m, 0.3 / np.sqrt(n)))
        layers[-1]["c"] += 1.0  # from nearly linear neurons, so that both versions learn

    def accuracy(network: Any) -> float:
        outputs = [forward(network, ["logistic"] * 2, x).a[-1] for x in X_test]
        return 100 * float((np.argmax(outputs, axis=1) == data.y_test).mean())

    return _train_both(X, np.eye(10)[data.y_train], layers, rng, epochs, 1, accuracy)


def train_strip(seed: int, epochs: int) -> Scores:
    """Train one reduced neuron by Algorithm 2 on a strip that does not contain the origin."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (800, 2))
    along = X @ [1.0, 0.5]
    y = ((along > -0.4) & (along < 1.2)).astype(int)
    layers = [_reduced_layer(rng, 2, 1, 0.5)]

    def accuracy(network: Any) -> float:
        inside = [forward(network, ["logistic"], x).z[-1][0] > 0 for x in X[400:]]
        return 100 * float((np.array(inside) == y[400:]).mean())

    # five passes per epoch: the data set is small
    return _train_both(X[:400], y[:400, None], layers, rng, epochs, 5, accuracy)


def _reduced_layer(rng: np.random.Generator, n: int, m: int, scale: float) -> dict[str, Array]:
    shapes = {"W": (m, n), "b": (m,), "U": (m, n), "c": (m,)}
    return {name: rng.normal(0, scale, shape) for name, shape in shapes.items()}


def _train_both(
    X: Array,
    Y: Array,
    layers: Any,
    rng: np.random.Generator,
    epochs: int,
    passes: int,
    accuracy: Any,
) -> Scores:
    """Train with b and c swapped, and not, from the same values and in the same order."""
    printed = corrected = layers
    scores = []
    for _ in range(epochs):
        for _ in range(passes):
            order = rng.permutation(len(X))
            printed = as_printed.train_rpqnn(X, Y, printed, 0.05, order=order)
            corrected = train_rpqnn(X, Y, corrected, 0.05, order=order)
        scores.append((accuracy(printed), accuracy(corrected)))
    return scores


def train_sign(seed: int, epochs: int) -> Scores:
    """Train quadratic logistic regression (section II) on a tilted ellipse."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 2))
    y = ((X[:, 0] ** 2 + 2 * X[:, 1] ** 2 + 2 * X[:, 0] - X[:, 1]) < 1).astype(float)
    X, X_test, y, y_test = X[:300], X[300:], y[:300], y[300:]
    printed: tuple[Array, Array, Any] = (np.zeros((2, 2)), np.zeros(2), 0.0)
    corrected = printed
    scores = []
    for _ in range(epochs):
        order = rng.permutation(len(X))
        corrected = train_logistic(X[order], y[order], *corrected, 0.05)
        for i in order:  # the corrected step, but w moves as the printed vector form says
            w = printed[1] - 0.05 * as_printed.w_gradient(*printed, X[i], y[i])
            Q, _, b = train_logistic(X[i][None], y[i][None], *printed, 0.05)
            printed = (Q, w, b)
        z = [
            ((X_test @ Q) * X_test).sum(axis=1) + X_test @ w + b for Q, w, b in (printed, corrected)
        ]
        as_is, right = (100 * float(((side > 0) == (y_test > 0.5)).mean()) for side in z)
        scores.append((as_is, right))
    return scores


ERRORS = {
    "Algorithm 2 on digits: b and c": train_biases,
    "Algorithm 2, one neuron and a strip: b and c": train_strip,
    "section II: the sign of the w update": train_sign,
}


def run(context: Context) -> Outcome:
    """Train with each error, over 5 seeds and 10 epochs (2 and 4 in a quick run)."""
    seeds, epochs = (5, 10) if context.full else (2, 4)
    rows, claims = [], []
    for k, (error, train) in enumerate(ERRORS.items()):
        scores = []
        for seed in range(seeds):
            with np.errstate(over="ignore"):  # exp in the plain sigmoid, if z is very negative
                scores.append(train(seed, epochs))
            context.progress(k * seeds + seed + 1, 3 * seeds, f"ablation: {error}")
        for epoch, means in enumerate(np.mean(scores, axis=0), start=1):
            printed, corrected = map(float, means)
            rows.append((error, epoch, printed, corrected, corrected - printed))
        claims.append(
            Claim(
                f"the printed update will do ({error})",
                "printed",
                f"{printed:.1f} % as printed, {corrected:.1f} % corrected after {epochs} epochs",
                corrected - printed < 1.0 if context.full else None,
                erratum=True,
            )
        )
    title = "Test accuracy in percent, means over the seeds"
    columns = ("error", "epoch", "as printed", "corrected", "gain")
    note = "Both columns start from the same values and see the samples in the same order."
    formats = {"as printed": ".2f", "corrected": ".2f", "gain": "+.2f"}
    table = Table("ablation", title, columns, rows, note, formats)
    return Outcome(
        "ablation",
        "The cost of the printed errors",
        f"The reference implementation as printed and corrected, {seeds} seeds, {epochs} epochs. "
        "Algorithm 2 (b and c exchange their updates) on the 8x8 digits, where other weights can "
        "compensate, and with one neuron on a strip, where none can; quadratic logistic regression "
        "(the sign of the w update) on a tilted ellipse. Judged in full runs: within one point "
        "after the last epoch.",
        [table],
        claims,
        {"ablation": draw(rows)},
        {"seeds": seeds, "epochs": epochs},
    )


def draw(rows: Any) -> Figure:
    """Draw accuracy against epochs, as printed and corrected."""
    figure = new_figure(4.6 * len(ERRORS), 3.6)
    for ax, error in zip(figure.subplots(1, len(ERRORS)), ERRORS, strict=True):
        _, epochs, printed, corrected, _ = zip(*(r for r in rows if r[0] == error), strict=True)
        ax.plot(epochs, corrected, "-", marker="o", color=color_of(0), label="corrected")
        ax.plot(epochs, printed, "--", marker="o", color=color_of(1), label="as printed")
        ax.set_title(error, fontsize=9)
        ax.set(xlabel="epoch", ylabel="test accuracy, %")
        ax.legend(frameon=False)
    return figure
