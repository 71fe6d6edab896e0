"""The printed errors on the paper's own data, to see which of them can only be misprints.

Each printed form is trained as in the paper, next to the corrected form, from the same initial
values and with the same samples in the same order. If the printed form does not reach the paper's
result and the corrected form does, then the error is a misprint: the authors ran something else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric import Network, datasets
from quadric.apps.paper import _clusters
from quadric.apps.paper._experiment import (
    ENOUGH,
    MODELS,
    NEEDS_FULL,
    Claim,
    Context,
    Outcome,
    Part,
    Samples,
    Table,
    Verdict,
    headline,
    new_figure,
    run_parts,
    samples,
)
from quadric.apps.paper._mnist_claims import paper_table
from quadric.apps.paper._statistics import Sample, contrast
from quadric.apps.paper.sweep import Measured, Study, StudyTask
from quadric.checks import Array
from quadric.plotting import color_of
from quadric.reference import (
    OTHER_UPDATES,
    PRINTED_UPDATES,
    Parameters,
    sigma,
    train_qnn,
    train_rpqnn,
    update_qnn,
    update_rpqnn,
)

RATE, SCALE = 0.01, 0.006  # of the MNIST networks
XOR_RATE, XOR_EPOCHS, XOR_SEEDS = 0.1, 200, 50
SIGN = "section II: the sign of the w update"
FITTED_SCALE = (
    "The scale of the initial values was fitted to the paper's table with the corrected form, "
    "which gives that form an advantage."
)
LIMIT = 4.0  # standard errors from the paper's mean that rule out a form

# error, data, and accuracies: paper, corrected, as printed; z of the last two
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Version:
    """A form of a training algorithm: printed, corrected, or a variant of ours.

    Attributes
    ----------
    error : str
    model : {'qnn', 'rpqnn'}
    update : callable
        As `quadric.reference.update_qnn` or `update_rpqnn`.
    upper : bool
        Whether Q starts as an upper triangular matrix with whole coefficients.
    """

    error: str
    model: str
    update: Callable[..., None]
    upper: bool = False


CORRECTED = {"qnn": "corrected QNN", "rpqnn": "corrected RPQNN"}
PRINTED = (
    Version("Algorithm 2: b and c swapped", "rpqnn", PRINTED_UPDATES["b and c swapped"]),
    Version(
        "section V: upper triangular Q", "qnn", PRINTED_UPDATES["upper triangular Q"], upper=True
    ),
    Version("M(a) = aa', the derivative as defined", "qnn", PRINTED_UPDATES["aa'"]),
)
# not printed: M(a) with twice its diagonal
VARIANT = Version("M(a) = 2aa', the diagonal not halved", "qnn", OTHER_UPDATES["2aa'"])
VERSIONS = {
    CORRECTED["qnn"]: Version(CORRECTED["qnn"], "qnn", update_qnn),
    CORRECTED["rpqnn"]: Version(CORRECTED["rpqnn"], "rpqnn", update_rpqnn),
    **{version.error: version for version in (*PRINTED, VARIANT)},
}
# the statements that print these forms
CLAIMS = {
    SIGN: "clusters-printed-updates",
    PRINTED[0].error: "algorithm-2-trained",
    PRINTED[1].error: "triangular-storage-trained",
    PRINTED[2].error: "matrix-derivative-trained",
}
CELLS = ((600, 10), (600, 15), (1200, 10))  # images and hidden neurons
EPOCHS = 5
MEASURE = f"after {EPOCHS} epochs"


@np.errstate(over="ignore")  # exp overflows in the plain sigmoid if z is very negative
def train_signs(
    F: Array, Y: Array, start: Array, rate: float, epochs: int, rng: np.random.Generator
) -> Array:
    """Train quadratic neurons with both signs of the w update, one sample per step.

    Parameters
    ----------
    F : array of shape (seeds, samples, features)
        See `features`.
    Y : array of shape (seeds, samples, neurons)
    start : array of shape (seeds, neurons, features)
        Initial values of b, w and the independent entries of Q.
    rate : float
    epochs : int
    rng : numpy.random.Generator
        Draws the order of the samples in each epoch.

    Returns
    -------
    array of shape (seeds, 2, neurons, features)
        Trained as printed, and corrected.
    """
    signs = np.ones((2, 1, F.shape[2]))
    signs[0, :, 1:3] = -1  # w, as printed
    theta = np.repeat(start[:, None], 2, axis=1)
    for _ in range(epochs):
        order = rng.permutation(F.shape[1])
        for f, y in zip(F[:, order].swapaxes(0, 1), Y[:, order].swapaxes(0, 1), strict=True):
            delta = sigma((theta @ f[:, None, :, None])[..., 0]) - y[:, None]
            theta -= delta[..., None] * (rate * signs * f[:, None, None])
    return theta


def features(X: Array) -> Array:
    """Return 1, x1, x2, x1², 2 x1 x2, x2²: the derivatives of z by b, w and Q's entries."""
    x1, x2 = X.T
    return np.stack([np.ones(len(X)), x1, x2, x1**2, 2 * x1 * x2, x2**2], axis=1)


