"""The class scores of a model as quadratic functions of its inputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.certify._distances import gamma
from quadric.convert._fold import ACCEPTED, fold
from quadric.convert._layers import layer_to_quadratic
from quadric.explain._coordinates import Space, affine_space
from quadric.geometry._affine_map import AffineMap
from quadric.pipelines._table import split_network


@dataclass(frozen=True)
class Scores:
    """Scores z_k = u'Q_k u + w_k'u + b_k of the classes, where u = A x + t.

    The scores are evaluated in u, which is well scaled, and differentiated by x, the coordinates in
    which distances are measured. A model with one output has the scores 0 and z.
    """

    Q: Array  # (K, n, n), symmetric
    W: Array
    b: Array
    change: AffineMap  # from x to u
    labels: Array
    space: Space

    def at(self, X: Array) -> tuple[Array, list[Array], Array, Array]:
        """u and its products with each Q_k, the scores, and bounds of the scores' errors."""
        u = self.change.apply(X)
        V = [u @ Q for Q in self.Q]
        scores = [((v + w) * u).sum(axis=1) + b for v, w, b in zip(V, self.W, self.b, strict=True)]
        z = np.stack(scores, axis=1)
        # an error of u acts through the gradient, whose length is at most 2 |Q| |u| + |w|
        size, moved = np.linalg.norm(u, axis=1)[:, None], self.rounding(X)[:, None]
        Q, w = np.linalg.norm(self.Q, axis=(1, 2)), np.linalg.norm(self.W, axis=1)
        error = gamma(2 * u.shape[1]) * (Q * size**2 + w * size + np.abs(self.b))
        return u, V, z, error + moved * (2 * Q * (size + moved) + w)

    def rounding(self, X: Array) -> Array:
        """Bound of the length of the error of u for each row of X."""
        A, t = np.linalg.norm(self.change.A), np.linalg.norm(self.change.t)
        return gamma(X.shape[1]) * (A * np.linalg.norm(X, axis=1) + t)


def class_scores(model: Any) -> Scores:
    """The scores of a model that folds to one layer; an error explains why another does not."""
    named_steps, estimator, network = split_network(model, ACCEPTED)
    last = network.activations[-1]
    if last not in ("logistic", "softmax") or getattr(estimator, "_is_multilabel", False):
        raise ValueError(
            f"model must choose one of several classes. This {type(estimator).__name__} has "
            f"{last!r} outputs that are not mutually exclusive classes."
        )
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) < 2:
        raise ValueError("model must know at least two classes. It was fitted to one class only.")
    folded = fold(network)
    if len(folded.layers) > 1:
        raise ValueError(
            f"model must fold to a single quadratic layer. This {type(estimator).__name__} folds "
            f"to {len(folded.layers)} layers, so its distances have no exact solution. Train with "
            "hidden_layer_sizes=(), or with activation='identity' and one quadratic layer."
        )
    layer = layer_to_quadratic(folded.layers[0])
    steps, names = [step for _, step in named_steps], getattr(model, "feature_names_in_", None)
    space = affine_space(steps, (), network.n_inputs, None, names)
    if space.kind != "inputs" and not space.encodings.any():
        raise ValueError(
            f"the steps before the model must be affine or encode categories. {space.note}"
        )
    change = AffineMap(np.ones(len(space.names)), np.zeros(len(space.names)))
    for step in space.maps:
        change = step.after(change)
    Q, W, b = layer.Q, layer.W, layer.b
    if len(b) == 1:
        Q, W, b = (np.concatenate([np.zeros_like(part), part]) for part in (Q, W, b))
    labels = np.arange(len(b)) if classes is None else np.asarray(classes)
    return Scores(Q, W, b, change, labels, space)
