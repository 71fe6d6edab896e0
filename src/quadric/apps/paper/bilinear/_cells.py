"""The measured numbers by data set, variant and measure, in the units in which they are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quadric.apps.paper.bilinear._measures import ACCURACY, INPUT_RANK, MEDIAN, RANK
from quadric.apps.paper.bilinear._published import PUBLISHED, Published
from quadric.apps.paper.experiments._statistics import Sample
from quadric.apps.paper.studies._runs import Part, samples
from quadric.apps.paper.sweep import Run
from quadric.datasets import ImageData

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