def train_clusters(seeds: int, epochs: int) -> Array:
    """Return accuracies in percent, shape (seeds, 2 versions, by thresholds and by argmax)."""
    data = [_clusters.data(seed) for seed in range(seeds)]
    rng = np.random.default_rng(0)
    theta = train_signs(
        np.stack([features(X) for (X, _), _ in data]),
        np.stack([np.eye(6)[y] for (_, y), _ in data]),
        rng.normal(0, 0.005, (seeds, 6, 6)),
        _clusters.RATE,
        epochs,
        rng,
    )
    tests = np.stack([features(X) for _, (X, _) in data])
    labels = np.stack([y for _, (_, y) in data])[:, None]
    z = tests[:, None] @ theta.swapaxes(2, 3)  # (seeds, 2 versions, samples, neurons)
    by_thresholds = ((z > 0) == np.eye(6, dtype=bool)[labels]).all(axis=3)
    return 100 * np.stack([by_thresholds, z.argmax(axis=3) == labels], axis=3).mean(axis=2)


def train_xor(negative: float = 0.0) -> Array:
    """Return the number of seeds that solve XOR from a random Q: as printed, and corrected.

    `negative` is the label of the first class: 0, which the loss needs, or the printed -1.
    """
    X, y = datasets.xor()
    rng = np.random.default_rng(0)
    start = np.zeros((XOR_SEEDS, 1, 6))
    start[:, :, 3:] = rng.normal(size=(XOR_SEEDS, 1, 3))
    theta = train_signs(
        np.repeat(features(X)[None], XOR_SEEDS, axis=0),
        np.repeat(np.where(y == 1, 1.0, negative)[None, :, None], XOR_SEEDS, axis=0),
        start,
        XOR_RATE,
        XOR_EPOCHS,
        rng,
    )
    z = (theta @ features(X).T)[:, :, 0]  # (seeds, 2 versions, 4 points)
    return np.asarray(((z > 0) == (y == 1)).all(axis=2).sum(axis=0))


def train_network(
    task: StudyTask, settings: Mapping[str, Any], data: datasets.ImageData
) -> Measured:
    """Train one network of the MNIST table with the reference, and return its test accuracy.

    The training set is shuffled once, and the first images of this order are used in every epoch.
    """
    version, rng = VERSIONS[task.kind], np.random.default_rng(task.seed)
    rows = rng.permutation(len(data.X_train))[: task.size]
    X, X_test = (images / data.largest - 0.5 for images in (data.X_train[rows], data.X_test))
    Y = np.eye(int(data.y_train.max()) + 1)[data.y_train[rows]]
    net = Network.create(
        X.shape[1],
        [("linear", task.hidden, "logistic"), (MODELS[version.model], Y.shape[1], "logistic")],
        init="normal",
        scale=settings["scale"],
        rng=rng,
    )
    layers = [_parameters(layer) for layer in net.layers]
    if version.upper:
        layers[1]["Q"] = np.triu(layers[1]["Q"]) + np.triu(layers[1]["Q"], 1)
    train = train_qnn if version.model == "qnn" else train_rpqnn
    first, last = train(
        X, Y, layers, settings["rate"], epochs=settings["epochs"], update=version.update
    )
    predicted = _outputs(last, sigma(X_test @ first["W"].T + first["b"])).argmax(axis=1)
    return (float((predicted == data.y_test).mean()),), settings["epochs"] * task.size


def _parameters(layer: Any) -> Parameters:
    names = (name.replace("packed", "Q") for name in layer.arrays())
    return {name: np.array(getattr(layer, name)) for name in names}


def _outputs(layer: Parameters, a: Array) -> Array:
    """Return z of the last layer for many samples."""
    z = a @ layer["W"].T + layer["b"]
    if "Q" in layer:
        return z + np.einsum("si,kij,sj->sk", a, layer["Q"], a, optimize=True)
    return z * (a @ layer["U"].T + layer["c"])


