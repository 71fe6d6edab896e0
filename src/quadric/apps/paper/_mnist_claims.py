"""The cells of the MNIST table: our runs compared with the paper's."""

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import stats

from quadric.apps.paper._experiment import (
    ENOUGH,
    MODELS,
    NAMES,
    NEEDS_FULL,
    Claim,
    Verdict,
    are_enough,
    differences,
    packaged,
)
from quadric.apps.paper._statistics import (
    ALPHA,
    Comparison,
    Sample,
    adjust,
    compare_spread,
    contrast,
    contrast_by_second,
    expected_maximum,
    holm,
    maximum_range,
    paired,
    sample_of,
)
from quadric.apps.paper.sweep import WIDTHS, Recipe, Run

PAPER_RUNS = 25  # behind each cell of the paper's table
PLACE = ("train_size", "epochs", "hidden", "model")

Key = tuple[int, int, int, str]  # the values of PLACE
Row = tuple[int, int, int]  # the same without the model
Block = tuple[int, int]  # the numbers of images and epochs
Samples = Mapping[Key, Sample]
Accuracies = Mapping[Key, Mapping[int, float]]  # of single runs, by seed


@dataclass(frozen=True)
class Cell:
    """One cell of the table: accuracies in percent over our seeds, and over the paper's 25 runs.

    `key` are the values of PLACE, and `paper` is None if the paper does not report this cell.
    """

    key: Key
    ours: Sample
    paper: Sample | None = None

    @cached_property
    def comparison(self) -> Comparison | None:
        """Our mean minus the paper's, with the standard error of the difference.

        With fewer than `ENOUGH` runs, the printed standard deviation stands for both.
        """
        if self.paper is None:
            return None
        if self.ours.runs < ENOUGH:
            return contrast_by_second(self.ours, self.paper)
        return contrast((1, self.ours), (-1, self.paper))

    @property
    def z(self) -> float | None:
        """The difference of the means in standard errors."""
        return None if self.comparison is None else self.comparison.t

    @property
    def is_within(self) -> bool | None:
        """Whether the means differ by at most 2 standard errors."""
        return None if self.z is None else abs(self.z) <= 2

    @property
    def in_printed_std(self) -> float | None:
        """The difference of the means in printed standard deviations of a single run."""
        std = self.paper.std if self.paper else None
        return self.comparison.difference / std if self.comparison and std else None

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
    return read_table(packaged("paper_mnist.csv").splitlines(), PAPER_RUNS)


def accuracies_of(runs: Iterable[Run], recipe: Recipe) -> Accuracies:
    """Return the accuracies of each cell in percent, by seed."""
    cells: dict[Key, dict[int, float]] = defaultdict(dict)
    for run in runs:
        for epochs, accuracy in zip(recipe.epochs, run.result.accuracies, strict=True):
            key = (run.task.size, epochs, run.task.hidden, NAMES[run.task.kind])
            cells[key][run.task.seed] = 100 * accuracy
    return cells


def cells_of(runs: Iterable[Run], recipe: Recipe, paper: Samples) -> list[Cell]:
    """Compute mean, standard deviation (divisor n - 1), best and worst of each cell's seeds."""
    accuracies = accuracies_of(runs, recipe)
    return compare({key: sample_of([*runs.values()]) for key, runs in accuracies.items()}, paper)


def compare(ours: Samples, paper: Samples) -> list[Cell]:
    """Return our cells in the order of the paper's table, each with the paper's values."""
    order = sorted(ours, key=lambda key: (*key[:3], list(MODELS).index(key[3])))
    return [Cell(key, ours[key], paper.get(key)) for key in order]


MEANS = "table-means"  # the id of the claim about all means
FEW = (1200, 10, 20)  # "small" numbers of images, epochs and hidden neurons: at most these
TWO_THIRDS, HALF = 20, 15  # hidden neurons: "significantly fewer" than 30
FITTED = (
    "With a condition: the paper does not state the scaling of the pixels and the initial values. "
    "Ours were fitted to the first 135 cells of this table; other common choices do not agree "
    "(pixels from 0 to 1: 6 of 135 cells, Glorot's initial values: 74; results/recipes.md)"
)
ALMOST = 0.8  # the share of the QNN's gain that counts as "almost the same"
RULE = (
    "A claim about many rows holds if most of its differences are significant (Welch's test with "
    "Holm's correction over the rows, 5 %) and none is significant in the opposite direction. It "
    "holds with a condition if this is so for the rows with at most 6000, 1200 or 600 images. "
    "Blocks of images and epochs are compared by paired t tests over the seeds, or by Welch's test "
    "if only the means are known, with Holm's correction over the blocks. "
    f"With fewer than {ENOUGH} runs per cell, only the means are judged."
)

