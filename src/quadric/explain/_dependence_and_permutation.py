"""How the predictions of any model depend on its inputs.

A partial dependence is the mean prediction if one or two inputs are set to given values, and a
permutation importance is the drop of the score if an input is shuffled. `InputData` replaces values
in the data that a model accepts: arrays, and pandas or Polars frames.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from quadric.checks import Array, check_integer, unmasked
from quadric.models import classes_of, input_names_of
from quadric.network import Network
from quadric.utils import listed, rounded

MOST_ROWS = 500
MOST_CATEGORIES = 12
MOST_NUMBERS = 20_000_000  # limit on the entries of all arrays passed to the model together


class InputData:
    """Data whose columns can be read, and replaced to ask what a model would predict.

    Parameters
    ----------
    X : array of shape (n_samples, n_features) or DataFrame
        The data, which is never modified.
    names : sequence of str, optional
        The names of an array's columns, by default x1, x2, ..., or the columns of a frame that the
        model uses, in its order.
    """

    def __init__(self, X: Any, names: Any = None) -> None:
        self.is_frame = hasattr(X, "columns")
        self.X: Any = X if self.is_frame else np.asarray(unmasked("X", X))
        if self.is_frame:
            if names is not None and set(names) <= set(X.columns):
                self.X = X[list(names)]
            names = list(self.X.columns)
        elif self.X.ndim != 2 or (names is not None and len(names) != self.X.shape[1]):
            expected = "two dimensions" if names is None else f"shape (n_samples, {len(names)})"
            raise ValueError(f"X must have {expected}. Got shape {self.X.shape}.")
        elif names is None:
            names = [f"x{i + 1}" for i in range(self.X.shape[1])]
        self.names = [str(name) for name in names]

    def __len__(self) -> int:
        return len(self.X)

    def values(self, k: int) -> Array:
        """Return the values of a column."""
        return np.asarray(self.X[self.X.columns[k]]) if self.is_frame else self.X[:, k]

    def numbers(self, k: int) -> Array | None:
        """Return a column as numbers, NaN where missing; None if it is not numeric."""
        values = self.values(k)
        if values.dtype.kind in "OUS" and any(isinstance(v, str) for v in values):
            return None
        try:
            return values.astype(float)
        except (TypeError, ValueError):
            return None

    def take(self, rows: Array) -> "InputData":
        """Return some of the rows."""
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows.tolist()]
        return InputData(X, self.names)

    def replaced(self, new: dict[int, Any]) -> Any:
        """Return the data with new values in some columns, in the form of X."""
        if not self.is_frame:
            # integers become floats, because the new values may lie between them
            X = self.X.astype(float) if self.X.dtype.kind in "iub" else self.X.copy()
            for k, values in new.items():
                X[:, k] = values
            return X
        X = self.X
        for k, values in new.items():
            old = X[X.columns[k]]
            values = np.broadcast_to(np.asarray(values, dtype=object), len(X)).tolist()
            if hasattr(X, "with_columns"):  # Polars
                # whether one of the numbers lies between integers; missing ones are ignored
                between = old.dtype.is_integer() and any(
                    v is not None and math.isfinite(v) and v % 1 for v in values
                )
                dtype = None if between else old.dtype
                X = X.with_columns(type(old)(old.name, values, dtype=dtype, strict=False))
            else:
                numeric = old.dtype.kind in "iub" and all(
                    v is not None and float(v).is_integer() for v in values
                )
                dtype = old.dtype if numeric else float if old.dtype.kind in "iufb" else object
                X = X.copy()
                X[X.columns[k]] = type(old)(values, index=old.index, dtype=dtype)
        return X


@dataclass(frozen=True)
class Dependence:
    """Mean predictions for a grid of values of one or two inputs.

    Parameters
    ----------
    inputs : tuple of str
        The inputs that are varied.
    grids : tuple of lists
        The values of each input.
    mean : array of shape (n_values, n_outputs) or (n_values, n_other_values, n_outputs)
        The prediction for these values, averaged over the rows of the data. The outputs are the
        probabilities of the classes, or the predicted numbers.
    outputs : list of str
        The name of each output.
    """

    inputs: tuple[str, ...]
    grids: tuple[list[Any], ...]
    mean: Array
    outputs: list[str]

    @property
    def strength(self) -> float:
        """The standard deviation of the mean prediction over the grid, largest over the outputs."""
        return float(self.mean.std(axis=tuple(range(len(self.inputs)))).max())

    @property
    def main_output(self) -> int:
        """The index of the output that varies most; of two classes, the second one."""
        if len(self.outputs) == 2 and self.outputs[0].startswith("p("):
            return 1
        return int(self.mean.std(axis=tuple(range(len(self.inputs)))).argmax())

    def __str__(self) -> str:
        if len(self.inputs) == 2:
            return f"partial dependence on {self.inputs[0]} and {self.inputs[1]}"
        k = self.main_output
        form = ".3f" if self.outputs[k].startswith("p(") else ".3g"
        shown = ", ".join(
            f"{mean:{form}} at {written(value)}"
            for value, mean in zip(self.grids[0], self.mean[:, k], strict=True)
        )
        return f"{self.inputs[0]}: {self.outputs[k]} = {shown}"

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain numbers, strings and lists, ready for JSON.

        Returns
        -------
        dict
            The attributes.
        """
        return {
            "inputs": list(self.inputs),
            "grids": [list(grid) for grid in self.grids],
            "outputs": self.outputs,
            "mean": self.mean.tolist(),
            "strength": self.strength,
        }


