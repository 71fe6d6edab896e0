"""The cells of the MNIST table: our runs compared with the paper's."""

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from typing import Any

import numpy as np
from scipy import stats

from quadric.apps.paper._claims import NEEDS_FULL, Claim, Verdict
from quadric.apps.paper._experiment import MODELS, NAMES
from quadric.apps.paper._statistics import (
    ALPHA,
    Comparison,
    Sample,
    adjust,
    compare_spread,
    contrast,
    expected_maximum,
    holm,
    maximum_range,
    sample_of,
)
from quadric.apps.paper.sweep import WIDTHS, Recipe, Run

PAPER_RUNS = 25
PLACE = ("train_size", "epochs", "hidden", "model")

Key = tuple[int, int, int, str]  # the values of PLACE
Row = tuple[int, int, int]  # the same without the model
Samples = Mapping[Key, Sample]


@dataclass(frozen=True)
class Cell:
    """One cell of the table: accuracies in percent over our seeds, and over the paper's 25 runs.

    `paper` is None if the paper does not report this cell.
    """

    train_size: int
    epochs: int
    hidden: int
    model: str
    ours: Sample
    paper: Sample | None = None

    @property
    def key(self) -> Key:
        return self.train_size, self.epochs, self.hidden, self.model

    @property
    def name(self) -> str:
        """Images, epochs, hidden neurons and model, as in '600/5/10 QNN'."""
        return f"{row_name(self.key)} {self.model.upper()}"

    @cached_property
    def comparison(self) -> Comparison | None:
        """Our mean minus the paper's, with the standard error of the difference."""
        return None if self.paper is None else contrast((1, self.ours), (-1, self.paper))

    @property
    def z(self) -> float | None:
        """The difference of the means in standard errors."""
        return None if self.comparison is None else self.comparison.t

    @property
    def is_within(self) -> bool | None:
        """Whether the means differ by at most 2 standard errors; None for a single run."""
        return None if self.z is None else abs(self.z) <= 2

    @property
    def in_printed_std(self) -> float | None:
        """The difference of the means in printed standard deviations of a single run."""
        if self.comparison is None or self.paper is None or not self.paper.std:
            return None
        return self.comparison.difference / self.paper.std

    @property
    def is_within_leniently(self) -> bool | None:
        """Whether the means differ by at most 2 printed standard deviations of a single run.

        This is lenient: the mean of 25 runs varies 5 times less than a single run.
        """
        return None if self.in_printed_std is None else abs(self.in_printed_std) <= 2


def row_name(key: Sequence[object]) -> str:
    """Return images, epochs and hidden neurons, as in '600/5/10'."""
    return "/".join(map(str, key[:3]))


def read_table(lines: Iterable[str], runs: int) -> dict[Key, Sample]:
    """Return the samples of a CSV table with the columns of PLACE, mean, std, best and worst."""
    return {
        (int(row["train_size"]), int(row["epochs"]), int(row["hidden"]), row["model"]): Sample(
            float(row["mean"]), float(row["std"]), float(row["best"]), float(row["worst"]), runs
        )
        for row in csv.DictReader(lines)
    }


def paper_table() -> dict[Key, Sample]:
    """Return the paper's table: mean, std, best and worst of 25 runs, in percent."""
    text = resources.files(__package__).joinpath("paper_mnist.csv").read_text(encoding="utf-8")
    return read_table(text.splitlines(), PAPER_RUNS)


def cells_of(runs: Sequence[Run], recipe: Recipe, paper: Samples) -> list[Cell]:
    """Compute mean, standard deviation (divisor n - 1), best and worst of each cell's seeds."""
    groups = defaultdict(list)
    for run in runs:
        for epochs, accuracy in zip(recipe.epochs, run.result.accuracies, strict=True):
            key = (run.task.size, epochs, run.task.hidden, NAMES[run.task.kind])
            groups[key].append(100 * accuracy)
    samples = {key: sample_of(accuracies) for key, accuracies in groups.items()}
    return compare(samples, paper)