Finding = tuple[str, Verdict]


def claims_of(
    cells: Sequence[Cell], compared: bool, accuracies: Accuracies | None = None
) -> list[Claim]:
    """Judge whether the table is reproduced, and the paper's claims about it.

    With the accuracies of single runs, blocks of the table are compared in pairs. If the data are
    not the paper's, our numbers are shown without verdicts.
    """
    ours = {cell.key: cell.ours for cell in cells}
    printed = [cell for cell in cells if cell.paper is not None]
    theirs = {cell.key: cell.paper for cell in printed if cell.paper is not None}
    claims = [_spread(printed), _below(printed, accuracies)] if printed else []
    for name, (judge, method) in CLAIMS.items():
        mine: Any = accuracies if accuracies and method == PAIRED else ours
        text, paper_verdict = judge(theirs) if theirs else ("-", Verdict.UNKNOWN)
        claims.append(Claim(name, text, *judge(mine), paper_verdict, method))
    if not (compared and are_enough(ours)):
        note = NEEDS_FULL if compared else "not judged: the images are not MNIST"
        claims = [
            replace(claim, ours=f"{claim.ours}; {note}", verdict=Verdict.UNKNOWN)
            for claim in claims
        ]
    return [_means(printed), _possible(theirs), *claims] if printed else claims


def comparisons(samples: Samples, better: str, worse: str) -> dict[Row, Comparison]:
    """Compare two models in every row of equal size, epochs and width, with Holm's correction."""
    return differences(
        {
            key[:3]: (sample, samples[*key[:3], worse])
            for key, sample in samples.items()
            if key[3] == better and (*key[:3], worse) in samples
        }
    )


def _in_most(tests: Mapping[Any, Comparison], words: tuple[str, str]) -> Finding:
    """Judge whether most differences are significantly positive and none significantly negative.

    The keys of the tests begin with the number of images. `words` name a positive and a negative
    difference.
    """
    everywhere = _counts([test.sign for test in tests.values()], words)
    sizes = sorted({row[0] for row in tests}, reverse=True)
    for size in sizes:
        signs = [test.sign for row, test in tests.items() if row[0] <= size]
        if 2 * signs.count(1) > len(signs) and -1 not in signs:
            if size == sizes[0]:
                return everywhere, Verdict.HOLDS
            few = _counts(signs, words)
            return f"{everywhere}; with at most {size} images {few}", Verdict.CONDITIONALLY
    return everywhere, Verdict.FAILS


def _counts(signs: Sequence[int], words: tuple[str, str]) -> str:
    positive, negative = words
    return (
        f"significantly {positive} in {signs.count(1)}, {negative} in {signs.count(-1)} of "
        f"{len(signs)}"
    )


def _outperforms(better: str, worse: str, samples: Samples, most: Any = math.inf) -> Finding:
    """Judge the rows whose numbers of images, epochs and hidden neurons are at most `most`."""
    few = {
        row: test
        for row, test in comparisons(samples, better, worse).items()
        if np.all(np.array(row) <= most)
    }
    return _in_most(few, ("better", "worse"))


def _gain_falls(model: str, axis: int, samples: Mapping[Any, Sample]) -> Finding:
    """Compare a model's gain over the ANN at the smallest and the largest value of one axis."""
    values = sorted({key[:3][axis] for key in samples})
    terms = (
        *((1, values[0], model), (-1, values[0], "ann")),
        *((-1, values[-1], model), (1, values[-1], "ann")),
    )
    changes = {
        row: contrast(
            *(
                (sign, samples[*row[:axis], value, *row[axis + 1 :], name])
                for sign, value, name in terms
            )
        )
        for row in sorted({key[:3] for key in samples if key[axis] == values[0]})
    }
    return _in_most(holm(changes), ("smaller", "larger"))