def written(value: Any) -> str:
    """A value of an input as text."""
    if value is None:
        return "missing"
    return rounded(value) if isinstance(value, float) else str(value)


def dependence(
    model: Any,
    X: Any,
    inputs: Sequence[str | int],
    *,
    size: int = 20,
    target: str = "y",
    max_rows: int = MOST_ROWS,
) -> Dependence:
    """Compute the partial dependence of a model's predictions on one or two inputs.

    Parameters
    ----------
    model : Network, fitted estimator, or Pipeline
        Any model with `predict_proba` or `predict`. For a Network, these are its outputs.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, in the form that the model accepts.
    inputs : sequence of str or int
        Names or indices of one or two columns of X.
    size : int
        Number of values of a numeric input, from its 5 % to its 95 % quantile. For an input with
        categories, the most frequent ones are used. An input without any finite number stays
        missing.
    target : str
        Name of the predicted number.
    max_rows : int
        The mean is over at most this many rows of X, evenly spaced; ``len(X)`` uses all of them.

    Returns
    -------
    Dependence
        The mean predictions.
    """
    max_rows = check_integer("max_rows", max_rows, at_least=1)
    columns = InputData(X, input_names_of(model))
    chosen = [_index(columns, one) for one in inputs]
    if len(chosen) not in (1, 2) or len(set(chosen)) < len(chosen):
        raise ValueError(f"inputs must be one or two different columns. Got {list(inputs)}.")
    grids = [grid_of(columns, k, size) for k in chosen]
    return mean_predictions(model, background_of(columns, max_rows), chosen, grids, target)