def compare(ours: Samples, paper: Samples) -> list[Cell]:
    """Return our cells in the order of the paper's table, each with the paper's values."""
    order = sorted(ours, key=lambda key: (*key[:3], list(MODELS).index(key[3])))
    return [Cell(*key, ours[key], paper.get(key)) for key in order]


ENOUGH = 10  # runs per cell; with fewer, our numbers are shown, but there is no verdict
FEW = (1200, 10, 20)  # "small" numbers of images, epochs and hidden neurons: at most these
HALF = 15  # hidden neurons: "significantly fewer" than 30
ALMOST = 0.8  # the share of the QNN's gain that counts as "almost the same"
RULE = (
    "A claim about many rows holds if most of its differences are significant (Welch's test with "
    "Holm's correction over the rows, 5 %) and none is significant in the opposite direction. It "
    "holds with a condition if this is so for the rows with at most 6000, 1200 or 600 images. "
    f"With fewer than {ENOUGH} runs per cell there are no verdicts."
)

Finding = tuple[str, Verdict]
Judge = Callable[[Samples], Finding]


def claims_of(cells: Sequence[Cell], compared: bool) -> list[Claim]:
    """Judge whether the table is reproduced, and the paper's claims about it.

    If the data are not the paper's, our numbers are shown without verdicts.
    """
    ours = {cell.key: cell.ours for cell in cells}
    theirs = {cell.key: cell.paper for cell in cells if cell.paper is not None}
    enough = compared and min(sample.runs for sample in ours.values()) >= ENOUGH
    note = NEEDS_FULL if compared else "not judged: the images are not MNIST"
    claims = reproduction_claims(cells, enough) if theirs else []
    for name, (judge, method) in CLAIMS.items():
        paper, paper_verdict = judge(theirs) if theirs else ("-", Verdict.UNKNOWN)
        mine, verdict = judge(ours)
        if not enough:
            mine, verdict = f"{mine}; {note}", Verdict.UNKNOWN
        claims.append(Claim(name, paper, mine, verdict, paper_verdict, method))
    return claims


def comparisons(samples: Samples, better: str, worse: str) -> dict[Row, Comparison]:
    """Compare two models in every row of equal size, epochs and width, with Holm's correction."""
    rows = [key[:3] for key in samples if key[3] == better and (*key[:3], worse) in samples]
    return holm(
        {row: contrast((1, samples[*row, better]), (-1, samples[*row, worse])) for row in rows}
    )


def _in_most(tests: Mapping[Any, Comparison], words: tuple[str, str]) -> Finding:
    """Judge whether most differences are significantly positive and none significantly negative.

    The keys of the tests begin with the number of images. `words` name a positive and a negative
    difference.
    """
    sizes = sorted({row[0] for row in tests}, reverse=True)
    for size in sizes:
        signs = [test.sign for row, test in tests.items() if row[0] <= size]
        if 2 * signs.count(1) > len(signs) and -1 not in signs:
            break
    else:
        return _counts([test.sign for test in tests.values()], words), Verdict.FAILS
    found = _counts(signs, words)
    if size == sizes[0]:
        return found, Verdict.HOLDS
    everywhere = _counts([test.sign for test in tests.values()], words)
    return f"{everywhere}; with at most {size} images {found}", Verdict.CONDITIONALLY


def _counts(signs: Sequence[int], words: tuple[str, str]) -> str:
    parts = [f"{word} in {signs.count(sign)}" for word, sign in zip(words, (1, -1), strict=True)]
    return f"significantly {', '.join(parts)} of {len(signs)}"


def _outperforms(better: str, worse: str) -> Judge:
    return lambda samples: _in_most(comparisons(samples, better, worse), ("better", "worse"))


