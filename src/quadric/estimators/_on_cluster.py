"""Fits and scores on Dask collections: choices in the client, sums over all rows on the workers."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state, compute_class_weight

from quadric import cluster
from quadric.checks import Array
from quadric.core import Stack, parameters
from quadric.estimators._data import (
    CHOSEN_ON,
    LBFGS_SAMPLES,
    FitData,
    Problem,
    as_samples,
    check_fit_data,
)
from quadric.training import (
    Block,
    BlockSamples,
    Encoding,
    Epoch,
    History,
    Options,
    TrainingState,
    train as train_samples,
)


class Collected(NamedTuple):
    """The rows on the workers, and some of them in memory, with classes instead of codes."""

    rows: cluster.Rows
    data: FitData


def refuse(estimator: Any, *, incremental: bool = False) -> None:
    """Raise ValueError for parameters that a Dask collection does not support."""
    solver = getattr(estimator, "solver", "lbfgs")
    reasons = {
        f"solver={solver!r}": solver not in ("auto", "lbfgs"),
        "early_stopping=True": getattr(estimator, "early_stopping", False),
        "warm_start=True": estimator.warm_start,
        "partial_fit": incremental,
    }
    for what, given in reasons.items():
        if given:
            raise ValueError(
                f"{what} is not supported for Dask collections, which are fitted by L-BFGS over "
                "all rows. Use solver='lbfgs' with the other defaults; to train on a stream of "
                "batches in one process, call partial_fit with arrays, or use the command line's "
                "option for streams."
            )


def collect(estimator: Any, X: Any, y: Any, sample_weight: Any, *, classify: bool) -> Collected:
    """Put the rows on the workers, check their values, and draw some of them by their numbers."""
    rows = cluster.Rows(X, y, sample_weight, classify=classify)
    _check_values(rows, estimator)
    count = rows.n_rows if rows.n_rows <= LBFGS_SAMPLES else CHOSEN_ON
    rng = np.random.RandomState(check_random_state(estimator.random_state).randint(2**31 - 1))
    some, target, weight = rows.take(rng.choice(rows.n_rows, count, replace=False))
    if rows.columns is not None:
        import pandas as pd

        some = pd.DataFrame(some, columns=rows.columns)
    if rows.classes is not None:
        target = rows.classes[target]
    data = check_fit_data(
        estimator, some, target, weight, y_dtype=getattr(estimator, "_y_dtype", None)
    )
    return Collected(rows, data)


def _check_values(rows: cluster.Rows, estimator: Any) -> None:
    """Raise ValueError, as scikit-learn does, for values that are not finite."""
    found = rows.total(cluster.odd_values)
    names = rows.columns or [f"column {k}" for k in range(rows.n_columns)]
    owner = type(estimator).__name__
    for name, count in zip(names, found[: rows.n_columns], strict=True):
        if count:
            raise ValueError(
                f"Input X contains NaN or infinity: {name!r} has {int(count):,} such values. "
                f"{owner} does not accept missing values; put an imputer in front, and fit the "
                "pipeline with quadric.models.fit_pipeline."
            )
    targets, weights, total = found[rows.n_columns :]
    if targets:
        raise ValueError(f"Input y contains NaN or infinity: {int(targets):,} values.")
    if weights:
        raise ValueError(
            f"sample_weight must be finite and not negative. Got {int(weights):,} other values."
        )
    if not total > 0:
        raise ValueError("sample_weight must not be zero for all samples.")


def in_blocks(
    rows: cluster.Rows, n_outputs: int, dtype: np.dtype[Any], class_weight: Any
) -> BlockSamples:
    """Return all rows as samples for the engine."""
    weights = None if rows.classes is None else _weights_of_classes(rows, class_weight)
    n_classes = 0 if rows.classes is None else len(rows.classes)
    encoding = Encoding(dtype, n_outputs, n_classes, weights)
    return BlockSamples(rows.n_rows, rows.n_columns, rows.total, encoding)


def _weights_of_classes(rows: cluster.Rows, class_weight: Any) -> Array | None:
    """The weight of each class, computed from all rows."""
    if class_weight is None:
        return None
    assert rows.classes is not None
    if class_weight != "balanced":
        each: Array = compute_class_weight(class_weight, classes=rows.classes, y=rows.classes)
        return each
    sums = rows.total(cluster.weights_by_class, len(rows.classes))
    return np.divide(sums.sum() / np.count_nonzero(sums), sums, where=sums > 0, out=sums.copy())


# ---- the network estimators ------------------------------------------------------------------


class Given(NamedTuple):
    """What `QuadraticNetworkEstimator._fit` needs: some rows in memory, and a function of dtype."""

    data: FitData
    problem: Problem
    n_samples: int
    samples: Callable[[np.dtype[Any]], BlockSamples]


def prepare(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Given:
    """Collect the rows for a network estimator, and pose the problem."""
    classify = hasattr(estimator, "class_weight")
    class_weight = estimator.class_weight if classify else None
    rows, data = collect(estimator, X, y, sample_weight, classify=classify)
    if rows.classes is not None:  # all of them, of which the rows in memory may lack some
        estimator._problem(data._replace(y=rows.classes, weight=None), anew=True, incremental=False)
    problem = estimator._problem(data, anew=not classify, incremental=classify)

    def samples(dtype: np.dtype[Any]) -> BlockSamples:
        every, weight = in_blocks(rows, problem.n_outputs, dtype, class_weight), data.weight
        if every.encoding.class_weight is not None:  # computed from all rows
            assert rows.classes is not None
            by_class = every.encoding.class_weight[np.searchsorted(rows.classes, data.y)]
            weight = by_class if weight is None else weight * by_class
        return replace(every, some=as_samples(data.X, problem.encode(dtype), weight, dtype))

    return Given(data, problem, rows.n_rows, samples)


# ---- resumable training ----------------------------------------------------------------------


def train(
    stack: Stack,
    samples: BlockSamples,
    options: Options,
    state: TrainingState,
    *,
    rng: Any = None,
    validate: None = None,
    callback: Callable[[Epoch], object] | None = None,
) -> History:
    """Train as `train` does; within `cluster.checkpoint`, store the state of every iteration."""
    one = cluster.current()
    if one is None:
        return train_samples(stack, samples, options, state, callback=callback)
    before, evaluated = 0, 0
    if stored := one.begin(_identity(stack, samples, options)):
        arrays, numbers = stored
        layers = [arrays.pop(f"parameter.{k}") for k in range(len(parameters(stack.layers)))]
        for array, value in zip(parameters(stack.layers), layers, strict=True):
            array[...] = value
        vars(state).update(vars(TrainingState.from_arrays(arrays, numbers)))
        before, evaluated = state.call.epochs, state.call.evaluations
        options = replace(
            options,
            resume=True,
            epochs=options.epochs - before,
            max_evaluations=options.max_evaluations - evaluated,
        )

    def save(epoch: Epoch) -> object:
        arrays, numbers = state.to_arrays()
        numbers["epochs"] += before
        numbers["evaluations"] += evaluated
        layers = {f"parameter.{k}": array for k, array in enumerate(parameters(stack.layers))}
        one.save(arrays | layers, numbers)
        return callback is not None and callback(replace(epoch, index=epoch.index + before))

    try:
        if options.epochs:
            train_samples(stack, samples, options, state, callback=save)
    finally:
        state.call.epochs += before
        state.call.evaluations += evaluated
    return state.history


def _identity(stack: Stack, samples: BlockSamples, options: Options) -> dict[str, Any]:
    """Describe the problem, so that a state is not used for another one."""
    start = [array.tobytes() for array in parameters(stack.layers)]
    chosen = {name: value for name, value in vars(options).items() if name != "relevance"}
    relevance = b"" if options.relevance is None else options.relevance.tobytes()
    return {
        "rows": samples.n_samples,
        "inputs": samples.n_inputs,
        "data": _digest(samples.mean_squares().tobytes()),
        "options": json.dumps(chosen, default=str),
        "start": _digest(*start, relevance),
    }


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


# ---- scores ----------------------------------------------------------------------------------


def accuracy(estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of rows whose class is predicted, weighted."""
    rows = cluster.Rows(X, y, sample_weight, classify=True)
    right, total = rows.total(_right, estimator, rows.classes, rows.columns)
    return float(right / total)