def _fewer_suffice(model: str, fewer: int, samples: Samples) -> Finding:
    """Compare the model of a smaller width with the ANN of the largest width."""
    tests = differences(
        {
            row: (samples[*row, fewer, model], samples[*row, WIDTHS[-1], "ann"])
            for row in sorted({key[:2] for key in samples})
        }
    )
    return _in_most(tests, ("better", "worse"))


def block_tests(table: Samples | Accuracies, better: str, worse: str) -> dict[Block, Comparison]:
    """Compare two models in each block, in the mean over all widths, with Holm's correction.

    With the accuracies of single runs, the runs of a seed are compared in pairs: they share their
    images and the order of the images.
    """
    rows: dict[Block, list[Row]] = defaultdict(list)
    for size, epochs, hidden, model in table:
        if model == better:
            rows[size, epochs].append((size, epochs, hidden))
    return holm(
        {block: _test_rows(table, some, better, worse) for block, some in sorted(rows.items())}
    )


def _test_rows(table: Any, rows: Sequence[Row], better: str, worse: str) -> Comparison:
    """Compare two models in the mean over some rows."""
    signs = {better: 1 / len(rows), worse: -1 / len(rows)}
    terms = [(sign, table[*row, model]) for row in rows for model, sign in signs.items()]
    if isinstance(terms[0][1], Sample):
        return contrast(*terms)
    seeds = set.intersection(*(set(runs) for _, runs in terms))
    return paired([sum(sign * runs[seed] for sign, runs in terms) for seed in sorted(seeds)])


def _in_blocks(pairs: Sequence[tuple[str, str]], table: Samples | Accuracies) -> Finding:
    """Judge in which blocks the first model of every pair is significantly better."""
    tests = {pair: block_tests(table, *pair) for pair in pairs}
    texts = []
    for (better, worse), blocks in tests.items():
        up, down = ([block for block in blocks if blocks[block].sign == s] for s in (1, -1))
        texts.append(
            f"{better.upper()} against {worse.upper()}: better in {len(up)} of {len(blocks)} "
            f"blocks (images/epochs {_list(up)}), worse in {len(down)} ({_list(down)})"
        )
    everywhere = [all(tests[pair][block].sign == 1 for pair in pairs) for block in blocks]
    return "; ".join(texts), Verdict.of(all(everywhere), partly=any(everywhere))


def _almost_the_same(samples: Samples) -> Finding:
    qnn, rpqnn = (comparisons(samples, model, "ann") for model in ("qnn", "rpqnn"))
    shares = [rpqnn[row].difference / qnn[row].difference for row in qnn if qnn[row].sign == 1]
    if not shares:
        return "the QNN gains nowhere significantly", Verdict.UNKNOWN
    median = float(np.median(shares))
    many = sum(share >= ALMOST for share in shares)
    return (
        f"median {median:.0%}, at least {ALMOST:.0%} in {many} of {len(shares)}",
        Verdict.of(median >= ALMOST),
    )


def _is_random(samples: Samples) -> Finding:
    vary = sum(bool(sample.std) for sample in samples.values())
    return f"the runs differ in {vary} of {len(samples)} cells", Verdict.of(vary == len(samples))


