"""Six clusters: one layer of six quadratic or linear neurons, and networks with a hidden layer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from quadric import Network, datasets
from quadric.apps.paper._experiment import (
    NEEDS_FULL,
    Claim,
    Context,
    Outcome,
    Table,
    Verdict,
    headline,
    legend_below,
    new_figure,
)
from quadric.checks import Array
from quadric.geometry import Quadric
from quadric.plotting import plot_clusters, plot_regions

RATE = 1e-4  # the paper's learning rate
EPOCHS = 10_000
PRINTED = 99.97  # the paper's accuracy in percent
WIDTHS = (1, 2, 3, 4, 8)  # 4 hidden neurons already match the quadratic ones
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
    hidden layer are trained with L-BFGS, in a full run to convergence.
    """
    (X, y), (X_test, y_test) = data(seed)
    Y, layers = np.eye(6)[y], NETWORKS[model]
    if len(layers) == 1:
        net = Network.create(2, layers, init="normal", scale=0.005, rng=seed)
        history = net.fit(X, Y, learning_rate=RATE, epochs=epochs, rng=seed)
    else:
        net = Network.create(2, layers, init="glorot", rng=seed)
        history = net.fit(X, Y, solver="lbfgs", epochs=min(500, epochs // 10), l2=1e-6)
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


def boundary_kinds(net: Network) -> list[str]:
    """Return the kind of each neuron's boundary, for a network of one quadratic layer."""
    layer: Any = net.layers[0]
    return [str(Quadric(*parts).kind) for parts in zip(layer.Q, layer.W, layer.b, strict=True)]


def run(context: Context) -> Outcome:
    """Train all networks with 5 seeds (3 seeds and a tenth of the epochs in a quick run)."""
    seeds, epochs = (5, EPOCHS) if context.full else (3, EPOCHS // 10)
    cases = list(product(NETWORKS, range(seeds), (epochs,)))
    return outcome(context.map(train, cases, "clusters"), epochs)


def outcome(trained: Sequence[TrainedLayers], epochs: int) -> Outcome:
    """Compute medians over the seeds, and judge the paper's claims."""
    medians = {}
    for name in dict.fromkeys(net.model for net in trained):
        mine = [net for net in trained if net.model == name]
        scores = [(net.thresholded, net.argmax, net.seconds) for net in mine]
        by_thresholds, by_argmax, seconds = np.median(scores, axis=0).tolist()
        medians[name] = (by_thresholds, by_argmax, mine[0].network.n_parameters, seconds)
    seconds, count = medians["quadratic"][3], len({net.seed for net in trained})
    quadratic = [net for net in trained if net.model == "quadratic"]
    boundaries = {net.seed: boundary_kinds(net.network) for net in quadratic}
    claims = [
        *quadratic_claims(medians, list(boundaries.values()), epochs),
        *linear_claims(medians, trained[0].seed),
    ]
    by_thresholds, linear = medians["quadratic"][0], medians["linear"]
    return Outcome(
        "clusters",
        "Six clusters, six neurons, no hidden layer",
        f"SGD with the paper's rate of {RATE} for {epochs} epochs ({seconds:.0f} s per run), 2000 "
        f"training and 500 test points per class, {count} seeds. The networks with hidden layers "
        "are trained with L-BFGS.",
        [
            Table(
                "clusters",
                "Six clusters: test accuracy, medians over the seeds",
                ("model", "by thresholds", "by argmax", "parameters", "seconds"),
                [(name, *values) for name, values in medians.items()],
                "By thresholds: every output is on the correct side of 0.5. By argmax: the neuron "
                "of the class has the largest output.",
                {"by thresholds": ".2f", "by argmax": ".2f", "seconds": ".1f"},
            ),
            Table(
                "cluster_boundaries",
                f"The kind of each quadratic neuron's boundary after {epochs} epochs",
                ("seed", *(f"class {k}" for k in range(6))),
                [(seed, *kinds) for seed, kinds in boundaries.items()],
                "From the coefficients of the neurons.",
            ),
        ],
        claims,
        {"clusters": draw(quadratic[0])},
        {"epochs": epochs, "rate": RATE, "seeds": count, "seconds": seconds},
        {
            "clusters": "A quarter of the training points with the first seed. Left: the boundary "
            "of each quadratic neuron, in the color of its class. Right: the regions in which each "
            "neuron has the largest output."
        },
        [
            f"On the six clusters, six quadratic neurons without a hidden layer reach "
            f"{by_thresholds:.2f} % after {epochs} epochs (paper: {PRINTED} % after {EPOCHS}). Six "
            f"linear neurons reach {linear[0]:.2f} % if each decides by its own threshold, but "
            f"{linear[1]:.2f} % if the largest output decides."
        ],
        headline=headline(
            claims,
            "clusters-accuracy",
            f"clusters: accuracy, {epochs} epochs",
            f"{PRINTED} %",
            f"{by_thresholds:.2f} %",
        ),
        descriptions={
            "clusters": "Two panels with six clouds of points in the plane. Left: six curves, one "
            f"around or beside each cloud ({_counted(boundaries[quadratic[0].seed])}). Right: the "
            "plane divided into six regions, one for each cloud; "
            f"{quadratic[0].argmax:.2f} % of the test points are in the region of their class."
        },
    )


def _counted(kinds: Sequence[str]) -> str:
    return ", ".join(f"{kind} {number}" for kind, number in sorted(Counter(kinds).items()))


def quadratic_claims(
    medians: Mapping[str, tuple[float, ...]], boundaries: Sequence[Sequence[str]], epochs: int
) -> list[Claim]:
    """Judge the claims about the six quadratic neurons, in runs with the paper's epochs only."""
    thresholds, argmax, *_ = medians["quadratic"]
    judged, seeds = epochs == EPOCHS, len(boundaries)
    kinds = Counter(map(_counted, boundaries))
    note = "" if judged else f"; {epochs} of the {EPOCHS} epochs, {NEEDS_FULL}"
    return [
        Claim(
            "clusters-accuracy",
            f"{PRINTED} %",
            f"{thresholds:.2f} % by thresholds, {argmax:.2f} % by argmax{note}",
            Verdict.of(thresholds >= 99.9, judged=judged),
            Verdict.HOLDS,
            f"median of {seeds} seeds, at least 99.9 % by thresholds",
        ),
        Claim(
            "clusters-boundaries",
            "a figure",
            "; ".join(f"{text} for {number} of {seeds} seeds" for text, number in kinds.items())
            + note,
            Verdict.of(set().union(*boundaries) <= {"ellipse", "hyperbola"}, judged=judged),
            Verdict.HOLDS,
            f"{seeds} seeds; the kind follows from the coefficients",
        ),
    ]


def linear_claims(medians: Mapping[str, tuple[float, ...]], seed: int) -> list[Claim]:
    """Judge the claims about linear neurons by linear programs for the training points."""
    best, _, parameters, _ = medians["quadratic"]
    linear, linear_argmax, *_ = medians["linear"]
    hidden = ((width, *medians[f"{width} hidden, 6 linear"]) for width in WIDTHS)
    matches = (
        f"{width} hidden neurons ({count:.0f} parameters, {accuracy:.2f} %)"
        for width, accuracy, _, count, _ in hidden
        if accuracy >= best - 0.05
    )
    match = next(matches, "no network with up to 8 hidden neurons")
    (X, y), _ = data(seed)
    alone, together = sum(separable_from_the_rest(X, y)), separable_by_argmax(X, y)
    verdict = Verdict.of(alone < 6 and not together, partly=alone < 6)
    by_thresholds = f"only if every neuron decides by its own threshold: {linear:.2f} %"
    method = f"linear programs for {len(X)} points, and training"
    return [
        Claim(
            "clusters-not-separable",
            "by the printed means, two clusters lie between others on a line, so no line separates "
            "them from the rest; by argmax, the nearest mean, which is linear, separates all six",
            f"a line separates {alone} of the 6 classes from all points of the others. By argmax, "
            "a linear program "
            + ("finds" if together else "does not find")
            + f" 6 linear neurons that separate all {len(X)} training points",
            verdict,
            Verdict.CONDITIONALLY,
            method,
        ),
        Claim(
            "clusters-linear-layer",
            "not shown: no linear layer is trained",
            f"{by_thresholds}. By argmax, 6 linear neurons reach {linear_argmax:.2f} %, or "
            f"{medians['linear, softmax'][1]:.2f} % with softmax",
            verdict,
            Verdict.UNKNOWN,
            method,
        ),
        Claim(
            "clusters-hidden-layer",
            "not shown: no ANN is trained",
            f"{by_thresholds} without a hidden layer. The 6 quadratic neurons ({parameters:.0f} "
            f"parameters) are matched to within 0.05 percentage points by {match}",
            verdict,
            Verdict.UNKNOWN,
            method,
        ),
    ]


def draw(trained: TrainedLayers) -> Figure:
    """Draw the paper's figure: each class and its neuron's boundary, and the decision regions."""
    (X, y), _ = data(trained.seed)
    figure, (left, right) = new_figure(10, 4.6, 1, 2)
    window = (-24.0, 8.0, -9.0, 19.0)
    plot_clusters(trained.network, X[::4], y[::4], left, window=window)
    plot_regions(trained.network, X[::4], y[::4], right, window=window, size=8, legend=False)
    figure.set_layout_engine("constrained", h_pad=0.1)  # room for the titles
    left.set(title="each neuron's boundary in its class's color", xlabel="$x$", ylabel="$y$")
    right.set(title="the class of the largest output", xlabel="$x$", ylabel="$y$", aspect="equal")
    legend_below(figure, left, 6, "class {}", markerscale=2.2)
    return figure


def separable_by_argmax(X: Array, y: Array) -> bool:
    """Return whether one linear neuron per class can have the largest output for all its points.

    The condition is (w_y - w_k)'x + b_y - b_k >= 1 for every point and every other class k.
    """
    corners = _corners(X, y)
    rows = []
    for own, other in permutations(range(len(corners)), 2):
        points = corners[own]
        blocks = np.zeros((len(points), len(corners), points.shape[1]))
        blocks[:, own], blocks[:, other] = points, -points
        rows.append(blocks.reshape(len(points), -1))
    return _feasible(np.concatenate(rows))


def separable_from_the_rest(X: Array, y: Array) -> list[bool]:
    """Return, for each class, whether one linear neuron can separate it from all the others."""
    corners = _corners(X, y)
    return [
        _feasible(
            np.concatenate([points if k == own else -points for k, points in enumerate(corners)])
        )
        for own in range(len(corners))
    ]


def _corners(X: Array, y: Array) -> list[Array]:
    """Return the corners of each class's convex hull, and 1 for the bias.

    A linear function is extreme at the corners.
    """
    classes = [X[y == k] for k in np.unique(y)]
    corners = [points[ConvexHull(points).vertices] for points in classes]
    return [np.insert(points, points.shape[1], 1, axis=1) for points in corners]


def _feasible(rows: Array) -> bool:
    """Return whether there is a vector whose product with every row is at least 1."""
    solution = linprog(
        np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(rows)), bounds=(None, None)
    )
    return bool(solution.status == 0)
