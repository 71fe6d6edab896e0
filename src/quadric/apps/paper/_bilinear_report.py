"""Bilinear MLPs: the published figures beside ours, as tables, figures and sentences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric import Network
from quadric.apps.paper._comparison import Part, samples
from quadric.apps.paper._experiment import Table, legend_below, line_style, new_figure
from quadric.apps.paper._statistics import Sample
from quadric.apps.paper.sweep import Run
from quadric.checks import Array
from quadric.datasets import ImageData
from quadric.explain import spectrum

# Whether noise is added, and whether weights decay.
VARIANTS = {
    "none": (False, False),
    "noise": (True, False),
    "decay": (False, True),
    "both": (True, True),
}
TITLES = {
    "none": "neither",
    "noise": "input noise",
    "decay": "weight decay",
    "both": "noise and decay",
}

NAMES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}


@dataclass(frozen=True)
class Published:
    """The published mean accuracy in percent, its standard deviation and the effective rank."""

    accuracy: float
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


ACCURACY = "accuracy"
# The effective rank divided by the width of the network, which it cannot exceed.
RANK, INPUT_RANK = "effective rank, hidden", "effective rank, pixels"
# The median certified radius divided by the distance between a black and a white image.
MEDIAN = "median certified radius"


def truncated(rank: int) -> str:
    """Return the name of the accuracy with this number of eigenvectors per class."""
    return f"accuracy at rank {rank}"


def certified(distance: float) -> str:
    """Return the name of the certified accuracy at this distance."""
    return f"certified at {distance:g}"


def names(ranks: Sequence[int], distances: Sequence[float]) -> tuple[str, ...]:
    """Return the names of all measures, in the order of `measure`."""
    return (
        *(ACCURACY, RANK, INPUT_RANK),
        *map(truncated, ranks),
        MEDIAN,
        *map(certified, distances),
    )


TOLERANCE = 0.3  # percentage points between a published mean and ours that still agree

Key = tuple[str, str, str]  # data set, variant, measure


@dataclass(frozen=True)
class PublishedComparison:
    """The published figures of a variant beside ours; numbers that are not known are None."""

    published: Published | None
    ours: Sample
    rank: Sample

    @property
    def difference(self) -> float | None:
        """Our mean accuracy minus the published one, in percentage points."""
        if self.published is None:
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
        if self.published is None or self.published.rank is None:
            return None
        return self.rank.mean - self.published.rank


def cells_of(parts: Sequence[Part], runs: Sequence[Sequence[Run]]) -> dict[Key, Sample]:
    """Summarize the runs: percentages, effective ranks and radii."""
    images = {part.group[0]: part.data for part in parts}
    return {
        (name, variant, measure): _times(sample, _unit(measure, width, images[name]))
        for (name, _, width, variant, measure), sample in samples(parts, runs).items()
    }


def compare(cells: Mapping[Key, Sample], name: str, variant: str) -> PublishedComparison:
    """Return the published figures of a variant beside ours."""
    return PublishedComparison(
        PUBLISHED.get((name, variant)),
        cells[name, variant, ACCURACY],
        cells[name, variant, RANK],
    )


def data_names(cells: Mapping[Key, Any]) -> list[str]:
    """Return the names of the data sets, in the order of the cells."""
    return list(dict.fromkeys(name for name, _, _ in cells))


def _unit(measure: str, width: int, data: ImageData | None) -> float:
    """Return the factor from hundredths of a measure to the unit in which it is shown."""
    assert data is not None
    if measure in (RANK, INPUT_RANK):
        return width / 100
    if measure == MEDIAN:
        return float(data.X_train.shape[1] ** 0.5) / 100
    return 1.0


def _times(sample: Sample, factor: float) -> Sample:
    std = None if sample.std is None else sample.std * factor
    return Sample(
        sample.mean * factor, std, sample.best * factor, sample.worst * factor, sample.runs
    )


def findings(cells: Mapping[Key, Sample], ranks: Sequence[int]) -> list[str]:
    """Return sentences about accuracies, ranks, truncation and robustness of each data set."""
    sentences: list[str] = []
    for name in data_names(cells):
        title = NAMES.get(name, name)
        sentences += [f"{title}: {text}" for text in _about(cells, name, ranks)]
    return sentences


def _about(cells: Mapping[Key, Sample], name: str, ranks: Sequence[int]) -> Iterator[str]:
    comparisons = {variant: compare(cells, name, variant) for variant in VARIANTS}
    if all(comparison.published is not None for comparison in comparisons.values()):
        yield _accuracies(comparisons)
    if all(comparison.rank_difference is not None for comparison in comparisons.values()):
        yield _ranks(comparisons)
    yield _truncation(cells, name, ranks)
    yield _radii(cells, name)


def _accuracies(comparisons: Mapping[str, PublishedComparison]) -> str:
    differences = {
        variant: comparison.difference or 0.0 for variant, comparison in comparisons.items()
    }
    largest = max(differences, key=lambda variant: abs(differences[variant]))
    close = sum(bool(comparison.is_close) for comparison in comparisons.values())
    return (
        f"{close} of {len(comparisons)} mean accuracies are within {TOLERANCE} points of the "
        f"published ones. The largest difference is {differences[largest]:+.2f} points "
        f"({TITLES[largest]})."
    )


def _ranks(comparisons: Mapping[str, PublishedComparison]) -> str:
    def order(rank: Mapping[str, float]) -> list[str]:
        return sorted(rank, key=lambda variant: rank[variant])

    ours = {variant: comparison.rank.mean for variant, comparison in comparisons.items()}
    published = {
        variant: comparison.published.rank
        for variant, comparison in comparisons.items()
        if comparison.published is not None and comparison.published.rank is not None
    }
    same = order(ours) == order(published)
    listed = ", ".join(
        f"{TITLES[variant]} {ours[variant]:.1f} ({published[variant]:.1f})"
        for variant in order(ours)
    )
    return (
        f"effective ranks, with the published ones in parentheses, are: {listed}. "
        f"The order of the variants is {'the same' if same else 'different'}."
    )


def _truncation(cells: Mapping[Key, Sample], name: str, ranks: Sequence[int]) -> str:
    """Say how many eigenvectors are enough for an accuracy that is at most one point lower."""
    enough = {}
    for variant in VARIANTS:
        least = cells[name, variant, ACCURACY].mean - 1.0
        fits = [rank for rank in ranks if cells[name, variant, truncated(rank)].mean >= least]
        enough[variant] = str(fits[0]) if fits else f"more than {ranks[-1]}"
    each = ", ".join(f"{TITLES[variant]} {count}" for variant, count in enough.items())
    return (
        "of the numbers of eigenvectors per class that were tried, the smallest one that costs at "
        f"most one point of accuracy is: {each}."
    )


def _radii(cells: Mapping[Key, Sample], name: str) -> str:
    radii = {variant: cells[name, variant, MEDIAN].mean for variant in VARIANTS}
    start = radii["none"]
    changes = ", ".join(
        f"{radius:.3f} with {TITLES[variant]}"
        + (f" ({radius / start:.2f} times)" if start > 0 else "")
        for variant, radius in radii.items()
        if variant != "none"
    )
    return (
        f"the median certified radius is {start:.3f} with neither input noise nor weight decay, "
        f"and {changes}."
    )


def comparison_table(cells: Mapping[Key, Sample]) -> Table:
    """Return accuracies and effective ranks beside the published ones."""
    rows = []
    for name in data_names(cells):
        for variant in VARIANTS:
            comparison = compare(cells, name, variant)
            published, ours = comparison.published, comparison.ours
            rows.append(
                (
                    *(NAMES.get(name, name), TITLES[variant]),
                    *((published.accuracy, published.std) if published else (None, None)),
                    *(ours.mean, ours.std, ours.runs),
                    *(comparison.difference, comparison.is_close),
                    *(published.rank if published else None, comparison.rank.mean),
                    comparison.rank_difference,
                )
            )
    return Table(
        "bilinear",
        "Published figures and ours",
        (
            *("data", "variant", "published, %", "published std"),
            *("ours, %", "std", "runs", "difference", f"within {TOLERANCE} points"),
            *("published rank", "our rank", "difference of ranks"),
        ),
        rows,
        "Test accuracy after the last epoch. The rank is the effective rank (Σ|λ|)² / Σλ² of the "
        "eigenvalues of a class in the coordinates of the hidden layer, averaged over the classes.",
        {
            **dict.fromkeys(("published, %", "published std", "ours, %", "std"), ".2f"),
            "difference": "+.2f",
            **dict.fromkeys(("published rank", "our rank"), ".1f"),
            "difference of ranks": "+.1f",
        },
    )


def truncation_table(cells: Mapping[Key, Sample], ranks: Sequence[int]) -> Table:
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
            for name in data_names(cells)
            for variant in VARIANTS
        ],
        "In percent. The eigenvectors are those of the folded layer, in the space of the pixels. "
        "Each class keeps those with the largest magnitudes of its eigenvalues. The effective rank "
        "is that of the same eigenvalues.",
        {"effective rank": ".1f", **dict.fromkeys([*columns, "all"], ".2f")},
    )


def radii_table(cells: Mapping[Key, Sample], distances: Sequence[float], count: int) -> Table:
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
            for name in data_names(cells)
            for variant in VARIANTS
        ],
        f"From {count} test images of each data set. The median radius is that of the correctly "
        "classified ones: no image that is closer to one of them, in Euclidean distance with "
        "pixels from 0 to 1, has another class. Certified at r: the share of images that are "
        "classified correctly and have a radius above r.",
        {"median radius": ".3f", "std of the median": ".3f", **dict.fromkeys(columns, ".1f")},
    )


# The names of the classes, by data set; other classes are numbered.
CLASSES = {
    "fashion_mnist": (
        *("T-shirt", "trousers", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    )
}


def truncation_figure(cells: Mapping[Key, Sample], ranks: Sequence[int]) -> Figure:
    """Draw the accuracy of every variant by the number of eigenvectors that a class keeps."""
    figure, axes = _panels(cells, ranks, truncated)
    for ax in axes:
        ax.set_xscale("log")
        ticks = [rank for rank in (1, 2, 5, 10, 20, 50, 100) if rank in ranks]
        ax.set_xticks(ticks, [str(rank) for rank in ticks])
        ax.minorticks_off()
        ax.set_xlabel("eigenvectors per class")
    axes[0].set_ylabel("test accuracy, %")
    return figure


def certified_figure(cells: Mapping[Key, Sample], distances: Sequence[float]) -> Figure:
    """Draw the certified accuracy of every variant by the radius."""
    figure, axes = _panels(cells, distances, certified, markevery=5)
    for ax in axes:
        ax.set_xlim(0, distances[-1])
        ax.set_ylim(0, 100)
        ax.set_xlabel("radius, pixels from 0 to 1")
    axes[0].set_ylabel("certified accuracy, %")
    return figure


def _panels(
    cells: Mapping[Key, Sample],
    places: Sequence[Any],
    measure: Callable[[Any], str],
    **options: Any,
) -> tuple[Figure, Any]:
    """Draw one panel per data set with a line per variant, and a common legend.

    `measure` returns the name of the measure at a place on the horizontal axis.
    """
    names = data_names(cells)
    figure = new_figure(4.6 * len(names) if len(names) > 1 else 6.0, 3.7)
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        for k, variant in enumerate(VARIANTS):
            means = [cells[name, variant, measure(place)].mean for place in places]
            ax.plot(places, means, **line_style(k, linewidth=1.4, label=TITLES[variant], **options))
        ax.set_title(NAMES.get(name, name), fontsize=10)
        ax.grid(alpha=0.25)
    legend_below(figure, axes[0], 4)
    return figure, axes


def eigenvector_figure(networks: Mapping[str, Network], data: ImageData) -> Figure:
    """Draw the eigenvector with the largest positive eigenvalue of every class, by variant."""
    strongest = {variant: positive_images(network, data) for variant, network in networks.items()}
    count = len(next(iter(strongest.values())))
    classes = CLASSES.get(data.name, tuple(map(str, range(count))))
    figure = new_figure(0.92 * count + 1.0, 0.98 * len(strongest) + 0.25)
    axes = figure.subplots(len(strongest), count, squeeze=False)
    for row, (variant, images) in zip(axes, strongest.items(), strict=True):
        for label, (ax, image) in enumerate(zip(row, images, strict=True)):
            limit = float(np.abs(image).max()) or 1.0
            ax.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
            ax.set_xticks([])
            ax.set_yticks([])
            ax.spines[:].set_visible(False)
            if ax is axes[0, label]:
                ax.set_title(classes[label], fontsize=8)
        row[0].set_ylabel(TITLES[variant].replace(" and ", "\nand "), fontsize=8)
    return figure


def positive_images(network: Network, data: ImageData) -> Array:
    """Return the eigenvector with the largest eigenvalue of every class, as images.

    The sign of an eigenvector is arbitrary. It is chosen so that the product with the mean image of
    the class is positive.
    """
    images = []
    for label, pairs in enumerate(spectrum(network, centered=False).positive):
        mean = data.X_train[data.y_train == label].mean(axis=0)
        vector = pairs.eigenvectors[0] if len(pairs.eigenvectors) else np.zeros(len(mean))
        images.append((vector if vector @ mean >= 0 else -vector).reshape(data.shape))
    return np.stack(images)
