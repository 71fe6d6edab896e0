"""Short steps to points where several quadratic functions are negative, by a local minimizer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from quadric.certify._faces import Tie
from quadric.checks import Array

MOST_INPUTS = 200
LEAD = 1e-7  # how far below zero, relative to the values at the row
SAMPLES, NUMBERS = 4096, 2**22  # random steps, and numbers in the matrix products for them
STARTS = (4, 16)  # random steps that are starts of the minimizer: fewer for many inputs
EXPONENTS = (-1.0, 1.5)  # of the lengths of random steps, relative to the given ones


def descend(ties: Sequence[Tie], low: Array, high: Array, starts: Array) -> Array:
    """Short steps within bounds at which all functions are negative, not verified.

    Parameters
    ----------
    ties : sequence of Tie
        The functions.
    low, high : arrays of shape (n,)
        The bounds of the steps.
    starts : array of shape (N, n)
        Steps to start from, besides random ones.
    """
    n = len(low)
    if n > MOST_INPUTS:
        return np.empty((0, n))
    # the minimizer stops at absolute differences, so steps are measured in those that are known
    unit = float(np.linalg.norm(starts, axis=1).max(initial=0.0)) or 1.0
    ties = [Tie.of(tie.F, tie.g * unit, tie.A * unit**2) for tie in ties]
    low, high, starts = low / unit, high / unit, starts / unit
    F, g, A = (np.array([getattr(tie, name) for tie in ties]) for name in ("F", "g", "A"))
    # a small lead, so that the solution is inside the region where several functions are zero
    least = LEAD * float(np.abs(F).max())
    constraint: Any = {
        "type": "ineq",
        "fun": lambda s: -((A @ s + g) @ s + F) - least,
        "jac": lambda s: -(2 * A @ s + g),
    }
    found = []
    for start in np.concatenate([starts, _random_steps(ties, low, high)]):
        solved = minimize(
            lambda s: (s @ s, 2 * s),
            start.clip(low, high),
            jac=True,
            method="SLSQP",
            bounds=Bounds(low, high),
            constraints=[constraint],
            options={"ftol": 1e-10},
        )
        if np.isfinite(solved.x).all():
            found.append(solved.x.clip(low, high) * unit)
    return np.array(found).reshape(-1, n)


def _random_steps(ties: Sequence[Tie], low: Array, high: Array) -> Array:
    """Random steps within the bounds: the shortest with negative values, and almost negative ones.

    Most of them differ from zero in a few coordinates only.
    """
    n, rng = len(low), np.random.default_rng(0)
    shape = (int(np.clip(NUMBERS // n**2, STARTS[1], SAMPLES)), n)
    steps = rng.normal(size=shape) * 10 ** rng.uniform(*EXPONENTS, size=(shape[0], 1))
    boxed = np.isfinite(low) & np.isfinite(high)
    inside = rng.uniform(np.where(boxed, low, 0.0), np.where(boxed, high, 0.0), size=shape)
    steps = np.where(boxed & (rng.random(shape) < 0.5), inside, steps)
    steps = np.where(rng.random(shape) < rng.random((shape[0], 1)) ** 2, 0.0, steps)
    steps = steps.clip(low, high)
    values = np.max([tie.at(steps) for tie in ties], axis=0)
    order = np.lexsort([np.linalg.norm(steps, axis=1), np.maximum(values, 0.0)])
    return steps[order[: int(np.clip(256 // n, *STARTS))]]
