"""The accuracy of logits, or R² for numbers, on labeled data, as in scikit-learn."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.metrics import r2_score

from quadric.checks import Array, unmasked
from quadric.core import ACTIVATIONS
from quadric.network import Network


@dataclass(frozen=True)
class Score:
    """The score of a model's logits for the targets `y`.

    `labels` are the classes of the outputs, or None for numbers, which are `activation(z)`.
    """

    y: Array
    labels: Array | None
    activation: str

    @classmethod
    def of(cls, estimator: Any, network: Network, y: Any, n_samples: int) -> Self:
        """Check the targets.

        For an estimator with `classes_`, y holds classes. For other models, it holds indices of
        outputs, one-hot rows or numbers.
        """
        if getattr(estimator, "_is_multilabel", False):
            raise ValueError("the outputs are not mutually exclusive classes; give rank instead.")
        y = np.asarray(unmasked("y", y))
        m, last = network.n_outputs, network.activations[-1]
        classes = getattr(estimator, "classes_", None)
        n_columns = m if classes is None else 1
        if y.shape not in ((n_samples,), (n_samples, n_columns)):
            raise ValueError(f"y must have shape ({n_samples},), one entry per row. Got {y.shape}.")
        probable = last in ("logistic", "softmax")
        if classes is None and not probable and (m == 1 or y.ndim == 2):
            return cls(y.reshape(n_samples, m).astype(float), None, last)
        if classes is None and y.ndim == 2 and m > 1:
            y = y.argmax(axis=1)
        labels = np.arange(max(2, m)) if classes is None else np.asarray(classes)
        unknown = sorted(set(y.ravel().tolist()) - set(labels.tolist()), key=str)
        if unknown:
            raise ValueError(f"y must hold the model's classes, {labels.tolist()}. Got {unknown}.")
        return cls(y.ravel(), labels, last)

    @property
    def name(self) -> str:
        return "R²" if self.labels is None else "accuracy"

    def __call__(self, z: Array) -> float:
        if self.labels is None:
            return float(r2_score(self.y, ACTIVATIONS[self.activation].function(z)))
        predicted = (z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)
        return float(np.mean(self.labels[predicted] == self.y))
