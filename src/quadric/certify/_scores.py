"""The class scores of a model as quadratic functions of its inputs."""

from dataclasses import dataclass

import numpy as np

from quadric.certify._distances import gamma
from quadric.certify._model import Classifier, Coordinates
from quadric.certify._norms import TINY, norm
from quadric.certify._rounding import Rounding, rounding_of
from quadric.checks import Array
from quadric.convert import layer_to_quadratic


@dataclass(frozen=True)
class Scores:
    """Scores z_k = u'Q_k u + w_k'u + b_k of the classes, where u = A x + t.

    The scores are evaluated in u, which is well scaled, and differentiated by x, the coordinates in
    which distances are measured. A model with one output has the scores 0 and z.
    """

    Q: Array  # (K, n, n), symmetric
    W: Array
    b: Array
    inputs: Coordinates
    rounding: Rounding
    stored: float  # the relative error with which parameters are stored

    def at(self, X: Array, moved: Array) -> tuple[Array, list[Array], Array, Array]:
        """u and its products with each Q_k, the scores, and bounds on the scores' errors.

        `moved` is a bound on the length of the error of u.
        """
        u = self.inputs.change.apply(X)
        V = [u @ Q for Q in self.Q]
        scores = [((v + w) * u).sum(axis=1) + b for v, w, b in zip(V, self.W, self.b, strict=True)]
        z = np.stack(scores, axis=1)
        # an error of u acts through the gradient, whose length is at most 2 |Q| |u| + |w|
        size, moved = norm(u, axis=1)[:, None], moved[:, None]
        Q, w = norm(self.Q, axis=(1, 2)), norm(self.W, axis=1)
        error = gamma(2 * u.shape[1]) * ((Q * size + w) * size + np.abs(self.b))
        error = error + underflows(u.shape[1]) * (1 + size) * (1 + size)
        return u, V, z, error + moved * (2 * Q * (size + moved) + w)


def underflows(n: int) -> float:
    """A bound on the sum of the errors of products that underflow, for n inputs of at most 1."""
    return 4 * (n + 1) ** 2 * TINY


def class_scores(classifier: Classifier, inputs: Coordinates) -> Scores:
    """The scores of a model; raise ValueError if it does not fold to one layer."""
    folded, name = classifier.folded, type(classifier.estimator).__name__
    if len(folded.layers) > 1:
        raise ValueError(
            f"model must fold to a single quadratic layer. This {name} folds to "
            f"{len(folded.layers)} layers, so its distances have no exact solution. Train with "
            "hidden_layer_sizes=(), or with activation='identity' and one quadratic layer."
        )
    layer = layer_to_quadratic(folded.layers[0])
    Q, W, b = layer.Q, layer.W, layer.b
    if len(b) == 1:
        Q, W, b = (np.concatenate([np.zeros_like(part), part]) for part in (Q, W, b))
    rounding = rounding_of(classifier.network, inputs.dtype, inputs.absolute, inputs.share)
    stored = float(np.finfo(classifier.network.dtype).eps)
    return Scores(Q, W, b, inputs, rounding, stored)
