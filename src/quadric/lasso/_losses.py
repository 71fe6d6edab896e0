"""The losses of the lasso: those of `core`, with their curvatures and convex conjugates.

With the activation that belongs to a loss, its derivative with respect to z is the residual
r = mu - y, where mu is the prediction.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from quadric.checks import Array
from quadric.core import LOSSES as CORE_LOSSES


@dataclass(frozen=True)
class Loss:
    """A convex loss of the scores z, shape (n_samples, K), and targets y of the same shape.

    Parameters
    ----------
    name, last : str
        Its name in `core`, and the activation that belongs to it.
    conjugate : callable
        `conjugate(r, y)` is the convex conjugate of each sample's loss at a derivative r.
    curvature : callable
        `curvature(mu, k, l)` holds the second derivatives with respect to z_k and z_l.
    """

    name: str
    last: str
    conjugate: Callable[[Array, Array], Array]
    curvature: Callable[[Array, int, int], Array]

    def values(self, z: Array, y: Array) -> Array:
        """The loss of each sample."""
        return CORE_LOSSES[self.name].value(self.last, z, y)

    def residual(self, z: Array, y: Array) -> Array:
        """The derivatives of the losses with respect to z."""
        return CORE_LOSSES[self.name].value_and_delta(self.last, z, y)[1]


def _spread(mu: Array, k: int, l: int) -> Array:
    found: Array = mu[:, k] * (float(k == l) - mu[:, l])
    return found


def _entropy(mu: Array) -> Array:
    found: Array = special.xlogy(mu, np.maximum(mu, 0.0)).sum(axis=1)
    return found


LOSSES = {
    "squared": Loss(
        "squared_error",
        "identity",
        lambda r, y: (r * r / 2 + r * y).sum(axis=1),
        lambda mu, k, l: np.full(len(mu), float(k == l)),
    ),
    "logistic": Loss(
        "binary_cross_entropy",
        "logistic",
        lambda r, y: _entropy(r + y) + _entropy(1 - (r + y)),
        _spread,
    ),
    "multinomial": Loss("cross_entropy", "softmax", lambda r, y: _entropy(r + y), _spread),
}