def dependences(model: Any, X: Any, *, size: int = 5, target: str = "y") -> list[Dependence]:
    """The partial dependence on every input, the strongest first."""
    columns = InputData(X, input_names_of(model))
    n = len(columns.names)
    background = background_of(columns, int(np.clip(MOST_NUMBERS // (size * n * n), 50, MOST_ROWS)))
    found = (
        mean_predictions(model, background, [k], [grid_of(columns, k, size)], target)
        for k in range(n)
    )
    return sorted(found, key=lambda one: -one.strength)


def grid_of(columns: InputData, k: int, size: int) -> list[Any]:
    """Values of a column: quantiles of numbers, or the most frequent categories.

    A column without numbers has the single value None, which means missing.
    """
    if not len(columns):
        raise ValueError("X must have at least one row. Got none.")
    numbers = columns.numbers(k)
    if numbers is not None:
        present = numbers[np.isfinite(numbers)]
        if not len(present):
            return [None]
        distinct = np.unique(present)
        if len(distinct) <= min(size, 3):
            return distinct.tolist()
        low, high = np.quantile(present, [0.05, 0.95])
        if low == high:
            low, high = distinct[0], distinct[-1]
        return np.linspace(low, high, size).tolist()
    frequent = Counter(columns.values(k).tolist()).most_common(MOST_CATEGORIES)
    return sorted((value for value, _ in frequent), key=str)


def predictions(model: Any, X: Any) -> Array:
    """The probabilities of the classes, or the predicted numbers, shape (n_samples, n_outputs)."""
    if classes_of(model) is not None and hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))
    if isinstance(model, Network):
        return model.forward(X)
    found = np.asarray(model.predict(X), dtype=float)
    return found[:, None] if found.ndim == 1 else found


def mean_predictions(
    model: Any, background: InputData, chosen: list[int], grids: list[list[Any]], target: str
) -> Dependence:
    """The mean prediction over the background rows for each combination of values."""
    means = [
        predictions(model, background.replaced(dict(zip(chosen, point, strict=True)))).mean(axis=0)
        for point in itertools.product(*grids)
    ]
    mean = np.array(means).reshape(*map(len, grids), -1)
    names = [f"{target} {k}" for k in range(mean.shape[-1])] if mean.shape[-1] > 1 else [target]
    if classes_of(model) is not None and hasattr(model, "predict_proba"):
        names = [f"p({label})" for label in classes_of(model)]
    return Dependence(tuple(background.names[k] for k in chosen), tuple(grids), mean, names)


def background_of(columns: InputData, most: int = MOST_ROWS) -> InputData:
    """At most this many rows, evenly spaced."""
    rows = np.linspace(0, len(columns) - 1, min(len(columns), most))
    return columns.take(np.unique(rows.astype(int)))


def _index(columns: InputData, one: str | int) -> int:
    if isinstance(one, str) and one in columns.names:
        return columns.names.index(one)
    if isinstance(one, int) and 0 <= one < len(columns.names):
        return one
    raise ValueError(f"the inputs are {listed(columns.names)}. Got {one!r}.")


# ---------------------------------------------------------------- permutation importances


@dataclass(frozen=True)
class PermutationImportance:
    """How much the score drops if the values of one input are shuffled.

    Parameters
    ----------
    name : str
        The input: a column of the data, before any encoding.
    mean, std : float
        Mean and standard deviation of the drop over the repetitions. The score is the accuracy of
        a classifier, or R² of a regressor, averaged over its outputs. A row with several labels
        counts as correct if all of them are.
    """

    name: str
    mean: float
    std: float

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
            The attributes.
        """
        return asdict(self)


def permutation_importances(
    model: Any, X: Any, y: Any, *, repeats: int = 5, rng: Any = 0
) -> list[PermutationImportance]:
    """Measure how much a model's score drops if the values of one input are shuffled.

    Parameters
    ----------
    model : fitted estimator, or Pipeline
        A classifier or regressor.
    X : array of shape (n_samples, n_features) or DataFrame
        Data, preferably not used in training.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        The true classes or numbers.
    repeats : int
        Number of times each input is shuffled.
    rng : int, Generator or None
        Seed of the shuffling.

    Returns
    -------
    list of PermutationImportance
        One entry per column of X, the most important first.

    Notes
    -----
    If two inputs carry the same information, shuffling one of them changes little, and both seem
    unimportant.
    """
    repeats = check_integer("repeats", repeats, at_least=1)
    columns, y = InputData(X, input_names_of(model)), _one_column(y)
    if y.shape[:1] != (len(columns),):
        raise ValueError(
            f"y must hold {len(columns)} values, one per row of X. Got shape {y.shape}."
        )
    rng, score = np.random.default_rng(rng), _score(model, X, y)
    found = []
    for k, name in enumerate(columns.names):
        drops = [
            score - _score(model, columns.replaced({k: rng.permutation(columns.values(k))}), y)
            for _ in range(repeats)
        ]
        found.append(PermutationImportance(name, float(np.mean(drops)), float(np.std(drops))))
    return sorted(found, key=lambda one: -one.mean)


def _one_column(y: Any) -> Array:
    """The targets as an array; a single column becomes a vector."""
    y = np.asarray(y)
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _score(model: Any, X: Any, y: Array) -> float:
    """Accuracy, or R² averaged over the outputs, as `score` in scikit-learn."""
    predicted = _one_column(model.predict(X))
    if predicted.shape != y.shape:  # otherwise, NumPy would compare all pairs of rows
        raise ValueError(
            f"y must have shape {predicted.shape}, as the predictions of the model. Got {y.shape}."
        )
    network = isinstance(model, Network) and model.activations[-1] in ("logistic", "softmax")
    if network or classes_of(model) is not None:
        right = predicted == y
        return float(np.mean(right if right.ndim == 1 else right.all(axis=1)))
    return float(r2_score(y, predicted))
