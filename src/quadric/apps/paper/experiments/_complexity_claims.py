"""What the paper claims about multiplications, memory and time, judged by counts."""

from collections.abc import Mapping, Sequence
from typing import Any

from quadric.apps.paper.claims import Claim, Verdict
from quadric.reference import _as_printed, _counts

NOT_ERRORS = {("ANN", "update")}  # one of two correct ways to count
COUNT = "exact: count"
NEAR = 1.25  # the factor by which ratios of counts and of times may differ

Forms = Mapping[str, tuple[Any, ...]]  # the rows of `_forms` by name


def printed(model: str, step: str, m: int, n: int) -> int:
    """Return the printed total of a step: the ANN's count plus the printed extra."""
    extra = 0 if model == "ann" else _as_printed.COUNTS[model, f"extra {step}"](m, n)
    return int(_as_printed.COUNTS["ann", step](m, n) + extra)


def claims_of(
    counted: Sequence[tuple[Any, ...]], exponents: Sequence[tuple[Any, ...]], forms: Forms
) -> list[Claim]:
    """Judge the claims; the arguments are the rows of the tables of counts, growth and forms."""
    wrong = [f"{row[0]} {row[1]}" for row in counted if row[5] and row[:2] not in NOT_ERRORS]
    # by the paper's own counts; layer 1 of 784-30-10 has no backward pass
    A_BP = sum(printed("ann", step, 10, 30) for step in ("backward", "update"))
    omitted = printed("ann", "update", 30, 784)
    return [
        Claim(
            "table-1",
            "contradicts the sums R_FP and R_BP in the text",
            "the counts differ for: " + ", ".join(wrong) if wrong else "all counts agree",
            Verdict.FAILS if wrong else Verdict.HOLDS,
            Verdict.FAILS,
            COUNT,
        ),
        Claim(
            "ann-total",
            "the sum omits layer 1, which the algorithm updates",
            f"for 784-30-10, the printed A_BP is {A_BP}; the update of layer 1, which it omits, "
            f"takes {omitted} more",
            Verdict.FAILS if omitted else Verdict.HOLDS,
            Verdict.FAILS,
            COUNT,
        ),
        _growth_claim("asymptotic-time", {row[0]: row[2] for row in exponents}),
        _growth_claim("asymptotic-space", {row[0]: row[3] for row in exponents}),
        _block_product_claim(exponents[-1][2]),
        _caching_claim(forms),
        _time_claim(forms),
        _library_claim(forms),
    ]


def _growth_claim(name: str, exponents: Mapping[str, float]) -> Claim:
    holds = all(abs(exponents[model] - n) < 0.1 for model, n in (("QNN", 3), ("RPQNN", 2)))
    return Claim(
        name,
        "follows from the printed counts",
        "exponents of n: "
        + ", ".join(f"{exponents[model]:.2f} ({model})" for model in ("QNN", "ANN", "RPQNN")),
        Verdict.HOLDS if holds else Verdict.FAILS,
        Verdict.HOLDS,
        "exact: counts for 512 and 1024 neurons and inputs",
    )


def _block_product_claim(exponent: float) -> Claim:
    return Claim(
        "asymptotic-time-literal",
        "its counts skip the zeros of A",
        f"this product takes m²n² multiplications, exponent {exponent:.2f}. O(n³) holds if the "
        "zeros of A are skipped, for example with one product per neuron",
        Verdict.HOLDS if exponent < 3.1 else Verdict.FAILS,
        Verdict.UNKNOWN,
        COUNT,
    )


def _caching_claim(forms: Forms) -> Claim:
    cached, again = forms["QNN, V cached"], forms["QNN, V computed again in the backward pass"]
    saved, timed = (f"{100 * (1 - cached[k] / again[k]):.0f} %" for k in (1, 4))
    reduced, twice = forms["RPQNN, v1 and v2 cached"], forms["RPQNN, v1 and v2 computed again"]
    saves = cached[1] < again[1] and reduced[1] < twice[1]
    return Claim(
        "caching",
        "derived, not quantified",
        f"it saves {again[1] - cached[1]} of the {again[1]} multiplications of the last layer "
        f"of 784-30-10 ({saved}), and {timed} of the time of a step of this network in NumPy. "
        "With n neurons and n inputs, it saves up to 40 %. "
        f"Caching v1 and v2 saves {twice[1] - reduced[1]} of {twice[1]}",
        Verdict.HOLDS if saves else Verdict.FAILS,
        Verdict.HOLDS,
        COUNT,
    )


def _time_claim(forms: Forms) -> Claim:
    cached, literal = forms["QNN, V cached"], forms["QNN, block product A Q"]
    kronecker = forms["QNN, block product and full Kronecker product"]
    reduced = forms["RPQNN, v1 and v2 cached"]
    ann = sum(
        printed("ann", step, m, n)
        for step, m, n in (
            ("forward", 30, 784),
            ("update", 30, 784),
            *((step, 10, 30) for step in _counts.STEPS),
        )
    )
    extra = sum(_as_printed.COUNTS["qnn", f"extra {step}"](10, 30) for step in _counts.STEPS)
    ratios = ((form[3], form[5]) for form in (cached, literal, kronecker, reduced))
    near = all(1 / NEAR < count / time < NEAR for count, time in ratios)
    return Claim(
        "multiplications-measure-time",
        f"its counts give QNN / ANN = {(ann + extra) / ann:.2f}, its times 3.67",
        f"counts give {cached[3]:.2f} if V is computed without the zeros of A, {literal[3]:.2f}"
        f" with the block product, and {kronecker[3]:.2f} with the full Kronecker product. "
        f"The times in NumPy are {cached[5]:.2f}, {literal[5]:.2f} and {kronecker[5]:.2f} times"
        " those of the ANN. The products as printed, with all zeros of A, come nearest to 3.67",
        Verdict.HOLDS if near else Verdict.FAILS,
        Verdict.FAILS,
        "holds if the ratios to the ANN of counts and times agree within a factor "
        f"{NEAR} for four forms",
    )


def _library_claim(forms: Forms) -> Claim:
    cached = forms["QNN, V cached"]
    kronecker = forms["QNN, block product and full Kronecker product"]
    return Claim(
        "library-operations",
        "no counts or times of the library operations",
        "only if the zeros of A and the second triangle are skipped. The block product and the "
        f"Kronecker product of a library take {kronecker[1]} multiplications for the last layer of "
        f"784-30-10, one product per neuron {cached[1]}",
        Verdict.CONDITIONALLY if kronecker[1] > cached[1] else Verdict.HOLDS,
        Verdict.UNKNOWN,
        COUNT,
    )
