"""The section of the report about the contributions of the inputs to the scores."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from quadric.apps.shell.commands._console import as_options
from quadric.apps.shell.tables import OpenedModel
from quadric.checks import Array
from quadric.explain import Attributions, attribute
from quadric.plotting import plot_waterfall
from quadric.utils import counted, rounded

MOST_BARS = 10  # inputs, and pairs of inputs
MOST_ENTRIES = 2 * 10**7  # of the matrices of interaction values


@dataclass(frozen=True)
class Bar:
    """A mean absolute contribution, and its length in percent of the longest bar."""

    name: str
    size: str
    percent: float


@dataclass(frozen=True)
class TypicalRow:
    """A row whose contributions are drawn, and the score that they belong to."""

    title: str
    index: int
    score: int


@dataclass(frozen=True)
class Contributions:
    """What the section shows.

    Attributes
    ----------
    found : Attributions
        The Shapley values of the sample.
    sample : str
        A sentence about the rows.
    inputs, pairs : list of Bar
        The strongest inputs and interactions, the largest first.
    paired : int
        The number of rows over which the interaction values are averaged.
    rows : list of TypicalRow
        One or two rows.
    """

    found: Attributions
    sample: str
    inputs: list[Bar]
    pairs: list[Bar]
    paired: int
    rows: list[TypicalRow]

    def waterfall(self, row: TypicalRow, width: float = 7.2) -> Figure:
        """Draw how the inputs lead from the mean score to that of the row."""
        lines = min(len(self.found.names), MOST_BARS + 1)
        figure = Figure(figsize=(width, 1.1 + 0.33 * lines), layout="constrained", dpi=150)
        ax = figure.subplots()
        plot_waterfall(self.found, row.index, ax, score=row.score, top=MOST_BARS)
        ax.set_title("")  # the caption has these numbers, and can be broken into lines
        ax.margins(x=1.4 / width)
        names = [_fitted(label.get_text(), int(5 * width)) for label in ax.get_yticklabels()]
        ax.set_yticks(ax.get_yticks(), names)
        return figure

    def caption(self, row: TypicalRow) -> str:
        """Describe a waterfall."""
        values, mean = self.found.of(row.score)
        reached = mean + float(values[row.index].sum())
        return (
            f"From the mean {self.found.scores[row.score]}, {rounded(mean)} (dotted), to that of "
            f"the row, {rounded(reached)}. Orange inputs raise it, blue ones lower it."
        )


def contributions_of(opened: OpenedModel, X: Any, most: int) -> tuple[Contributions | None, str]:
    """Return what each input contributes in at most `most` rows, or None and why it is left out."""
    try:
        layers = len(opened.view.folded.layers)
        if layers > 1:
            why = f"the model folds to {layers} layers, so its Shapley values have no closed form."
            return None, why
        rows, sample = _sample(X, most)
        if not len(rows):
            return None, "every row of the table has a missing value."
        found = attribute(opened.model, rows, target=opened.target)
        few = found
        paired = max(1, MOST_ENTRIES // found.game.members.size)
        if paired < len(rows):
            few = attribute(opened.model, rows[:paired], rows, target=opened.target)
        pairs = _pairs(few)
    except (ValueError, TypeError, MemoryError) as error:
        return None, as_options(str(error))
    sizes = np.mean([np.abs(found.of(k)[0]).mean(axis=0) for k in range(len(found.scores))], axis=0)
    inputs = dict(zip(found.names, sizes.tolist(), strict=True))
    typical = list(_typical(opened, found, rows))
    return Contributions(found, sample, _bars(inputs), _bars(pairs), len(few), typical), ""


def _sample(X: Any, most: int) -> tuple[Any, str]:
    """Return complete rows, at most `most` of them, and a sentence about them."""
    complete = X.drop_nulls()
    chosen = np.sort(np.random.default_rng(0).permutation(len(complete))[:most])
    what = counted(len(chosen), "row")
    if len(chosen) < len(complete):
        what = f"a random sample of {what} out of {counted(len(complete), 'row')}"
    if len(complete) < len(X):
        what += f" without missing values; the table has {counted(len(X), 'row')}"
    return complete[chosen], f"Means of absolute values over {what}."


def _pairs(found: Attributions) -> dict[str, float]:
    """Return the mean absolute interaction values of all pairs that have one."""
    scores = range(len(found.scores))
    # half of the value of a pair is in each of two entries
    sizes = 2 * np.mean([np.abs(found.interactions(k)).mean(axis=0) for k in scores], axis=0)
    above = zip(*np.triu_indices(len(found.names), 1), strict=True)
    return {f"{found.names[i]} × {found.names[j]}": float(sizes[i, j]) for i, j in above}


def _fitted(text: str, most: int) -> str:
    """Return "name = value" on two lines if it is longer than `most`; each part is shortened."""
    name, equals, value = text.rpartition(" = ")
    if len(text) <= most or not equals:
        return text
    parts = [part if len(part) <= most else f"{part[: most - 1]}…" for part in (name, value)]
    return "\n= ".join(parts)


def _bars(sizes: dict[str, float]) -> list[Bar]:
    """Return the largest sizes as bars, without those that are zero up to rounding."""
    largest = sorted(sizes.items(), key=lambda one: -one[1])[:MOST_BARS]
    top = largest[0][1] if largest else 0.0
    return [
        Bar(name, rounded(size), 100 * size / top) for name, size in largest if size > 1e-9 * top
    ]


def _typical(opened: OpenedModel, found: Attributions, rows: Any) -> Iterator[TypicalRow]:
    """Find the row with the median score of each of the two most frequent predicted classes.

    For predicted numbers, find those at the quartiles.
    """
    scores = np.stack([found.of(k)[0].sum(axis=1) for k in range(len(found.scores))], axis=1)
    if opened.view.classes is None:
        order = np.argsort(scores[:, 0], kind="stable")
        for name, place in {"lower": 0.25, "upper": 0.75}.items():
            index = int(order[round(place * (len(order) - 1))])
            yield TypicalRow(f"Row at the {name} quartile of the predictions", index, 0)
        return
    predicted: Array = np.asarray(opened.model.predict(rows))
    labels, counts = np.unique(predicted, return_counts=True)
    for label in labels[np.argsort(-counts, kind="stable")[:2]]:
        k = opened.view.labels.tolist().index(label) if len(found.scores) > 1 else 0
        members = np.flatnonzero(predicted == label)
        middle = np.argsort(scores[members, k], kind="stable")[len(members) // 2]
        yield TypicalRow(f"Typical row that is predicted as {label}", int(members[middle]), k)
