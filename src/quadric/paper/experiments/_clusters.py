"""Six clusters: one layer of six quadratic or linear neurons, and networks with a hidden layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from matplotlib.figure import Figure

from quadric import datasets
from quadric._utils.arrays import Array
from quadric.network import Network
from quadric.paper.experiments._experiment import Claim, Context, Outcome, Table, new_figure
from quadric.plotting import plot_clusters, plot_regions

RATE = 1e-4  # the paper's learning rate
EPOCHS = 10_000
WIDTHS = range(1, 9)
NETWORKS = {
    "quadratic": [("quadratic", 6, "logistic")],
    "linear": [("linear", 6, "logistic")],
    "linear, softmax": [("linear", 6, "softmax")],
    "reduced": [("reduced", 6, "logistic")],
} | {
    f"{width} hidden, 6 linear": [("linear", width, "tanh"), ("linear", 6, "logistic")]
    for width in WIDTHS
}


@dataclass(frozen=True)
class TrainedLayers:
    """A trained network and its test accuracies in percent.

    The two accuracies differ because several outputs can exceed 0.5, or none.

    Attributes
    ----------
    model : str
    seed : int
    thresholded : float
        The share of points for which every output is on the correct side of 0.5.
    argmax : float
        The share of points for which the neuron of their class has the largest output.
    seconds : float
    network : Network
    """

    model: str
    seed: int
    thresholded: float
    argmax: float
    seconds: float
    network: Network


def data(seed: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Draw the paper's 2000 training and 500 test points per class."""
    rng = np.random.default_rng(seed)
    return datasets.clusters(2000, rng=rng), datasets.clusters(500, rng=rng)


def train(model: str, seed: int, epochs: int = EPOCHS) -> TrainedLayers:
    """Train a network and test it.

    One layer is trained as in the paper: SGD, one sample per step, rate 0.0001. Networks with a
    hidden layer are trained to convergence with L-BFGS.
    """
    (X, y), (X_test, y_test) = data(seed)
    Y, layers = np.eye(6)[y], NETWORKS[model]
    if len(layers) == 1:
        net = Network.create(2, layers, init="normal", scale=0.005, rng=seed)
        history = net.fit(X, Y, learning_rate=RATE, epochs=epochs, rng=seed)
    else:
        net = Network.create(2, layers, init="glorot", rng=seed)
        history = net.fit(X, Y, solver="lbfgs", epochs=500, l2=1e-6)
    outputs = net.forward(X_test)
    thresholded = ((outputs > 0.5) == np.eye(6, dtype=bool)[y_test]).all(axis=1)
    return TrainedLayers(
        model,
        seed,
        thresholded=100 * float(thresholded.mean()),
        argmax=100 * float((outputs.argmax(axis=1) == y_test).mean()),
        seconds=sum(history.seconds),
        network=net,
    )


def run(context: Context) -> Outcome:
    """Train all networks with 5 seeds (3 seeds and a fifth of the epochs in a quick run)."""
    seeds, epochs = (5, EPOCHS) if context.full else (3, EPOCHS // 5)
    cases = [(*case, epochs) for case in product(NETWORKS, range(seeds))]
    return outcome(context.map(train, cases, "clusters"), epochs)


def outcome(trained: Sequence[TrainedLayers], epochs: int) -> Outcome:
    """Compute medians over the seeds, and judge the paper's claims."""
    medians = {}
    for name in dict.fromkeys(one.model for one in trained):
        mine = [one for one in trained if one.model == name]
        scores = [(one.thresholded, one.argmax, one.seconds) for one in mine]
        by_thresholds, by_argmax, seconds = np.median(scores, axis=0).tolist()
        medians[name] = (by_thresholds, by_argmax, mine[0].network.n_parameters, seconds)
    best, argmax, parameters, seconds = medians["quadratic"]
    hidden = ((width, *medians[f"{width} hidden, 6 linear"]) for width in WIDTHS)
    matches = (
        f"{width} hidden neurons ({count} parameters, {accuracy:.2f} %)"
        for width, accuracy, _, count, _ in hidden
        if accuracy >= best - 0.05
    )
    match = next(matches, "no network with up to 8 hidden neurons")
    linear, linear_argmax, *_ = medians["linear"]
    softmax = medians["linear, softmax"][1]
    count, whole = len({one.seed for one in trained}), epochs == EPOCHS
    claims = [
        Claim(
            "one layer of 6 quadratic neurons reaches 99.97 %",
            "99.97 %",
            f"{best:.2f} % by thresholds, {argmax:.2f} % by argmax (medians of {count} seeds)"
            + ("" if whole else f"; not judged: {epochs} of the {EPOCHS} epochs"),
            best >= 99.9 if whole else None,
        ),
        Claim(
            "a layer of 6 linear neurons cannot learn the clusters",
            "not shown",
            f"{linear:.2f} % by thresholds, but {linear_argmax:.2f} % by argmax and {softmax:.2f} "
            "% with softmax",
            linear < 90,
        ),
        Claim(
            "linear neurons that decide independently need a hidden layer",
            "not shown",
            f"{linear:.2f} % without one; 6 quadratic neurons ({parameters} parameters) are "
            f"matched to within 0.05 percentage points by {match}",
            linear < best - 0.05,
        ),
    ]
    table = Table(
        "clusters",
        "Six clusters: test accuracy, medians over the seeds",
        ("model", "by thresholds", "by argmax", "parameters", "seconds"),
        [(name, *values) for name, values in medians.items()],
        "By thresholds: every output is on the correct side of 0.5. By argmax: the neuron of the "
        "class has the largest output.",
        {"by thresholds": ".2f", "by argmax": ".2f", "seconds": ".1f"},
    )
    return Outcome(
        "clusters",
        "Six clusters, six neurons, no hidden layer",
        f"SGD with the paper's rate of {RATE} for {epochs} epochs ({seconds:.0f} s per run), 2000 "
        f"training and 500 test points per class, {count} seeds. The networks with hidden layers "
        "are trained with L-BFGS.",
        [table],
        claims,
        {"clusters": draw(next(one for one in trained if one.model == "quadratic"))},
        {"epochs": epochs, "rate": RATE, "seeds": count, "seconds": seconds},
    )


def draw(trained: TrainedLayers) -> Figure:
    """Draw the paper's figure: each class and its neuron's boundary, and the decision regions."""
    (X, y), _ = data(trained.seed)
    figure = new_figure(10, 4.6)
    left, right = figure.subplots(1, 2)
    window = (-24.0, 8.0, -9.0, 19.0)
    plot_clusters(trained.network, X[::4], y[::4], left, window=window)
    plot_regions(trained.network, X[::4], y[::4], right, window=window, size=8, legend=False)
    left.set(title="each neuron's boundary in its class's color", xlabel="$x$", ylabel="$y$")
    right.set(title="the class of the largest output", xlabel="$x$", ylabel="$y$", aspect="equal")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(
        handles,
        [f"class {label}" for label in labels],
        loc="outside lower center",
        ncols=6,
        frameon=False,
        markerscale=2.2,
    )
    return figure
