"""The problem that the network of an estimator solves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.checks import Array


@dataclass(frozen=True)
class Problem:
    """What the network learns: targets and their weights, loss, last activation and score.

    `encode(dtype)` returns the targets, shape (n_samples, n_outputs). They may be much larger than
    y, so memory is checked before it is called. `score(logits, targets, weights)` is used for early
    stopping, which holds out part of every class if `stratify` is true. If `standardize` is true,
    'lbfgs' receives targets of variance 1, so that the penalty does not depend on their units.
    """

    encode: Callable[[np.dtype[Any]], Array]
    n_outputs: int
    weight: Array | None
    loss: str
    last: str
    score: Callable[[Array, Array, Array | None], float]
    stratify: bool = False
    standardize: bool = False