_WELCH = "Welch's test, Holm over all rows"
PAIRED = (
    "paired t test over the seeds in each block of images and epochs, averaged over the widths, "
    "Holm over the blocks; Welch's test for the printed means. With a condition: in some blocks"
)
_FEW_WELCH = f"{_WELCH}; judged on the rows in which all three are few"
# by id: the judge, and the method in words
CLAIMS: dict[str, tuple[Callable[[Any], Finding], str]] = {
    "outperforms-qnn": (partial(_outperforms, "qnn", "ann"), _WELCH),
    "few-qnn": (partial(_outperforms, "qnn", "ann", most=FEW), _FEW_WELCH),
    "few-rpqnn": (partial(_outperforms, "rpqnn", "ann", most=FEW), _FEW_WELCH),
    "gain-falls-with-images": (partial(_gain_falls, "qnn", 0), _WELCH),
    "gain-falls-with-epochs": (partial(_gain_falls, "qnn", 1), _WELCH),
    "gain-falls-with-hidden-neurons": (partial(_gain_falls, "qnn", 2), _WELCH),
    "rpqnn-gain-falls-with-images": (partial(_gain_falls, "rpqnn", 0), _WELCH),
    "rpqnn-gain-falls-with-epochs": (partial(_gain_falls, "rpqnn", 1), _WELCH),
    "rpqnn-gain-falls-with-hidden-neurons": (partial(_gain_falls, "rpqnn", 2), _WELCH),
    "fewer-hidden-neurons-qnn": (partial(_fewer_suffice, "qnn", WIDTHS[-2]), _WELCH),
    "fewer-hidden-neurons-rpqnn": (partial(_fewer_suffice, "rpqnn", WIDTHS[-2]), _WELCH),
    "two-thirds-of-the-hidden-neurons": (partial(_fewer_suffice, "qnn", TWO_THIRDS), _WELCH),
    "significantly-fewer-hidden-neurons": (partial(_fewer_suffice, "qnn", HALF), _WELCH),
    "significantly-fewer-hidden-neurons-rpqnn": (partial(_fewer_suffice, "rpqnn", HALF), _WELCH),
    "rpqnn-almost-the-same": (
        _almost_the_same,
        "share of the QNN's gain in the rows in which it is significant",
    ),
    "accuracy-random": (_is_random, "standard deviation over the runs of every cell"),
    # in all pairs of models, the first one is more accurate
    "outperforms-rpqnn": (partial(_in_blocks, [("rpqnn", "ann")]), PAIRED),
    "rpqnn-compromise": (partial(_in_blocks, [("rpqnn", "ann"), ("qnn", "rpqnn")]), PAIRED),
}


def smallest_width(samples: Samples, size: int, epochs: int) -> int | None:
    """Return the smallest width at which the QNN is at least as accurate as the ANN of width 30."""
    goal = samples.get((size, epochs, 30, "ann"))
    qnn = {width: samples.get((size, epochs, width, "qnn")) for width in WIDTHS}
    enough = (h for h, sample in qnn.items() if goal and sample and sample.mean >= goal.mean)
    return next(enough, None)


def _means(printed: Sequence[Cell]) -> Claim:
    within = sum(bool(cell.is_within) for cell in printed)
    expected, least = expected_within(len(printed), printed[0].ours.runs)
    squares = np.mean([(cell.z or 0.0) ** 2 for cell in printed])
    return Claim(
        MEANS,
        f"{len(printed)} cells, with nothing in the paper to judge them by",
        f"{within} of {len(printed)} within 2 standard errors of the difference ({expected:.0f} "
        f"expected with the authors' own program, at least {least} required); mean z² "
        f"{squares:.2f}. {FITTED}",
        Verdict.of(False, partly=within >= least),
        method="standard errors of the difference between two means; the printed standard "
        f"deviation stands for ours if we have fewer than {ENOUGH} runs",
    )


def _spread(printed: Sequence[Cell]) -> Claim:
    pairs = [(cell.ours, cell.paper) for cell in printed if cell.paper is not None]
    tests = [test for test in (compare_spread(*pair) for pair in pairs) if test is not None]
    differ = sum(p < ALPHA for p in adjust({k: p for k, (_, p) in enumerate(tests)}).values())
    ratio = float(np.median([ratio for ratio, _ in tests])) if tests else math.nan
    found = (
        f"median {ratio:.2f} of the printed one; significantly different in {differ} of "
        f"{len(tests)} cells. Extremes: "
    )
    return Claim(
        "table-spread",
        "no other numbers to judge them by; extremes: "
        + _extremes([paper for _, paper in pairs if paper.is_possible]),
        (found if tests else "") + _extremes([ours for ours, _ in pairs]),
        Verdict.of(differ == 0, partly=differ <= ALPHA * len(tests) and abs(ratio - 1) < 0.1),
        method="F test, Holm over all cells. It assumes normal runs; the worst runs are farther "
        "from the mean than that. With a condition: in all but 5 % of the cells",
    )


def rows_below(
    cells: Sequence[Cell], accuracies: Accuracies | None = None
) -> dict[Row, tuple[float, Comparison]]:
    """Compare RPQNN and ANN in the rows in which the printed difference is negative.

    Returns the printed difference and our test, with Holm's correction over these rows.
    """
    table: Any = accuracies or {cell.key: cell.ours for cell in cells}
    means = {cell.key: cell.paper.mean for cell in cells if cell.paper is not None}
    rows = signs(cells)[0]
    tests = holm({row: _test_rows(table, [row], "rpqnn", "ann") for row in rows})
    return {row: (means[*row, "rpqnn"] - means[*row, "ann"], tests[row]) for row in rows}


