"""Sentences that summarize the measured numbers."""

from collections.abc import Iterator, Mapping, Sequence

from quadric.apps.paper.bilinear._cells import (
    TOLERANCE,
    Key,
    PublishedComparison,
    compare,
    data_names,
)
from quadric.apps.paper.bilinear._measures import ACCURACY, MEDIAN, truncated
from quadric.apps.paper.bilinear._published import NAMES, TITLES, VARIANTS
from quadric.apps.paper.experiments._statistics import Sample


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
