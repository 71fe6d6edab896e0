"""Partial dependence: the mean prediction if one or two inputs are set to given values."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadric.checks import Array, check_integer
from quadric.explain._columns import Columns
from quadric.models import classes_of, input_names_of
from quadric.network import Network
from quadric.utils import listed, rounded

MOST_ROWS = 500
MOST_CATEGORIES = 12
MOST_NUMBERS = 20_000_000  # limit on the entries of all arrays passed to the model together


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
        axes = tuple(range(len(self.inputs)))
        return float(self.mean.std(axis=axes).max())

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
        values = zip(self.grids[0], self.mean[:, k], strict=True)
        form = ".3f" if self.outputs[k].startswith("p(") else ".3g"
        shown = ", ".join(f"{mean:{form}} at {written(value)}" for value, mean in values)
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
    columns = Columns(X, input_names_of(model))
    chosen = [_index(columns, one) for one in inputs]
    if len(chosen) not in (1, 2) or len(set(chosen)) < len(chosen):
        raise ValueError(f"inputs must be one or two different columns. Got {list(inputs)}.")
    grids = [grid_of(columns, k, size) for k in chosen]
    return mean_predictions(model, background_of(columns, max_rows), chosen, grids, target)


def dependences(model: Any, X: Any, *, size: int = 5, target: str = "y") -> list[Dependence]:
    """The partial dependence on every input, the strongest first."""
    columns = Columns(X, input_names_of(model))
    n = len(columns.names)
    rows = int(np.clip(MOST_NUMBERS // (size * n * n), 50, MOST_ROWS))
    background = background_of(columns, rows)
    found = [
        mean_predictions(model, background, [k], [grid_of(columns, k, size)], target)
        for k in range(n)
    ]
    return sorted(found, key=lambda one: -one.strength)


def grid_of(columns: Columns, k: int, size: int) -> list[Any]:
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
    counts = Counter(columns.values(k).tolist())
    return sorted((value for value, _ in counts.most_common(MOST_CATEGORIES)), key=str)


def predictions(model: Any, X: Any) -> Array:
    """The probabilities of the classes, or the predicted numbers, shape (n_samples, n_outputs)."""
    if classes_of(model) is not None and hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))
    if isinstance(model, Network):
        return model.forward(X)
    found = np.asarray(model.predict(X), dtype=float)
    return found[:, None] if found.ndim == 1 else found


def output_names(model: Any, target: str, count: int) -> list[str]:
    """The names of the columns of `predictions`."""
    classes = classes_of(model)
    if classes is not None and hasattr(model, "predict_proba"):
        return [f"p({label})" for label in list(classes)]
    return [target] if count == 1 else [f"{target} {k}" for k in range(count)]


def mean_predictions(
    model: Any, background: Columns, chosen: list[int], grids: list[list[Any]], target: str
) -> Dependence:
    """The mean prediction over the background rows for each combination of values."""
    points = itertools.product(*grids)
    means = [
        predictions(model, background.replaced(dict(zip(chosen, point, strict=True)))).mean(axis=0)
        for point in points
    ]
    mean = np.array(means).reshape(*map(len, grids), -1)
    names = output_names(model, target, mean.shape[-1])
    return Dependence(tuple(background.names[k] for k in chosen), tuple(grids), mean, names)


def background_of(columns: Columns, most: int = MOST_ROWS) -> Columns:
    """At most this many rows, evenly spaced."""
    count = len(columns)
    return columns.take(np.unique(np.linspace(0, count - 1, min(count, most)).astype(int)))


def _index(columns: Columns, one: str | int) -> int:
    if isinstance(one, str) and one in columns.names:
        return columns.names.index(one)
    if isinstance(one, int) and 0 <= one < len(columns.names):
        return one
    raise ValueError(f"the inputs are {listed(columns.names)}. Got {one!r}.")
