"""A spectrum as text: a table per class with the strongest eigenvectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quadric.checks import Array
from quadric.explain._text import percent
from quadric.utils import counted, visible

if TYPE_CHECKING:
    from quadric.explain._spectrum import Spectrum

MOST_LABELS = 20


def as_text(found: Spectrum, top: int = 3, inputs: int = 4, most: int | None = MOST_LABELS) -> str:
    """The spectrum, with `top` eigenvectors per class and `inputs` inputs of each."""
    n = len(found.names)
    lines = [
        f"Spectrum of Q for {counted(len(found.labels), 'output')} over {counted(n, 'input')}.",
        found.note,
        "A positive eigenvalue raises the score of inputs that resemble the eigenvector or its "
        "negative; a negative one lowers it.",
        "Share: of the sum of the squared eigenvalues. Effective rank: (sum |λ|)² / sum λ².",
    ]
    for k, label in enumerate(found.labels[:most]):
        lines += ["", *_output_lines(found, k, label, top, inputs)]
    if most is not None and len(found.labels) > most:
        lines += ["", f"({counted(len(found.labels) - most, 'more output')}; --all lists all)"]
    return "\n".join(map(visible, lines))


def _output_lines(found: Spectrum, k: int, label: Any, top: int, inputs: int) -> list[str]:
    values, shares = found.eigenvalues[k], found.energy[k]
    plus, minus = len(found.positive[k].eigenvalues), len(found.negative[k].eigenvalues)
    head = (
        f"{label}: effective rank {found.effective_rank[k]:.1f}, "
        f"{plus} positive and {minus} negative eigenvalues"
    )
    lines = [head, "  eigenvalue    share   strongest inputs"]
    for value, share, vector in zip(values[:top], shares, found.eigenvectors[k], strict=False):
        lines.append(
            f"  {value:+10.4g}  {percent(share)}   {strongest(vector, found.names, inputs)}"
        )
    if len(values) > top:
        rest = counted(len(values) - top, "smaller eigenvalue")
        lines.append(f"  {'':10}  {percent(shares[top:].sum())}   ({rest})")
    return lines


def strongest(vector: Array, names: list[str], count: int) -> str:
    """The inputs with the largest components, such as '+0.89 age, -0.45 income'.

    >>> strongest(np.array([0.6, 0.0, -0.8]), ["a", "b", "c"], 2)
    '-0.80 c, +0.60 a'
    """
    order = np.argsort(-np.abs(vector), kind="stable")[:count]
    return ", ".join(f"{vector[i]:+.2f} {visible(names[i])}" for i in order if vector[i])
