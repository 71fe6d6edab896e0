"""Baselines to compare a model with: the most frequent class or the mean, and a linear model."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import LinearRegression, LogisticRegression

from quadric.apps.shell.tables._schema import Schema
from quadric.checks import Array
from quadric.errors import ModelFileError

MOST_STORED = 20_000  # coefficients in a model file, whose description is JSON


def trivial_outputs(schema: Schema, truth: Array | None = None) -> Any:
    """Return the shares of the classes, or the mean of the target.

    They are those of the training table or, if given, of `truth`: indices of classes, or numbers.
    """
    if not schema.classes:
        return schema.target_mean if truth is None else truth.mean()
    k = len(schema.classes)
    counts = schema.class_counts if truth is None else np.bincount(truth, minlength=k)
    return np.array(counts) / np.sum(counts)


@dataclass(frozen=True)
class LinearBaseline:
    """A linear model of the preprocessed columns.

    Parameters
    ----------
    coef : array of shape (n_outputs, n_columns)
        One output per class; a single output for two classes and for regression.
    intercept : array of shape (n_outputs,)
    classifies : bool
        Whether the outputs are log-odds.
    """

    coef: Array
    intercept: Array
    classifies: bool

    @classmethod
    def fit(cls, Z: Any, y: Array, schema: Schema, class_weight: str | None = None) -> Self:
        """Fit the baseline to preprocessed rows."""
        if not schema.classes:
            fitted = LinearRegression().fit(Z, y)
            return cls(fitted.coef_[None, :], np.array([fitted.intercept_]), classifies=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the baseline need not converge
            fitted = LogisticRegression(max_iter=1000, class_weight=class_weight).fit(Z, y)
        return cls(fitted.coef_, fitted.intercept_, classifies=True)

    def outputs(self, Z: Any) -> Array:
        """Return the probabilities of the classes, or the predicted numbers."""
        z = Z @ self.coef.T + self.intercept
        if not self.classifies:
            return z[:, 0]
        if z.shape[1] > 1:
            return softmax(z, axis=1)
        return np.hstack([expit(-z), expit(z)])

    def to_dict(self) -> dict[str, Any] | None:
        """Return the coefficients as JSON values; None if there are more than MOST_STORED."""
        if self.coef.size > MOST_STORED:
            return None
        return {"coef": self.coef.tolist(), "intercept": self.intercept.tolist()}

    @classmethod
    def from_dict(cls, state: Any, schema: Schema, n_columns: int) -> Self | None:
        """Return the baseline that was saved with a model, or None if there is none.

        Raises ModelFileError unless the coefficients are finite and fit the model.
        """
        if state is None:
            return None
        n_outputs = len(schema.classes) if len(schema.classes) > 2 else 1
        try:
            both = np.array(state["coef"], float), np.array(state["intercept"], float)
        except (LookupError, TypeError, ValueError, OverflowError):
            both = np.empty(0), np.empty(0)
        coef, intercept = both
        shapes = coef.shape == (n_outputs, n_columns) and intercept.shape == (n_outputs,)
        if not shapes or not np.isfinite(coef).all() or not np.isfinite(intercept).all():
            raise ModelFileError(
                "the linear baseline in the model file does not fit the model. Train it again with "
                "`quadric train`."
            )
        return cls(coef, intercept, classifies=bool(schema.classes))