def parts(context: Context) -> list[Part]:
    """Return the runs of the MNIST networks, every version with the same seeds."""
    return [
        Part(
            Study(
                "ablation",
                (MEASURE,),
                train_network,
                {"rate": RATE, "scale": SCALE, "epochs": EPOCHS},
            ),
            [
                StudyTask(size, hidden, kind, seed, size * EPOCHS * 3e-4)
                for size, hidden in (CELLS if context.full else CELLS[:1])
                for kind in VERSIONS
                for seed in context.all_seeds(60 if context.full else 3)
            ],
            context.data,
        )
    ]


def run(context: Context) -> Outcome:
    """Train with each printed error; a full run has more cells, seeds and epochs."""
    data = context.data.name
    seeds, epochs = (5, 100) if context.full else (3, 5)
    context.progress(0, 1, "ablation: the sign of w")
    rows = sign_rows(train_clusters(seeds, epochs), train_xor(), epochs)
    cells = samples(run_parts(context, parts(context)))
    for version in (*PRINTED, VARIANT):
        rows += cell_rows(version, cells, data, paper_table() if context.has_mnist else {})
    runs = min(sample.runs for sample in cells.values())
    return outcome(rows, data, runs, epochs, full=context.full)


def sign_rows(scores: Array, xor: Array, epochs: int) -> list[Row]:
    """Return the rows of the sign of the w update: six clusters in two measures, and XOR."""
    clusters = [
        (SIGN, f"six clusters by {measure}, {epochs} epochs", 99.97, *means, None, None)
        for measure, means in zip(
            ("thresholds", "argmax"), scores[:, ::-1].mean(axis=0).T.tolist(), strict=True
        )
    ]
    solved = (100 * xor[::-1] / XOR_SEEDS).tolist()  # corrected, as printed
    return [*clusters, (SIGN, f"XOR solved, {XOR_SEEDS} seeds", 100.0, *solved, None, None)]


def cell_rows(
    version: Version, cells: Samples, data: str, paper: Mapping[Any, Sample]
) -> list[Row]:
    """Return a row for each cell of the MNIST table, with the corrected and the printed form."""
    return [
        cell_row(
            version.error,
            f"{data}, {size} images, {EPOCHS} epochs, {hidden} hidden neurons",
            paper.get((size, EPOCHS, hidden, version.model)),
            cells[size, hidden, CORRECTED[version.model], MEASURE],
            cells[size, hidden, version.error, MEASURE],
        )
        for size, hidden in dict.fromkeys(key[:2] for key in cells)
    ]


def cell_row(error: str, data: str, paper: Sample | None, *ours: Sample) -> Row:
    """Return a row of a cell of the MNIST table; z is in standard errors of the difference.

    `ours` are the samples of the corrected and the printed form.
    """
    z = [paper and contrast((1, sample), (-1, paper)).t for sample in ours]
    return (error, data, paper and paper.mean, *(sample.mean for sample in ours), *z)


def outcome(rows: Sequence[Row], data: str, seeds: int, epochs: int, *, full: bool) -> Outcome:
    """Judge whether the authors can have trained with each error."""
    by_error = {error: [row for row in rows if row[0] == error] for error in CLAIMS}
    printed, variants = (
        [row for row in rows if (row[0] == VARIANT.error) == other] for other in (False, True)
    )
    claims = [
        _claim(error, mine, "" if error == SIGN and full else _missing(data, seeds, full))
        for error, mine in by_error.items()
        if mine
    ]
    _, cell, paper, corrected, as_printed, *_ = by_error[PRINTED[0].error][0]
    judged = [claim.verdict for claim in claims if claim.verdict is not Verdict.UNKNOWN]
    decided = (
        f"Of {len(judged)} printed forms that were judged, {judged.count(Verdict.FAILS)} cannot "
        "give the paper's numbers."
    )
    return Outcome(
        "ablation",
        "The printed errors on the paper's own data",
        f"Six clusters ({epochs} epochs), XOR, and cells of the MNIST table with {seeds} seeds "
        f"({data}), trained with the reference. The MNIST training set is shuffled once per run, "
        f"and the initial values are drawn from N(0, {SCALE}²). An error that cannot give the "
        f"paper's result is a misprint: a cell differs by more than {LIMIT:g} standard errors, or "
        "the six clusters by more than 10 percentage points. It can give the result if all cells "
        "are within 2 standard errors. Anything between is not decided. Errors are judged in full "
        f"runs only. {FITTED_SCALE}",
        [
            _table("ablation", "the printed form", "error", "as printed", printed),
            _table(
                "variant",
                "a variant of ours, which is not printed",
                "form",
                "the variant",
                variants,
            ),
        ],
        claims,
        {"ablation": draw(rows)},
        {"seeds": seeds, "epochs": epochs, "data": data},
        {
            "ablation": "Mean test accuracy with each printed error, and with a variant that is "
            "not printed, next to the corrected form and the paper's value."
        },
        [
            f"Algorithm 2 as printed, with the updates of b and c swapped, reaches "
            f"{as_printed:.1f} % ({cell}), and corrected {corrected:.1f} %"
            + ("." if paper is None else f"; the paper prints {paper:.1f} %."),
            *([decided] if judged else []),
        ],
        headline=headline(
            claims,
            CLAIMS[PRINTED[0].error],
            "ablation: Algorithm 2 as printed",
            "-" if paper is None else f"{paper:.1f} %",
            f"{as_printed:.1f} %",
        ),
        descriptions={
            "ablation": "A line for each printed error and data set, with the accuracy to the "
            "right. The values as printed (crosses) and corrected (dots) beside the paper's: "
            + "; ".join(f"{row[0]}, {row[1]}: {row[4]:.1f} and {row[3]:.1f} %" for row in rows)
            + "."
        },
    )


