"""Tables of the published figures beside ours, of the truncated networks and of the radii."""

from collections.abc import Mapping, Sequence

from quadric.apps.paper.bilinear._cells import TOLERANCE, Key, compare, data_names
from quadric.apps.paper.bilinear._measures import ACCURACY, INPUT_RANK, MEDIAN, certified, truncated
from quadric.apps.paper.bilinear._published import NAMES, TITLES, VARIANTS
from quadric.apps.paper.experiments._experiment import Table
from quadric.apps.paper.experiments._statistics import Sample


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