def _below(printed: Sequence[Cell], accuracies: Accuracies | None) -> Claim:
    negative, agree, differ = signs(printed)
    tests = [test for _, test in rows_below(printed, accuracies).values()]
    below = sum(test.difference < 0 for test in tests)
    significant = [test.sign for test in tests]
    return Claim(
        "table-rpqnn-below-ann",
        f"{len(negative)} rows (images/epochs/hidden): " + _list(negative),
        f"less accurate in {below} of {len(negative)}, significantly in {significant.count(-1)}, "
        f"significantly more accurate in {significant.count(1)}; of all rows, {len(agree)} of "
        f"{len(agree) + len(differ)} signs agree, all but {_list(differ)}",
        Verdict.of(negative and 4 * below >= 3 * len(negative) and 1 not in significant),
        Verdict.HOLDS,
        "signs of the differences; holds if they agree in at least three quarters of these rows "
        "and none is significantly positive (paired t test over the seeds, Holm over the rows)",
    )


def _possible(printed: Samples) -> Claim:
    impossible = ", ".join(
        f"{row_name(key)} {key[3].upper()} (mean {sample.mean:.2f}, best {sample.best:.2f}, worst "
        f"{sample.worst:.2f})"
        for key, sample in printed.items()
        if not sample.is_possible
    )
    verdict = Verdict.of(not impossible)
    return Claim(
        "table-possible",
        f"impossible: {impossible or 'none'}",
        "follows from the printed numbers",
        verdict,
        verdict,
        "the mean is between worst and best; inequalities of Bhatia and Davis, and of Samuelson",
    )


def expected_within(cells: int, runs: int) -> tuple[float, int]:
    """Return how many cells of the same recipe are within 2 standard errors, and how few may be.

    The second number is 2 standard deviations of the binomial distribution below the first.
    Cells that share runs are correlated, so this bound is approximate. With fewer than `ENOUGH`
    runs, only the paper's standard deviation is used.

    >>> expected, least = expected_within(180, 25)
    >>> round(expected), least
    (171, 165)
    """
    freedom = PAPER_RUNS - 1 + (runs - 1 if runs >= ENOUGH else 0)
    share = 1 - 2 * float(stats.t.sf(2, freedom))
    return share * cells, math.ceil(cells * share - 2 * math.sqrt(cells * share * (1 - share)))


def signs(cells: Sequence[Cell]) -> tuple[list[Row], list[Row], list[Row]]:
    """Compare the signs of RPQNN - ANN with the printed ones.

    Returns the rows in which the printed difference is negative, those in which ours has the same
    sign, and those in which it does not.
    """
    paper = {cell.key: cell.paper.mean for cell in cells if cell.paper is not None}
    ours = {cell.key: cell.ours.mean for cell in cells}
    changes = {
        key[:3]: [means[key] - means[*key[:3], "ann"] for means in (paper, ours)]
        for key in paper
        if key[3] == "rpqnn" and (*key[:3], "ann") in paper
    }
    return (
        [row for row, (printed, _) in changes.items() if printed < 0],
        [row for row, (printed, mine) in changes.items() if printed * mine > 0],
        [row for row, (printed, mine) in changes.items() if printed * mine <= 0],
    )


def _list(rows: Sequence[Sequence[int]]) -> str:
    return ", ".join(map(row_name, rows)) or "none"


def _extremes(samples: Sequence[Sample]) -> str:
    """Describe how far best and worst are from the mean, compared with normal samples."""
    found = [(*sample.extremes, *maximum_range(sample.runs)) for sample in samples if sample.std]
    if not found:
        return "-"
    best, worst, low, high = np.array(found).T
    inside = [int(((low <= ends) & (ends <= high)).sum()) for ends in (best, -worst)]
    return (
        f"median best {np.median(best):+.2f} and worst {np.median(worst):+.2f} std from the mean "
        f"(±{expected_maximum(samples[0].runs):.2f} expected), {inside[0]} and {inside[1]} of "
        f"{len(found)} in the 95 % range"
    )
