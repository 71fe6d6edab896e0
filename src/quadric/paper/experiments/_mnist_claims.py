"""What the paper claims about its MNIST table, judged on the printed numbers and on ours.

Differences between models are judged by Welch's test with Holm's correction over all rows of a
claim. A difference that is not significant is undecided: it counts neither for nor against.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from quadric.paper.experiments._experiment import Claim
from quadric.paper.experiments._mnist_cells import Cell, Row, Samples
from quadric.paper.experiments._mnist_reproduction import reproduction_claims
from quadric.paper.experiments._statistics import Comparison, Sample, contrast, holm
from quadric.paper.sweep import WIDTHS

ENOUGH = 10  # runs per cell; with fewer, our numbers are shown, but there is no verdict
FEW = (1200, 10, 20)  # "small" numbers of images, epochs and hidden neurons: at most these
ALMOST = 0.8  # the share of the QNN's gain that counts as "almost the same"
RULE = (
    "A claim about many rows holds if most of its differences are significant (Welch's test with "
    "Holm's correction over the rows, 5 %) and none is significant in the opposite direction. "
    f"With fewer than {ENOUGH} runs per cell there are no verdicts."
)

Verdict = tuple[str, bool | None]
Judge = Callable[[Samples], Verdict]


def claims_of(cells: Sequence[Cell], compared: bool) -> list[Claim]:
    """Judge whether the table is reproduced, and the paper's claims about it.

    If the data are not the paper's, our numbers are shown without verdicts.
    """
    ours = {cell.key: cell.ours for cell in cells}
    theirs = {cell.key: cell.paper for cell in cells if cell.paper is not None}
    enough = compared and min(sample.runs for sample in ours.values()) >= ENOUGH
    claims = reproduction_claims(cells, enough) if theirs else []
    for text, judge in CLAIMS.items():
        paper, paper_holds = judge(theirs) if theirs else ("-", None)
        mine, holds = judge(ours)
        claims.append(Claim(text, paper, mine, holds if enough else None, paper_holds))
    return claims


def comparisons(samples: Samples, better: str, worse: str) -> dict[Row, Comparison]:
    """Compare two models in every row of equal size, epochs and width, with Holm's correction."""
    rows = [key[:3] for key in samples if key[3] == better and (*key[:3], worse) in samples]
    return holm(
        {row: contrast((1, samples[*row, better]), (-1, samples[*row, worse])) for row in rows}
    )


def _in_most(tests: Mapping[Any, Comparison], words: tuple[str, str]) -> Verdict:
    """Judge whether most differences are significantly positive and none significantly negative.

    `words` name a positive and a negative difference.
    """
    signs = [test.sign for test in tests.values()]
    return _counts(signs, words), 2 * signs.count(1) > len(signs) and -1 not in signs


def _counts(signs: Sequence[int], words: tuple[str, str]) -> str:
    parts = [f"{word} in {signs.count(sign)}" for word, sign in zip(words, (1, -1), strict=True)]
    return f"significantly {', '.join(parts)} of {len(signs)}"


def _outperforms(better: str, worse: str) -> Judge:
    return lambda samples: _in_most(comparisons(samples, better, worse), ("better", "worse"))


def _outperforms_if_few(better: str, worse: str) -> Judge:
    def judge(samples: Samples) -> Verdict:
        tests = comparisons(samples, better, worse)
        signs = [test.sign for row, test in tests.items() if np.all(np.array(row) <= FEW)]
        return _counts(signs, ("better", "worse")), all(sign == 1 for sign in signs)

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


def _fewer_suffice(model: str) -> Judge:
    """Compare the model of the second-largest width with the ANN of the largest width."""

    def judge(samples: Samples) -> Verdict:
        fewer, most = WIDTHS[-2:]
        tests = {
            row: contrast((1, samples[*row, fewer, model]), (-1, samples[*row, most, "ann"]))
            for row in sorted({key[:2] for key in samples})
        }
        return _in_most(holm(tests), ("better", "worse"))

    return judge


def _almost_the_same(samples: Samples) -> Verdict:
    qnn, rpqnn = (comparisons(samples, model, "ann") for model in ("qnn", "rpqnn"))
    shares = [rpqnn[row].difference / qnn[row].difference for row in qnn if qnn[row].sign == 1]
    if not shares:
        return "-", None
    median = float(np.median(shares))
    many = sum(share >= ALMOST for share in shares)
    return (
        f"median {median:.0%}, at least {ALMOST:.0%} in {many} of {len(shares)}",
        median >= ALMOST,
    )


_GAIN = "the QNN's gain over the ANN is smaller with the most {} than with the fewest"
_FEW = "if images, epochs and hidden neurons are few (all rows with at most 1200, 10 and 20)"
_FEWER = "fewer hidden neurons suffice: the {} with 25 is better than the ANN with 30"
CLAIMS: dict[str, Judge] = {
    "the QNN significantly outperforms the ANN on MNIST": _outperforms("qnn", "ann"),
    "the RPQNN significantly outperforms the ANN on MNIST": _outperforms("rpqnn", "ann"),
    f"the QNN significantly outperforms the ANN {_FEW}": _outperforms_if_few("qnn", "ann"),
    f"the RPQNN significantly outperforms the ANN {_FEW}": _outperforms_if_few("rpqnn", "ann"),
    _GAIN.format("images"): _gain_falls(0),
    _GAIN.format("epochs"): _gain_falls(1),
    _GAIN.format("hidden neurons"): _gain_falls(2),
    _FEWER.format("QNN"): _fewer_suffice("qnn"),
    _FEWER.format("RPQNN"): _fewer_suffice("rpqnn"),
    "the RPQNN has almost the same benefit: its gain is at least 80 % of the QNN's (median of the "
    "rows in which the QNN gains significantly)": _almost_the_same,
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
