"""What the paper claims about its MNIST table, judged on the printed numbers and on ours.

Differences between models are judged by Welch's test with Holm's correction over all rows of a
claim. A difference that is not significant is undecided: it counts neither for nor against.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from quadric.apps.paper.claims import NEEDS_FULL, Claim, Verdict
from quadric.apps.paper.experiments._mnist_cells import Cell, Row, Samples
from quadric.apps.paper.experiments._mnist_reproduction import reproduction_claims
from quadric.apps.paper.experiments._statistics import Comparison, Sample, contrast, holm
from quadric.apps.paper.sweep import WIDTHS

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