def _outperforms_if_few(better: str, worse: str) -> Judge:
    def judge(samples: Samples) -> Finding:
        tests = comparisons(samples, better, worse)
        few = {row: test for row, test in tests.items() if np.all(np.array(row) <= FEW)}
        return _in_most(few, ("better", "worse"))

    return judge


def gain_changes(samples: Samples, axis: int) -> dict[Row, Comparison]:
    """Compare the QNN's gain over the ANN at the smallest and the largest value of one axis."""
    values = sorted({key[:3][axis] for key in samples})
    low, high = values[0], values[-1]

    def at(row: Row, value: int, model: str) -> Sample:
        place = [*row]
        place[axis] = value
        return samples[place[0], place[1], place[2], model]

    return holm(
        {
            row: contrast(
                (1, at(row, low, "qnn")),
                (-1, at(row, low, "ann")),
                (-1, at(row, high, "qnn")),
                (1, at(row, high, "ann")),
            )
            for row in sorted({key[:3] for key in samples if key[axis] == low})
        }
    )


def _gain_falls(axis: int) -> Judge:
    return lambda samples: _in_most(gain_changes(samples, axis), ("smaller", "larger"))


def _fewer_suffice(model: str, fewer: int) -> Judge:
    """Compare the model of a smaller width with the ANN of the largest width."""

    def judge(samples: Samples) -> Finding:
        tests = {
            row: contrast((1, samples[*row, fewer, model]), (-1, samples[*row, WIDTHS[-1], "ann"]))
            for row in sorted({key[:2] for key in samples})
        }
        return _in_most(holm(tests), ("better", "worse"))

    return judge


def _almost_the_same(samples: Samples) -> Finding:
    qnn, rpqnn = (comparisons(samples, model, "ann") for model in ("qnn", "rpqnn"))
    shares = [rpqnn[row].difference / qnn[row].difference for row in qnn if qnn[row].sign == 1]
    if not shares:
        return "the QNN gains nowhere significantly", Verdict.UNKNOWN
    median = float(np.median(shares))
    many = sum(share >= ALMOST for share in shares)
    return (
        f"median {median:.0%}, at least {ALMOST:.0%} in {many} of {len(shares)}",
        Verdict.HOLDS if median >= ALMOST else Verdict.FAILS,
    )


def _compromise(samples: Samples) -> Finding:
    """Judge whether the RPQNN is more accurate than the ANN and less accurate than the QNN."""
    found = [
        (pair, *_in_most(comparisons(samples, *pair), ("better", "worse")))
        for pair in (("rpqnn", "ann"), ("qnn", "rpqnn"))
    ]
    text = "; ".join(f"{a.upper()} against {b.upper()}: {counts}" for (a, b), counts, _ in found)
    verdicts = {verdict for *_, verdict in found}
    for verdict in (Verdict.FAILS, Verdict.CONDITIONALLY):
        if verdict in verdicts:
            return text, verdict
    return text, Verdict.HOLDS


def _is_random(samples: Samples) -> Finding:
    vary = sum(bool(sample.std) for sample in samples.values())
    return (
        f"the runs differ in {vary} of {len(samples)} cells",
        Verdict.HOLDS if vary == len(samples) else Verdict.FAILS,
    )