def _right(block: Block, estimator: Any, classes: Array, columns: Any) -> Array:
    right = _predicted(block, estimator, columns) == classes[block.y]
    weight = np.ones(len(right)) if block.weight is None else block.weight
    return np.array([weight[right].sum(), weight.sum()], dtype=float)


def r2(estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """R², averaged over the targets."""
    rows = cluster.Rows(X, y, sample_weight)
    sums = rows.total(_sums_of_targets)
    mean = sums[1:] / sums[0]
    left, around = rows.total(_squares_left, estimator, mean, rows.columns).reshape(2, -1)
    perfect = np.where(left > 0, 0.0, 1.0)  # as in scikit-learn, if a target is constant
    scores = np.where(around > 0, 1 - left / np.where(around > 0, around, 1), perfect)
    return float(scores.mean())


def _sums_of_targets(block: Block) -> Array:
    y, weight = _columns(block)
    return np.concatenate([[weight.sum()], (y * weight).sum(axis=0)])


def _squares_left(block: Block, estimator: Any, mean: Array, columns: Any) -> Array:
    y, weight = _columns(block)
    found = _predicted(block, estimator, columns).reshape(y.shape)
    return np.concatenate([(weight * (y - z) ** 2).sum(axis=0) for z in (found, mean)])


def _columns(block: Block) -> tuple[Array, Array]:
    assert block.y is not None
    y = np.asarray(block.y, dtype=float).reshape(len(block.y), -1)
    weight = np.ones(len(y)) if block.weight is None else block.weight
    return y, weight[:, None]


def _predicted(block: Block, estimator: Any, columns: Any) -> Array:
    X = block.X
    if columns is not None:
        import pandas as pd

        X = pd.DataFrame(X, columns=columns, copy=False)
    found: Array = estimator.predict(X)
    return found