def _table(name: str, title: str, heading: str, form: str, rows: Sequence[Row]) -> Table:
    """Return a table of rows whose last form is called `form`."""
    accuracies, z = ("paper", "corrected", form), ("z, corrected", f"z, {form}")
    return Table(
        name,
        f"Mean test accuracy in percent: the paper, the corrected form and {title}",
        (heading, "data", *accuracies, *z),
        rows,
        "Both forms start from the same values and see the same samples in the same order. "
        "z is the difference from the paper's mean in standard errors.",
        dict.fromkeys(accuracies, ".2f") | dict.fromkeys(z, "+.1f"),
    )


def _missing(data: str, seeds: int, full: bool) -> str:
    """Return what a run lacks to judge the cells of the MNIST table; empty if it lacks nothing."""
    if not full:
        return NEEDS_FULL
    if data != "mnist":
        return f"{NEEDS_FULL} and MNIST"
    return "" if seeds >= ENOUGH else f"not judged: needs at least {ENOUGH} seeds"


def _claim(error: str, rows: Sequence[Row], missing: str) -> Claim:
    """Judge one error by its rows, unless something is missing."""
    judged = Verdict.UNKNOWN if missing else verdict(rows)
    why = missing or "the differences from the paper do not decide it"
    return Claim(
        CLAIMS[error],
        "the equations as printed, without results for other forms",
        "; ".join(
            f"{name}: {printed:.1f} % as printed, {corrected:.1f} % corrected"
            + (f", paper {paper:g} %" if paper is not None else "")
            for _, name, paper, corrected, printed, *_ in rows
        )
        + (f"; {why}" if judged is Verdict.UNKNOWN else ""),
        judged,
        Verdict.UNKNOWN,
        f"both forms from the same initial values; fails beyond {LIMIT:g} standard errors "
        f"or 10 points, holds within 2 standard errors. {FITTED_SCALE}",
    )


def verdict(rows: Sequence[Row]) -> Verdict:
    """Judge whether the printed form gives the paper's numbers; UNKNOWN if that is undecided."""
    largest = max(
        abs(z) if z is not None else LIMIT * abs(printed - paper) / 10
        for _, _, paper, _, printed, _, z in rows
    )
    return Verdict.of(largest <= 2, judged=largest <= 2 or largest > LIMIT)


def draw(rows: Sequence[Row]) -> Figure:
    """Draw the accuracies of all rows: the paper, corrected, and as printed or a variant."""
    figure, ax = new_figure(9, 0.34 * len(rows) + 1.2, grid="x")
    places = np.arange(len(rows))[::-1]
    is_variant = np.array([row[0] == VARIANT.error for row in rows])
    for column, label, marker, k, size, hidden in (
        (2, "paper", "|", 2, 260, False),
        (3, "corrected", "o", 0, 42, False),
        (4, "as printed", "X", 1, 42, is_variant),
        (4, "variant, not printed", "D", 3, 42, ~is_variant),
    ):
        values = [np.nan if row[column] is None else row[column] for row in rows]
        ax.scatter(
            np.where(hidden, np.nan, values),
            places,
            marker=marker,
            s=size,
            color=color_of(k),
            label=label,
        )
    ax.set_yticks(places, [f"{row[0]}\n{row[1]}" for row in rows], fontsize=7)
    ax.set(xlabel="test accuracy, %", xlim=(0, 102))
    ax.legend(frameon=False, loc="lower left")
    return figure