_WELCH = "Welch's test, Holm over all rows"
_FEW_WELCH = f"{_WELCH}; judged on the rows in which all three are few"
# by id: the judge, and the method in words
CLAIMS: dict[str, tuple[Judge, str]] = {
    "outperforms-qnn": (_outperforms("qnn", "ann"), _WELCH),
    "outperforms-rpqnn": (_outperforms("rpqnn", "ann"), _WELCH),
    "few-qnn": (_outperforms_if_few("qnn", "ann"), _FEW_WELCH),
    "few-rpqnn": (_outperforms_if_few("rpqnn", "ann"), _FEW_WELCH),
    "rpqnn-compromise": (
        _compromise,
        f"{_WELCH}; its number of parameters is between the two as well",
    ),
    "gain-falls-with-images": (_gain_falls(0), _WELCH),
    "gain-falls-with-epochs": (_gain_falls(1), _WELCH),
    "gain-falls-with-hidden-neurons": (_gain_falls(2), _WELCH),
    "fewer-hidden-neurons-qnn": (_fewer_suffice("qnn", WIDTHS[-2]), _WELCH),
    "fewer-hidden-neurons-rpqnn": (_fewer_suffice("rpqnn", WIDTHS[-2]), _WELCH),
    "significantly-fewer-hidden-neurons": (_fewer_suffice("qnn", HALF), _WELCH),
    "rpqnn-almost-the-same": (
        _almost_the_same,
        "share of the QNN's gain in the rows in which it is significant",
    ),
    "accuracy-random": (_is_random, "standard deviation over the runs of every cell"),
}


def smallest_width(samples: Samples, size: int, epochs: int) -> int | None:
    """Return the smallest width at which the QNN is at least as accurate as the ANN of width 30."""
    goal = samples.get((size, epochs, 30, "ann"))
    if goal is None:
        return None
    for width in WIDTHS:
        qnn = samples.get((size, epochs, width, "qnn"))
        if qnn is not None and qnn.mean >= goal.mean:
            return width
    return None


def reproduction_claims(cells: Sequence[Cell], enough: bool) -> list[Claim]:
    """Compare our table with the printed one; `enough` is whether our runs allow a verdict."""
    printed = [cell for cell in cells if cell.paper is not None]
    claims = [_means(printed, enough), _spread(printed), _below(printed)]
    if not enough:
        claims = [
            replace(claim, ours=f"{claim.ours}; {NEEDS_FULL}", verdict=Verdict.UNKNOWN)
            for claim in claims
        ]
    return [*claims, _possible(printed)]


def _means(printed: Sequence[Cell], enough: bool) -> Claim:
    within = sum(bool(cell.is_within) for cell in printed)
    lenient = sum(bool(cell.is_within_leniently) for cell in printed)
    expected, least = expected_within(len(printed))
    needed = ""
    if enough:
        needed = f" ({expected:.0f} expected with the same recipe, at least {least} required)"
    return Claim(
        "table-means",
        f"{len(printed)} cells, with nothing in the paper to judge them by",
        f"{within} of {len(printed)} within 2 standard errors of the difference{needed}; by "
        f"the lenient criterion (2 printed standard deviations of one run) {lenient}",
        Verdict.HOLDS if within >= least else Verdict.FAILS,
        method="standard errors of the difference between two means of 25 runs",
    )


def _spread(printed: Sequence[Cell]) -> Claim:
    pairs = [(cell.ours, cell.paper) for cell in printed if cell.paper is not None]
    tests = {k: compare_spread(ours, paper) for k, (ours, paper) in enumerate(pairs)}
    found = {k: test for k, test in tests.items() if test is not None}
    differ = sum(p < ALPHA for p in adjust({k: test[1] for k, test in found.items()}).values())
    ratio = float(np.median([test[0] for test in found.values()])) if found else math.nan
    verdict = Verdict.FAILS
    if differ == 0:
        verdict = Verdict.HOLDS
    elif differ <= ALPHA * len(found) and abs(ratio - 1) < 0.1:
        verdict = Verdict.CONDITIONALLY
    text = ""
    if found:
        text = f"median {ratio:.2f} of the printed one; significantly different in {differ} of "
        text += f"{len(found)} cells. Extremes: "
    possible = [paper for _, paper in pairs if paper.is_possible]
    return Claim(
        "table-spread",
        "no other numbers to judge them by; extremes: " + _extremes(possible),
        text + _extremes([ours for ours, _ in pairs]),
        verdict,
        method="F test, Holm over all cells. It assumes normal runs; the worst runs are farther "
        "from the mean than that. With a condition: in all but 5 % of the cells",
    )


