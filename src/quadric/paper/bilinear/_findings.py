"""Sentences that summarize the measured numbers."""

from collections.abc import Iterator, Mapping, Sequence

from quadric.paper.bilinear._cells import TOLERANCE, Comparison, Key, compare, data_names
from quadric.paper.bilinear._measures import ACCURACY, MEDIAN, truncated
from quadric.paper.bilinear._published import NAMES, TITLES, VARIANTS
from quadric.paper.experiments._statistics import Sample


def findings(cells: Mapping[Key, Sample], ranks: Sequence[int]) -> list[str]:
    """Return sentences about accuracies, ranks, truncation and robustness of each data set."""
    found: list[str] = []
    for name in data_names(cells):
        title = NAMES.get(name, name)
        found += [f"{title}: {text}" for text in _about(cells, name, ranks)]
    return found


def _about(cells: Mapping[Key, Sample], name: str, ranks: Sequence[int]) -> Iterator[str]:
    compared = {variant: compare(cells, name, variant) for variant in VARIANTS}
    if all(one.published is not None for one in compared.values()):
        yield _accuracies(compared)
    if all(one.rank_difference is not None for one in compared.values()):
        yield _ranks(compared)
    yield _truncation(cells, name, ranks)
    yield _radii(cells, name)


def _accuracies(compared: Mapping[str, Comparison]) -> str:
    differences = {variant: one.difference or 0.0 for variant, one in compared.items()}
    largest = max(differences, key=lambda variant: abs(differences[variant]))
    close = sum(bool(one.is_close) for one in compared.values())
    return (
        f"{close} of {len(compared)} mean accuracies are within {TOLERANCE} points of the "
        f"published ones. The largest difference is {differences[largest]:+.2f} points "
        f"({TITLES[largest]})."
    )


def _ranks(compared: Mapping[str, Comparison]) -> str:
    def order(rank: Mapping[str, float]) -> list[str]:
        return sorted(rank, key=lambda variant: rank[variant])

    ours = {variant: one.rank.mean for variant, one in compared.items()}
    published = {
        variant: one.published.rank
        for variant, one in compared.items()
        if one.published is not None and one.published.rank is not None
    }
    same = order(ours) == order(published)
    both = ", ".join(
        f"{TITLES[variant]} {ours[variant]:.1f} ({published[variant]:.1f})"
        for variant in order(ours)
    )
    return (
        f"effective ranks, with the published ones in parentheses, are: {both}. "
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
        f"{radius:.3f} with {TITLES[variant]} ({radius / start:.2f} times)"
        for variant, radius in radii.items()
        if variant != "none" and start > 0
    )
    return (
        f"the median certified radius is {start:.3f} with neither input noise nor weight decay, "
        f"and {changes}."
    )
