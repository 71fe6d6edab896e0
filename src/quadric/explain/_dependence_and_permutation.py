"""How the predictions of any model depend on its inputs.

A partial dependence is the mean prediction if one or two inputs are set to given values. The effect
of an input is how much the prediction changes if the input is shuffled, and its permutation
importance how much the score drops. `InputData` replaces values in the data that a model accepts:
arrays, and pandas or Polars frames.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from quadric.checks import Array, check_integer, unmasked
from quadric.models import ModelView, classes_of, input_names_of
from quadric.network import Network
from quadric.utils import listed, rounded

MOST_ROWS = 500
MOST_CATEGORIES = 12
REPEATS = 5  # of a permutation
FEWEST_ROWS = 20  # with which the effect of an input is measured, however many inputs there are
AT_ONCE = 4_000_000  # entries of the array that is passed to the model
MOST_PAIRED = 4  # inputs whose pairs are compared
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
    orders : dict of str to list, optional
        The categories of some columns, in their order.
    """

    @classmethod
    def of(cls, model: Any, X: Any) -> "InputData":
        """Return the columns of X that a model uses, with the order of their categories."""
        try:
            orders = ModelView.of(model).orders
        except TypeError:  # another library's model
            orders = {}
        return cls(X, input_names_of(model), orders)

    def __init__(self, X: Any, names: Any = None, orders: Any = None) -> None:
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
        self.orders: dict[str, list[Any]] = orders or {}

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
        return InputData(X, self.names, self.orders)

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
                # a nullable column keeps its missing values
                present = [v for v in values if isinstance(v, Real)]
                complete = len(present) == len(values) or not isinstance(old.dtype, np.dtype)
                numeric = (
                    old.dtype.kind in "iub"
                    and complete
                    and all(float(v).is_integer() for v in present)
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
        probabilities of the classes, their scores, or the predicted numbers.
    outputs : list of str
        The name of each output.
    n_values : tuple of int
        Of an input with categories, the number of all its values; the grid has at most 12 of them.
    """

    inputs: tuple[str, ...]
    grids: tuple[list[Any], ...]
    mean: Array
    outputs: list[str]
    n_values: tuple[int, ...] = ()

    @property
    def labels(self) -> list[str]:
        """The inputs; if only the most frequent categories are in a grid, also their number."""
        counts = self.n_values or tuple(map(len, self.grids))
        return [
            f"{name} ({len(grid)} of {count} values)" if count > len(grid) else name
            for name, grid, count in zip(self.inputs, self.grids, counts, strict=True)
        ]

    @property
    def strength(self) -> float:
        """The standard deviation of the mean prediction over the grid, largest over the outputs."""
        return float(self.mean.std(axis=tuple(range(len(self.inputs)))).max())

    @property
    def interaction(self) -> float:
        """How far the joint dependence on two inputs is from a sum of two functions."""
        mean = self.mean
        rest = mean - mean.mean(axis=0, keepdims=True) - mean.mean(axis=1, keepdims=True)
        return float((rest + mean.mean(axis=(0, 1))).std(axis=(0, 1)).max())

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
        form = "{:.3f}".format if self.outputs[k].startswith("p(") else rounded
        shown = ", ".join(
            f"{form(mean)} at {written(value)}"
            for value, mean in zip(self.grids[0], self.mean[:, k], strict=True)
        )
        return f"{self.labels[0]}: {self.outputs[k]} = {shown}"

    def table(self) -> list[list[str]]:
        """Write the mean of the main output as a table.

        Returns
        -------
        list of list of str
            The header with the values of the last input, and the means: a single line, or a line
            for each value of the first of two inputs.
        """
        k = self.main_output
        form = "{:.3f}".format if self.outputs[k].startswith("p(") else rounded
        header, means = [*map(written, self.grids[-1])], self.mean[..., k]
        if len(self.inputs) == 1:
            return [[self.labels[0], *header], [self.outputs[k], *map(form, means)]]
        lines = zip(self.grids[0], means, strict=True)
        return [
            [" × ".join(self.labels), *header],
            *([written(value), *map(form, line)] for value, line in lines),
        ]

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
    scores: bool = False,
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
    scores : bool
        Whether to average the scores of a classifier instead of its probabilities. With two
        classes, the score is the log-odds of the second one. With more, it is the logarithm of the
        probability, minus its mean over the classes. Scores are sums of functions of one input each
        if the inputs do not interact; probabilities are not.

    Returns
    -------
    Dependence
        The mean predictions.
    """
    max_rows = check_integer("max_rows", max_rows, at_least=1)
    columns = InputData.of(model, X)
    chosen = [_index(columns, one) for one in inputs]
    if len(chosen) not in (1, 2) or len(set(chosen)) < len(chosen):
        raise ValueError(f"inputs must be one or two different columns. Got {list(inputs)}.")
    sizes = [size] * len(chosen)
    return mean_predictions(model, columns, chosen, sizes, target, max_rows=max_rows, scores=scores)


def mean_effects(model: Any, X: Any) -> list[tuple[str, float]]:
    """The name and the mean absolute effect of every input, the strongest first.

    An effect is the change of the scores or numbers that the model predicts for a row, summed over
    the outputs, if the input has its value in another row. Only an input that changes no prediction
    has the effect 0.
    """
    columns = InputData.of(model, X)
    n = len(columns.names)
    most = int(np.clip(MOST_NUMBERS // (n * n), FEWEST_ROWS, MOST_ROWS))
    background = columns.take(background_rows(len(columns), most))
    # each row takes its value from the next one of a random order
    order = np.random.default_rng(0).permutation(len(background))
    source = np.empty_like(order)
    source[order] = np.roll(order, 1)
    changed = predict_changed(
        model, background, [{k: background.values(k)[source]} for k in range(n)], scores=True
    )
    usual = predictions(model, background.X, scores=True)
    effects = np.abs(changed - usual).sum(axis=2).mean(axis=1)
    return [(columns.names[k], float(effects[k])) for k in np.argsort(-effects, kind="stable")]


def strongest_pairs(
    model: Any, X: Any, names: Sequence[str], *, target: str = "y"
) -> list[Dependence]:
    """The scores for pairs of the first inputs that interact, the strongest first."""
    pairs = [
        dependence(model, X, pair, size=5, target=target, scores=True)
        for pair in itertools.combinations(names[:MOST_PAIRED], 2)
    ]
    # an interaction below a hundredth of the variation of the prediction is negligible
    pairs = [pair for pair in pairs if pair.interaction > 0.01 * pair.mean.std()]
    return sorted(pairs, key=lambda pair: -pair.interaction)


def grid_of(columns: InputData, k: int, size: int) -> list[Any]:
    """Values of a column: quantiles of numbers, or the most frequent categories.

    If no category is frequent, as for dates, they are at equal distances in alphabetical order.

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
    frequent = counts.most_common(MOST_CATEGORIES)
    if len(counts) > MOST_CATEGORIES and frequent[0][1] <= 2:  # such as dates: none is frequent
        every = sorted(counts.items(), key=lambda item: str(item[0]))
        places = np.linspace(0, len(every) - 1, MOST_CATEGORIES).round().astype(int)
        frequent = [every[place] for place in places]
    ranks = {value: rank for rank, value in enumerate(columns.orders.get(columns.names[k], []))}
    found = [value for value, _ in frequent]
    return sorted(found, key=lambda value: (ranks.get(value, len(ranks)), str(value)))


def predictions(model: Any, X: Any, *, scores: bool = False) -> Array:
    """The probabilities of the classes, or the predicted numbers, shape (n_samples, n_outputs).

    With `scores`, those of `dependence` instead of probabilities.
    """
    if classes_of(model) is not None and hasattr(model, "predict_proba"):
        return _scores(model, X) if scores else np.asarray(model.predict_proba(X))
    if isinstance(model, Network):
        of_classes = model.activations[-1] in ("logistic", "softmax")
        return _centered(model.logits(X)) if scores and of_classes else model.forward(X)
    found = np.asarray(model.predict(X), dtype=float)
    return found[:, None] if found.ndim == 1 else found


def _scores(model: Any, X: Any) -> Array:
    """The log-odds of a class, or centered logarithms of the probabilities of several."""
    P = np.asarray(model.predict_proba(X), dtype=float)
    with np.errstate(divide="ignore"):
        logs = model.predict_log_proba(X) if hasattr(model, "predict_log_proba") else np.log(P)
    least = np.log(np.finfo(float).eps)  # in place of the logarithm of 0
    logs = np.where(np.isfinite(logs), logs, least)
    if np.abs(P.sum(axis=1) - 1).max(initial=0) > 1e-3:  # labels that are not mutually exclusive
        return logs - np.log(np.maximum(-np.expm1(logs), np.finfo(float).eps))
    return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else _centered(logs)


def _centered(z: Array) -> Array:
    """Scores of several classes minus their mean; that of a single output is unchanged."""
    return z - z.mean(axis=1, keepdims=True) if z.shape[1] > 1 else z


def predict_changed(
    model: Any, background: InputData, changes: Sequence[dict[int, Any]], *, scores: bool = False
) -> Array:
    """The predictions for the background rows after each change, several changes at once.

    A change holds new values of some columns: one value, or one per row. The result has shape
    (n_changes, n_rows, n_outputs).
    """
    n, width = len(background), len(background.names)
    size = max(1, AT_ONCE // max(1, n * width))
    found = []
    for start in range(0, len(changes), size):
        some = changes[start : start + size]
        columns = sorted({k for change in some for k in change})
        parts = {k: [change.get(k, background.values(k)) for change in some] for k in columns}
        new = {k: np.concatenate([_column(v, n) for v in parts[k]]) for k in columns}
        data = background.take(np.tile(np.arange(n), len(some))).replaced(new)
        outputs = predictions(model, data, scores=scores)
        found.append(outputs.reshape(len(some), n, -1))
    return np.concatenate(found)


def _column(value: Any, rows: int) -> Array:
    """One value, or one per row, as a column of objects."""
    column = np.empty(rows, dtype=object)
    column[:] = value
    return column


def mean_predictions(
    model: Any,
    columns: InputData,
    chosen: list[int],
    sizes: Sequence[int],
    target: str,
    *,
    max_rows: int = MOST_ROWS,
    scores: bool = False,
) -> Dependence:
    """The mean prediction over some of the rows for each combination of values of the grids."""
    grids = [grid_of(columns, k, size) for k, size in zip(chosen, sizes, strict=True)]
    background = columns.take(background_rows(len(columns), max_rows))
    changes = [dict(zip(chosen, point, strict=True)) for point in itertools.product(*grids)]
    # the mean over rows of one change at a time, so that it does not depend on the other changes
    means = [
        part.mean(axis=0) for part in predict_changed(model, background, changes, scores=scores)
    ]
    mean = np.array(means).reshape(*map(len, grids), -1)
    names = _output_names(model, mean.shape[-1], target, scores=scores)
    inputs = tuple(columns.names[k] for k in chosen)
    counts = tuple(
        count_values(columns, k) if columns.numbers(k) is None else len(grid)
        for k, grid in zip(chosen, grids, strict=True)
    )
    return Dependence(inputs, tuple(grids), mean, names, counts)


def count_values(columns: InputData, k: int) -> int:
    """The number of different values of a column."""
    return len(set(columns.values(k).tolist()))


def _output_names(model: Any, count: int, target: str, *, scores: bool) -> list[str]:
    classes = classes_of(model) if hasattr(model, "predict_proba") else None
    if classes is None:
        return [f"{target} {k}" for k in range(count)] if count > 1 else [target]
    if scores:
        return [f"log-odds of {classes[1]}"] if count == 1 else [f"score of {c}" for c in classes]
    return [f"p({label})" for label in classes]


def background_rows(count: int, most: int) -> Array:
    """The indices of at most this many of `count` rows, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


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
    model: Any, X: Any, y: Any, *, repeats: int = REPEATS, rng: Any = 0
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
    columns, y = InputData.of(model, X), _one_column(y)
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


def scored_rows(model: Any, X: Any, y: Any) -> tuple[Any, Array]:
    """Evenly spaced rows and their targets: few enough to shuffle every input of a large table."""
    columns = InputData.of(model, X)
    size = REPEATS * len(columns.names) ** 2
    rows = background_rows(len(columns), int(np.clip(10 * MOST_NUMBERS // size, 200, 10_000)))
    if len(y) != len(columns) or len(rows) == len(columns):
        return X, y
    return columns.take(rows).X, np.asarray(y)[rows]


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
