"""Reproduce published bilinear MLPs: train the variants, measure and compare them.

The networks fold to one quadratic layer. The architecture and the training are those of M. Pearce
et al., "Bilinear MLPs enable weight-based mechanistic interpretability" (arXiv 2410.08417): its
Table 1, and its public code where the table is not specific. The accuracies and effective ranks
come from a public reproduction of its section 4, as means of five seeds. docs/guide/reproduce.md
explains how the strengths were chosen.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric import Network, load, save
from quadric.apps.paper._experiment import (
    Context,
    Finished,
    Headline,
    Outcome,
    Part,
    Table,
    Verdict,
    facts_of,
    legend_below,
    line_style,
    new_figure,
    run_parts,
    samples,
)
from quadric.apps.paper._statistics import Sample
from quadric.apps.paper.sweep import Measured, Store, Study, StudyTask
from quadric.certify import radius
from quadric.checks import Array
from quadric.convert import fold, fold_bilinear, truncation_scores
from quadric.datasets import ImageData
from quadric.explain import spectrum

CITATION = (
    "M. T. Pearce, T. Dooms, A. Rigg, J. M. Oramas, L. Sharkey: Bilinear MLPs enable weight-based "
    "mechanistic interpretability. ICLR 2025, arXiv 2410.08417. The compared figures are those of "
    "a public reproduction of its section 4, means of five seeds."
)
WIDTH = 256
SEEDS = (1, 5)  # quick, full
SHOWN = (0.5, 1.0, 1.5, 2.0, 3.0)  # of the distances, in the table
SETTINGS: dict[str, Any] = {
    "rate": 1e-3,
    "batch": 2048,
    "epochs": 100,
    "noise": 0.5,  # standard deviation of the noise that is added to pixels from 0 to 1
    "decay": 1.0,  # AdamW's weight decay
    "ranks": [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100],
    "distances": [round(0.1 * step, 1) for step in range(41)],
    "certified": 2000,
}
SECONDS_PER_IMAGE = 3.2e-5  # of training, on one core
SECONDS_TO_MEASURE = 40
# In words, and the factors of the settings `noise` and `decay`.
VARIANTS = {
    "none": ("neither", 0.0, 0.0),
    "noise": ("input noise", 1.0, 0.0),
    "decay": ("weight decay", 0.0, 1.0),
    "both": ("noise and decay", 1.0, 1.0),
}
TITLES = {variant: title for variant, (title, _, _) in VARIANTS.items()}
NAMES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
# The names of the classes, by data set; other classes are numbered.
CLASSES = {
    "fashion_mnist": (
        *("T-shirt", "trousers", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    )
}


# ---- training and measures -----------------------------------------------------------------------

ACCURACY = "accuracy"
# The effective rank divided by the width of the network, which it cannot exceed.
RANK, INPUT_RANK = "effective rank, hidden", "effective rank, pixels"
# The median certified radius divided by the distance between a black and a white image.
MEDIAN = "median certified radius"
truncated = "accuracy at rank {}".format  # with this number of eigenvectors per class
certified = "certified at {:g}".format  # the certified accuracy at this distance


def names(ranks: Sequence[int], distances: Sequence[float]) -> tuple[str, ...]:
    """Return the names of all measures, in the order of `measure`."""
    return (ACCURACY, RANK, INPUT_RANK, *map(truncated, ranks), MEDIAN, *map(certified, distances))


def measure(
    network: Network,
    data: ImageData,
    ranks: Sequence[int],
    distances: Sequence[float],
    n_certified: int,
) -> tuple[float, ...]:
    """Measure accuracy, effective ranks, truncated accuracies and certified radii.

    Radii are computed for `n_certified` test images, evenly spread over the test set, because the
    first half of MNIST's test set is easier than the second.
    """
    X, y = data.X_test / data.largest, data.y_test
    folded = fold(network)
    # a rank above the number of pixels keeps all eigenvectors
    kept = [min(rank, X.shape[1]) for rank in ranks]
    # the publication truncates the matrices as they are
    by_rank = dict(zip(*truncation_scores(folded, X, y, kept, centered=False), strict=True))
    rows = np.linspace(0, len(X) - 1, min(n_certified, len(X))).astype(int)
    radii = radius(folded, X[rows])
    right = radii.predicted == y[rows]
    embedding, product, head = (layer.arrays() for layer in network.layers)
    width = len(embedding["W"])
    # in the coordinates of the hidden layer, as in the publication
    hidden = spectrum(fold_bilinear(product["W"], product["U"], head["W"]))
    return (
        float((folded.logits(X).argmax(axis=1) == y).mean()),
        float(hidden.effective_rank.mean()) / width,
        float(spectrum(folded, centered=False).effective_rank.mean()) / width,
        *(float(by_rank[rank]) for rank in kept),
        median_radius(radii.radius[right], X.shape[1]),
        *(float((right & (radii.radius > distance)).mean()) for distance in distances),
    )


def median_radius(radii: Array, n_pixels: int) -> float:
    """Return the median radius as a share of the distance between a black and a white image."""
    longest = np.sqrt(n_pixels)
    return float(min(np.median(radii), longest) / longest) if len(radii) else 0.0


def train(task: StudyTask, settings: Mapping[str, Any], data: ImageData) -> Measured:
    """Train a network, measure it and return it."""
    from quadric.apps.paper._torch_networks import train_bilinear

    _, noise, decay = VARIANTS[task.kind]
    network, visited = train_bilinear(
        task, settings, data, noise=noise * settings["noise"], decay=decay * settings["decay"]
    )
    measured = measure(
        network, data, settings["ranks"], settings["distances"], settings["certified"]
    )
    return measured, visited, network


def path_of(store: Store, study: Study, data: ImageData, task: StudyTask) -> Path:
    """Return the file of a run; its name ends with a digest of the settings and the data."""
    key = hashlib.sha256(f"{study.key()} {data.checksum} {task.size} {task.hidden}".encode())
    name = f"{data.name}-{task.kind}-seed-{task.seed}-{key.hexdigest()[:8]}.quadric"
    return store.path.parent / "bilinear" / name


def keep(store: Store, study: Study, data: ImageData, task: StudyTask, network: Network) -> None:
    """Write the network of a run to its file."""
    path = path_of(store, study, data, task)
    path.parent.mkdir(exist_ok=True)
    save(network, path)


def study() -> Study:
    """Return the study with the present settings."""
    return Study("bilinear", names(SETTINGS["ranks"], SETTINGS["distances"]), train, dict(SETTINGS))


def parts(context: Context) -> list[Part]:
    """Return the runs of each data set; Fashion-MNIST is left out if it is not available."""
    seconds = SETTINGS["epochs"] * SECONDS_PER_IMAGE
    return [
        Part(
            study(),
            [
                StudyTask(size, WIDTH, variant, seed, size * seconds + SECONDS_TO_MEASURE)
                for size in [len(data.X_train)]
                for seed in context.all_seeds(SEEDS[context.full])
                for variant in VARIANTS
            ],
            data,
            (data.name,),
            partial(keep, context.store, study(), data) if context.store else None,
        )
        for data in (context.images, context.fashion)
        if data is not None
    ]


def run(context: Context) -> Outcome:
    """Train the variants on both data sets, and compare them with the published figures."""
    finished = run_parts(context, parts(context))
    cells, ranks, distances = cells_of(finished), SETTINGS["ranks"], SETTINGS["distances"]
    ticks = [rank for rank in (1, 2, 5, 10, 20, 50, 100) if rank in ranks]
    eigenvectors = eigenvector_figures(context, finished)
    close = [compare(cells, *place).is_close for place in _places(cells)]
    near, published = close.count(True), len(close) - close.count(None)
    return Outcome(
        "bilinear",
        "Bilinear MLPs",
        ("" if context.has_mnist else "This is not MNIST, so nothing is compared. ")
        + f"Networks with {context.data.X_train.shape[1]} inputs, {WIDTH} linear neurons, {WIDTH} "
        "products of two linear neurons and 10 outputs, without biases, which fold to one "
        f"quadratic layer. They are trained by AdamW for {SETTINGS['epochs']} epochs (learning "
        f"rate {SETTINGS['rate']:g} with a cosine schedule, {SETTINGS['batch']} images per step). "
        f"Input noise: Gaussian with standard deviation {SETTINGS['noise']:g}, added to pixels "
        f"from 0 to 1 in every step. Weight decay: {SETTINGS['decay']:g}. The compared figures are "
        "published without these strengths, which are those of the original's Table 1."
        + ("" if context.fashion else " Fashion-MNIST is left out."),
        [
            comparison_table(cells),
            truncation_table(cells, ranks),
            radii_table(cells, [distance for distance in SHOWN if distance in distances]),
        ],
        figures={
            "bilinear_truncation": _panels(
                cells,
                ranks,
                truncated,
                "test accuracy, %",
                xscale="log",
                xticks=ticks,
                xticklabels=ticks,
                xlabel="eigenvectors per class",
            ),
            "bilinear_certified": _panels(
                cells,
                distances,
                certified,
                "certified accuracy, %",
                every=5,
                xlim=(0, distances[-1]),
                ylim=(0, 100),
                xlabel="radius, pixels from 0 to 1",
            ),
            **{f"bilinear_eigenvectors_{name}": drawn for name, drawn in eigenvectors.items()},
        },
        facts=facts_of(finished) | {"data": ", ".join(part.group[0] for part, _ in finished)},
        captions={
            "bilinear_truncation": "Test accuracy if each class keeps only the eigenvectors whose "
            "eigenvalues are largest in magnitude.",
            "bilinear_certified": "Share of test images that are classified correctly and whose "
            "class provably cannot change within the radius.",
            **{
                f"bilinear_eigenvectors_{name}": f"{NAMES.get(name, name)}, seed "
                f"{context.first_seed}: the eigenvector with the largest eigenvalue of each class. "
                "An image that resembles it, or its negative, raises the score of the class."
                for name in eigenvectors
            },
        },
        findings=findings(cells, ranks),
        citation=CITATION,
        headline=Headline(
            f"bilinear: within {TOLERANCE} points",
            f"{published} accuracies",
            f"{near} of {published}",
            Verdict.of(near == published, partly=near, judged=published),
        ),
        descriptions={
            "bilinear_truncation": "Rising curves, one for each variant. With the fewest "
            f"eigenvectors, the accuracies are {_listed(cells, truncated(ranks[0]))}; with the "
            f"most, {_listed(cells, truncated(ranks[-1]))}.",
            "bilinear_certified": "Falling curves, one for each variant. At a radius of 0, the "
            f"certified accuracies are {_listed(cells, certified(distances[0]))}; at the largest, "
            f"{_listed(cells, certified(distances[-1]))}.",
        },
    )


def _listed(cells: "Cells", measure: str) -> str:
    """Return a measure of all variants and data sets in words."""
    return ", ".join(
        f"{cells[name, variant, measure].mean:.1f} % ({NAMES.get(name, name)}, {TITLES[variant]})"
        for name, variant in _places(cells)
    )


# ---- comparison with the published figures -------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """The published mean accuracy in percent, its standard deviation and the effective rank."""

    accuracy: float | None = None
    std: float | None = None
    rank: float | None = None


PUBLISHED = {
    ("mnist", "none"): Published(97.49, 0.06, 38.5),
    ("mnist", "noise"): Published(98.34, 0.04, 82.2),
    ("mnist", "decay"): Published(97.49, 0.05, 15.5),
    ("mnist", "both"): Published(98.01, 0.04, 26.0),
    ("fashion_mnist", "none"): Published(88.50),
    ("fashion_mnist", "noise"): Published(86.80),
    ("fashion_mnist", "decay"): Published(87.31),
    ("fashion_mnist", "both"): Published(86.04),
}
TOLERANCE = 0.3  # percentage points between a published mean and ours that still agree

Key = tuple[str, str, str]  # data set, variant, measure
Cells = Mapping[Key, Sample]


@dataclass(frozen=True)
class PublishedComparison:
    """The published figures of a variant beside ours."""

    published: Published
    ours: Sample
    rank: Sample

    @property
    def difference(self) -> float | None:
        """Our mean accuracy minus the published one, in percentage points."""
        if self.published.accuracy is None:
            return None
        # without the rounding error that would print equal means as -0.00
        return round(self.ours.mean - self.published.accuracy, 9) + 0.0

    @property
    def is_close(self) -> bool | None:
        """Whether the means differ by at most `TOLERANCE`, as they are printed."""
        return None if self.difference is None else round(abs(self.difference), 2) <= TOLERANCE

    @property
    def rank_difference(self) -> float | None:
        """Our mean effective rank minus the published one."""
        return None if self.published.rank is None else self.rank.mean - self.published.rank


def cells_of(finished: Finished) -> dict[Key, Sample]:
    """Summarize the runs by data set, variant and measure: percentages, effective ranks and radii.

    A measure is given in hundredths of its unit; a rank has the unit 1 / width, and a radius that
    of the distance between a black and a white image.
    """
    pixels = {part.data.name: part.data.X_train.shape[1] for part, _ in finished if part.data}
    cells = {}
    for (name, _, width, variant, measure), sample in samples(finished).items():
        units = {RANK: width, INPUT_RANK: width, MEDIAN: pixels[name] ** 0.5}
        cells[name, variant, measure] = sample.times(units.get(measure, 100) / 100)
    return cells


def compare(cells: Cells, name: str, variant: str) -> PublishedComparison:
    """Return the published figures of a variant beside ours."""
    return PublishedComparison(
        PUBLISHED.get((name, variant), Published()),
        cells[name, variant, ACCURACY],
        cells[name, variant, RANK],
    )


def data_names(cells: Cells) -> list[str]:
    """Return the names of the data sets, in the order of the cells."""
    return list(dict.fromkeys(name for name, _, _ in cells))


def findings(cells: Cells, ranks: Sequence[int]) -> list[str]:
    """Return sentences about accuracies, ranks, truncation and robustness of each data set."""
    return [
        f"{NAMES.get(name, name)}: {text}"
        for name in data_names(cells)
        for text in _about(cells, name, ranks)
    ]


def _about(cells: Cells, name: str, ranks: Sequence[int]) -> Iterator[str]:
    comparisons = {variant: compare(cells, name, variant) for variant in VARIANTS}
    if all(one.difference is not None for one in comparisons.values()):
        yield _accuracies(comparisons)
    if all(one.rank_difference is not None for one in comparisons.values()):
        yield _ranks(comparisons)
    yield _truncation(cells, name, ranks)
    yield _radii(cells, name)


def _accuracies(comparisons: Mapping[str, PublishedComparison]) -> str:
    differences = {variant: one.difference or 0.0 for variant, one in comparisons.items()}
    largest = max(differences, key=lambda variant: abs(differences[variant]))
    close = sum(bool(one.is_close) for one in comparisons.values())
    return (
        f"{close} of {len(comparisons)} mean accuracies are within {TOLERANCE} points of the "
        f"published ones. The largest difference is {differences[largest]:+.2f} points "
        f"({TITLES[largest]})."
    )


def _ranks(comparisons: Mapping[str, PublishedComparison]) -> str:
    ours = sorted(comparisons, key=lambda variant: comparisons[variant].rank.mean)
    published = sorted(comparisons, key=lambda variant: comparisons[variant].published.rank or 0.0)
    return (
        "effective ranks, with the published ones in parentheses, are: "
        + ", ".join(
            f"{TITLES[variant]} {comparisons[variant].rank.mean:.1f} "
            f"({comparisons[variant].published.rank:.1f})"
            for variant in ours
        )
        + f". The order of the variants is {'the same' if ours == published else 'different'}."
    )


def _truncation(cells: Cells, name: str, ranks: Sequence[int]) -> str:
    """Say how many eigenvectors are enough for an accuracy that is at most one point lower."""
    enough = []
    for variant, title in TITLES.items():
        least = cells[name, variant, ACCURACY].mean - 1.0
        fits = (rank for rank in ranks if cells[name, variant, truncated(rank)].mean >= least)
        enough.append(f"{title} {next(fits, f'more than {ranks[-1]}')}")
    return (
        "of the numbers of eigenvectors per class that were tried, the smallest one that costs at "
        f"most one point of accuracy is: {', '.join(enough)}."
    )


def _radii(cells: Cells, name: str) -> str:
    start, *others = (cells[name, variant, MEDIAN].mean for variant in VARIANTS)
    changes = ", ".join(
        f"{radius:.3f} with {title}" + (f" ({radius / start:.2f} times)" if start > 0 else "")
        for radius, title in zip(others, list(TITLES.values())[1:], strict=True)
    )
    return (
        f"the median certified radius is {start:.3f} with neither input noise nor weight decay, "
        f"and {changes}."
    )


# ---- tables and figures --------------------------------------------------------------------------


def comparison_table(cells: Cells) -> Table:
    """Return accuracies and effective ranks beside the published ones."""
    compared = {place: compare(cells, *place) for place in _places(cells)}
    return Table(
        "bilinear",
        "Published figures and ours",
        (
            *("data", "variant", "published, %", "published std"),
            *("ours, %", "std", "runs", "difference", f"within {TOLERANCE} points"),
            *("published rank", "our rank", "difference of ranks"),
        ),
        [
            (
                *(NAMES.get(name, name), TITLES[variant]),
                *(one.published.accuracy, one.published.std),
                *(one.ours.mean, one.ours.std, one.ours.runs, one.difference, one.is_close),
                *(one.published.rank, one.rank.mean, one.rank_difference),
            )
            for (name, variant), one in compared.items()
        ],
        "Test accuracy after the last epoch. The rank is the effective rank (Σ|λ|)² / Σλ² of the "
        "eigenvalues of a class in the coordinates of the hidden layer, averaged over the classes.",
        {
            **dict.fromkeys(("published, %", "published std", "ours, %", "std"), ".2f"),
            "difference": "+.2f",
            **dict.fromkeys(("published rank", "our rank"), ".1f"),
            "difference of ranks": "+.1f",
        },
    )


def truncation_table(cells: Cells, ranks: Sequence[int]) -> Table:
    """Return the accuracies of networks that keep a few eigenvectors per class."""
    columns = [f"rank {rank}" for rank in ranks]
    return Table(
        "bilinear_truncation",
        "Accuracy with a few eigenvectors per class",
        ("data", "variant", "effective rank", *columns, "all"),
        [
            (
                *(NAMES.get(name, name), TITLES[variant], cells[name, variant, INPUT_RANK].mean),
                *(cells[name, variant, truncated(rank)].mean for rank in ranks),
                cells[name, variant, ACCURACY].mean,
            )
            for name, variant in _places(cells)
        ],
        "In percent. The eigenvectors are those of the folded layer, in the space of the pixels. "
        "Each class keeps those with the largest magnitudes of its eigenvalues. The effective rank "
        "is that of the same eigenvalues.",
        {"effective rank": ".1f", **dict.fromkeys([*columns, "all"], ".2f")},
    )


def radii_table(cells: Cells, distances: Sequence[float]) -> Table:
    """Return the certified accuracies."""
    columns = [f"certified at {distance:g}, %" for distance in distances]
    return Table(
        "bilinear_radii",
        "Certified radii",
        ("data", "variant", "median radius", "std of the median", *columns),
        [
            (
                *(NAMES.get(name, name), TITLES[variant]),
                *(cells[name, variant, MEDIAN].mean, cells[name, variant, MEDIAN].std),
                *(cells[name, variant, certified(distance)].mean for distance in distances),
            )
            for name, variant in _places(cells)
        ],
        f"From {SETTINGS['certified']} test images of each data set. The median radius is that of "
        "the correctly classified ones: no image that is closer to one of them, in Euclidean "
        "distance with pixels from 0 to 1, has another class. Certified at r: the share of images "
        "that are classified correctly and have a radius above r.",
        {"median radius": ".3f", "std of the median": ".3f", **dict.fromkeys(columns, ".1f")},
    )


def _places(cells: Cells) -> list[tuple[str, str]]:
    """Return the data set and the variant of each row."""
    return [(name, variant) for name in data_names(cells) for variant in VARIANTS]


def _panels(
    cells: Cells,
    places: Sequence[Any],
    measure: Callable[[Any], str],
    label: str,
    every: int = 1,
    **options: Any,
) -> Figure:
    """Draw one panel per data set with a line per variant, and a common legend.

    `measure` names the measure at a place on the horizontal axis, whose every `every`-th place has
    a marker. The options are those of the axes.
    """
    names = data_names(cells)
    width = 4.6 * len(names) if len(names) > 1 else 6.0
    figure, axes = new_figure(width, 3.7, 1, len(names), grid="both", squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        for k, (variant, title) in enumerate(TITLES.items()):
            ax.plot(
                places,
                [cells[name, variant, measure(place)].mean for place in places],
                **line_style(k, linewidth=1.4, label=title, markevery=every),
            )
        ax.set_title(NAMES.get(name, name), fontsize=10)
        ax.set(**options)
        ax.minorticks_off()
    axes[0, 0].set_ylabel(label)
    legend_below(figure, axes[0, 0], 4)
    return figure


def eigenvector_figures(context: Context, finished: Finished) -> dict[str, Figure]:
    """Draw the eigenvectors of the networks of the first seed, by data set.

    Networks whose files do not exist are left out.
    """
    figures = {}
    for part, _ in finished:
        assert part.data is not None
        assert context.store is not None
        paths = {
            task.kind: path_of(context.store, part.study, part.data, task)
            for task in part.tasks
            if task.seed == context.first_seed
        }
        networks = {kind: load(path) for kind, path in paths.items() if path.exists()}
        if networks:
            figures[part.data.name] = eigenvector_figure(networks, part.data)
    return figures


def eigenvector_figure(networks: Mapping[str, Network], data: ImageData) -> Figure:
    """Draw the eigenvector with the largest positive eigenvalue of every class, by variant."""
    strongest = {variant: positive_images(network, data) for variant, network in networks.items()}
    count = len(next(iter(strongest.values())))
    size = 0.92 * count + 1.0, 0.98 * len(strongest) + 0.25
    figure, axes = new_figure(*size, len(strongest), count, squeeze=False)
    for row, (variant, images) in zip(axes, strongest.items(), strict=True):
        for ax, image in zip(row, images, strict=True):
            limit = float(np.abs(image).max()) or 1.0
            ax.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        row[0].set_ylabel(variant, fontsize=8)
    for ax, name in zip(axes[0], CLASSES.get(data.name, range(count)), strict=True):
        ax.set_title(str(name), fontsize=8)
    return figure


def positive_images(network: Network, data: ImageData) -> list[Array]:
    """Return the eigenvector with the largest eigenvalue of every class, as images.

    The sign of an eigenvector is arbitrary. It is chosen so that the product with the mean image of
    the class is positive.
    """
    images = []
    for label, pairs in enumerate(spectrum(network, centered=False).positive):
        mean = data.X_train[data.y_train == label].mean(axis=0)
        vector = pairs.eigenvectors[0] if len(pairs.eigenvectors) else np.zeros(len(mean))
        images.append((vector if vector @ mean >= 0 else -vector).reshape(data.shape))
    return images