def _below(printed: Sequence[Cell]) -> Claim:
    negative, agree, differ = signs(printed)
    found = set(negative) & set(agree)
    return Claim(
        "table-rpqnn-below-ann",
        f"{len(negative)} rows (images/epochs/hidden): " + _list(negative),
        f"less accurate in {len(found)} of {len(negative)}; of all rows, {len(agree)} of "
        f"{len(agree) + len(differ)} signs agree, all but {_list(differ)}",
        Verdict.HOLDS if negative and 4 * len(found) >= 3 * len(negative) else Verdict.FAILS,
        Verdict.HOLDS,
        "signs of the differences; holds if they agree in at least three quarters of these rows",
    )


def _possible(printed: Sequence[Cell]) -> Claim:
    samples = {cell.name: cell.paper for cell in printed if cell.paper is not None}
    impossible = ", ".join(
        f"{name} (mean {sample.mean:.2f}, best {sample.best:.2f}, worst {sample.worst:.2f})"
        for name, sample in samples.items()
        if not sample.is_possible
    )
    verdict = Verdict.FAILS if impossible else Verdict.HOLDS
    return Claim(
        "table-possible",
        f"impossible: {impossible or 'none'}",
        "follows from the printed numbers",
        verdict,
        verdict,
        "the mean is between worst and best; inequalities of Bhatia and Davis, and of Samuelson",
    )


def expected_within(cells: int, runs: int = 25) -> tuple[float, int]:
    """Return how many cells of the same recipe are within 2 standard errors, and how few may be.

    The second number is 2 standard deviations of the binomial distribution below the first.
    Cells that share runs are correlated, so this bound is approximate.

    >>> expected, least = expected_within(180)
    >>> round(expected), least
    (171, 165)
    """
    share = 1 - 2 * float(stats.t.sf(2, 2 * runs - 2))
    return share * cells, math.ceil(cells * share - 2 * math.sqrt(cells * share * (1 - share)))


def signs(cells: Sequence[Cell]) -> tuple[list[Row], list[Row], list[Row]]:
    """Compare the signs of RPQNN - ANN with the printed ones.

    Returns the rows in which the printed difference is negative, those in which ours has the same
    sign, and those in which it does not.
    """
    by_key = {cell.key: cell for cell in cells if cell.paper is not None}
    negative: list[Row] = []
    agree: list[Row] = []
    differ: list[Row] = []
    for row in dict.fromkeys(key[:3] for key in by_key):
        rpqnn, ann = (by_key.get((*row, model)) for model in ("rpqnn", "ann"))
        if rpqnn is None or ann is None or rpqnn.paper is None or ann.paper is None:
            continue
        printed, ours = rpqnn.paper.mean - ann.paper.mean, rpqnn.ours.mean - ann.ours.mean
        if printed < 0:
            negative.append(row)
        (agree if printed * ours > 0 else differ).append(row)
    return negative, agree, differ


def _list(rows: Sequence[Row]) -> str:
    return ", ".join(map(row_name, rows)) or "none"


def _extremes(samples: Sequence[Sample]) -> str:
    """Describe how far best and worst are from the mean, compared with normal samples."""
    found = [
        (sample.best_in_std, -sample.worst_in_std, *maximum_range(sample.runs))
        for sample in samples
        if sample.best_in_std is not None and sample.worst_in_std is not None
    ]
    if not found:
        return "-"
    best, worst, low, high = np.array(found).T
    inside = [int(((low <= ends) & (ends <= high)).sum()) for ends in (best, worst)]
    return (
        f"median best {np.median(best):+.2f} and worst {-np.median(worst):+.2f} std from the mean "
        f"(±{expected_maximum(samples[0].runs):.2f} expected), {inside[0]} and {inside[1]} of "
        f"{len(found)} in the 95 % range"
    )
