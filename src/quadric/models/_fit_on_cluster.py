"""Fit a pipeline to Dask collections: its steps from sums and sets, its estimator by L-BFGS.

Each step is fitted to a small table that has the same means, extreme values or categories as all
rows. `Fitting.steps` lists what can be computed in this way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import compose, impute, pipeline, preprocessing
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from quadric.checks import Array
from quadric.cluster import Rows, is_collection, lazily
from quadric.estimators import (
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)
from quadric.models._table_columns import TableColumns
from quadric.training import Block

ESTIMATORS = (QuadraticClassifier, QuadraticRegressor, QuadraticLogisticRegression)
SOME = 100  # rows from which the layout of columns is taken


def fit_pipeline(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a pipeline to Dask collections.

    Parameters
    ----------
    model : Pipeline
        Its last step is a `QuadraticClassifier`, `QuadraticRegressor` or
        `QuadraticLogisticRegression`. The steps before it are fitted from sums and sets over the
        rows: `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `SimpleImputer` with means or a
        constant, `OneHotEncoder` and `OrdinalEncoder` with all categories, `ColumnTransformer` and
        pipelines of these.
    X : Dask array or dataframe
        The rows. They are read twice: for the steps, and for the estimator.
    y : Dask array, series or dataframe
        The targets.
    sample_weight : Dask array or series, default=None
        The weights of the rows, for the estimator.

    Returns
    -------
    Pipeline
        The same pipeline, fitted. It is an ordinary scikit-learn pipeline.

    Raises
    ------
    TypeError
        If X is not a Dask collection, or if a step cannot be fitted in this way.

    See Also
    --------
    quadric.cluster.lazily : Predictions of a pipeline for a Dask collection.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = np.random.default_rng(0).normal(100, 5, size=(1000, 2))
    >>> y = (X - 100).prod(axis=1) > 0
    >>> model = make_pipeline(StandardScaler(), QuadraticLogisticRegression())
    >>> model = fit_pipeline(model, da.from_array(X, chunks=300), da.from_array(y, chunks=500))
    >>> model.score(X, y) > 0.95
    True
    """
    if not is_collection(X):
        raise TypeError(
            f"X must be a Dask array or dataframe. Got {type(X).__name__}; use model.fit(X, y)."
        )
    if not isinstance(model, pipeline.Pipeline) or not isinstance(model[-1], ESTIMATORS):
        raise TypeError(
            "model must be a Pipeline that ends with a QuadraticClassifier, a QuadraticRegressor "
            f"or a QuadraticLogisticRegression. Got {type(_last(model)).__name__}."
        )
    *steps, (name, estimator) = model.steps
    for step in steps:
        check_step(step[1], step[0])
    Z = X
    if steps:
        rows = Rows(X, numbers=False)
        some = rows.take(np.arange(min(SOME, rows.n_rows)))[0]
        fitting = Fitting(rows, some)
        fitted = [(given, fitting.fit(step)) for given, step in steps]
        del rows, fitting
        Z = lazily(pipeline.Pipeline(fitted).transform, X)
        model.steps = [*fitted, (name, estimator)]
    estimator.fit(Z, y, sample_weight)
    return model


def _last(model: Any) -> Any:
    return model[-1] if isinstance(model, pipeline.Pipeline) else model


# ---- which steps -----------------------------------------------------------------------------


def check_step(step: Any, name: str) -> None:
    """Raise TypeError, with the name of the step, unless it can be fitted from sums and sets."""
    if isinstance(step, pipeline.Pipeline):
        for inner_name, inner in step.steps:
            check_step(inner, inner_name)
        return
    if isinstance(step, compose.ColumnTransformer):
        for inner_name, inner, _ in step.transformers:
            check_step(inner, inner_name)
        return
    reason = ""
    if isinstance(step, str) or type(step) is TableColumns:
        return
    if type(step) not in FITTED_FROM:
        reason = "needs all rows at once"
    elif isinstance(step, impute.SimpleImputer) and step.strategy not in ("mean", "constant"):
        reason = f"has strategy={step.strategy!r}; use 'mean' or 'constant'"
    elif getattr(step, "add_indicator", False):
        reason = "has add_indicator=True"
    elif getattr(step, "min_frequency", None) or getattr(step, "max_categories", None):
        reason = "groups infrequent categories (min_frequency, max_categories)"
    if reason:
        names = ", ".join(sorted(known.__name__ for known in FITTED_FROM))
        raise TypeError(
            f"the step {name!r} ({type(step).__name__}) cannot be fitted on a cluster: it "
            f"{reason}. Supported are ColumnTransformer, pipelines, {names}. Fit other steps to "
            "some rows first, and transform the collection with quadric.cluster.lazily."
        )


# ---- fitting ---------------------------------------------------------------------------------


class _Fitted(BaseEstimator):
    """A fitted step that stays as it is if it is cloned or fitted."""

    def __init__(self, step: Any = None) -> None:
        self.step = step

    def __sklearn_clone__(self) -> "_Fitted":
        return self

    def fit(self, X: Any, y: Any = None) -> "_Fitted":
        return self

    def transform(self, X: Any) -> Any:
        return self.step.transform(X)

    def get_feature_names_out(self, names: Any = None) -> Any:
        return self.step.get_feature_names_out(names)


@dataclass(frozen=True)
class View:
    """The inputs of a step: the rows after earlier steps, or some of their columns."""

    made: tuple[Callable[[Any], Any], ...] = ()

    def __call__(self, X: Any) -> Any:
        for change in self.made:
            X = change(X)
        return X

    def then(self, change: Callable[[Any], Any]) -> "View":
        return View((*self.made, change))


@dataclass(frozen=True)
class _Columns:
    columns: Any

    def __call__(self, X: Any) -> Any:
        return _safe_indexing(X, self.columns, axis=1)


@dataclass
class Fitting:
    """Fits steps one after the other; `view` are the inputs of the next one.

    Parameters
    ----------
    rows : Rows
    some : table
        The first rows, as they are before the first step.
    """

    rows: Rows
    some: Any
    view: View = field(default_factory=View)

    def fit(self, step: Any) -> Any:
        """Return the fitted step; the next one gets its results."""
        if isinstance(step, str):  # "passthrough"
            return step
        if isinstance(step, pipeline.Pipeline):
            fitted: Any = pipeline.Pipeline([(name, self.fit(one)) for name, one in step.steps])
            return fitted
        if isinstance(step, compose.ColumnTransformer):
            fitted = self._fit_columns(step)
        elif type(step) is TableColumns:
            fitted = step
        else:
            fitted = FITTED_FROM[type(step)](clone(step), self)
        self.view = self.view.then(fitted.transform)
        return fitted

    def _fit_columns(self, step: Any) -> Any:
        """Fit the parts of a ColumnTransformer, and then its layout to a few rows."""
        few, parts = self.view(self.some), {}
        for name, inner, columns in step.transformers:
            chosen = columns(few) if callable(columns) else columns
            if not isinstance(inner, str) and np.size(chosen):
                part = Fitting(self.rows, self.some, self.view.then(_Columns(chosen)))
                parts[name] = part.fit(inner)
        layout = clone(step)
        layout.transformers = [
            (name, _Fitted(parts[name]) if name in parts else inner, columns)
            for name, inner, columns in step.transformers
        ]
        layout.fit(few)
        layout.transformers = step.transformers
        layout.transformers_ = [
            (name, parts.get(name, inner), columns) for name, inner, columns in layout.transformers_
        ]
        return layout

    # What a step may ask about its inputs, column by column.

    def moments(self) -> tuple[Array, Array, Array]:
        """Numbers of present values, their means and their variances."""
        counted = self.rows.total(_present_sums, self.view).reshape(2, -1)
        count = counted[0]
        mean = counted[1] / np.maximum(count, 1)
        squares = self.rows.total(_squares_around, self.view, mean)
        return count, np.where(count > 0, mean, np.nan), squares / np.maximum(count, 1)

    def extremes(self) -> Array:
        """The smallest and the largest value."""
        return np.asarray(self.rows.combined(_extremes, _widest, self.view))

    def categories(self) -> list[list[Any]]:
        """The distinct values."""
        found: list[list[Any]] = self.rows.combined(_distinct, _united, self.view)
        return found

    def table(self, columns: Sequence[Sequence[Any]]) -> Any:
        """Return a table like the inputs, with these values in its columns, repeated as needed."""
        like = self.view(self.some)
        length = max(2, *(len(values) for values in columns))
        filled = [[*values, *([values[-1]] * (length - len(values)))] for values in columns]
        if hasattr(like, "iloc"):
            import pandas as pd

            series = {
                name: pd.Series(
                    values, dtype=like[name].dtype if like[name].dtype == object else None
                )
                for name, values in zip(like.columns, filled, strict=True)
            }
            return pd.DataFrame(series)
        numbers = like.dtype.kind in "fiub"
        return np.array(filled, dtype=np.float64 if numbers else object).T


def _dense(X: Any, dtype: Any) -> Array:
    if sparse.issparse(X):
        X = X.toarray()
    return np.asarray(X, dtype=dtype)


def _present_sums(block: Block, view: View) -> Array:
    X = _dense(view(block.X), np.float64)
    return np.concatenate([(~np.isnan(X)).sum(axis=0), np.nansum(X, axis=0)])


def _squares_around(block: Block, view: View, mean: Array) -> Array:
    squares: Array = np.nansum((_dense(view(block.X), np.float64) - mean) ** 2, axis=0)
    return squares


def _extremes(block: Block, view: View) -> Array:
    X = _dense(view(block.X), np.float64)
    return np.array([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])


def _widest(found: Sequence[Array]) -> Array:
    return np.array(
        [np.fmin.reduce([one[0] for one in found]), np.fmax.reduce([one[1] for one in found])]
    )


def _distinct(block: Block, view: View) -> list[list[Any]]:
    import pandas as pd

    X = view(block.X)
    columns = [X.iloc[:, k] for k in range(X.shape[1])] if hasattr(X, "iloc") else list(X.T)
    return [list(pd.unique(pd.Series(np.asarray(one)))) for one in columns]


def _united(found: Sequence[list[list[Any]]]) -> list[list[Any]]:
    import pandas as pd

    # pandas compares NaN with NaN as equal
    return [
        list(pd.unique(pd.Series([v for part in found for v in part[k]], dtype=object)))
        for k in range(len(found[0]))
    ]


def _standard(step: Any, inputs: Fitting) -> Any:
    count, mean, variance = inputs.moments()
    step.fit(inputs.table([[value] for value in mean]))
    if step.mean_ is not None:
        step.mean_ = mean
    if step.var_ is not None:
        step.var_ = variance
        # as in scikit-learn: a column whose variance is a rounding error is constant
        error = count * np.finfo(float).eps
        constant = variance <= error * variance + (error * mean) ** 2
        step.scale_ = np.where(constant, 1.0, np.sqrt(variance))
    counts = np.unique(count.astype(np.int64))
    step.n_samples_seen_ = counts[0] if len(counts) == 1 else count.astype(np.int64)
    return step


def _of_extremes(step: Any, inputs: Fitting) -> Any:
    step.fit(inputs.table(inputs.extremes().T.tolist()))
    step.n_samples_seen_ = inputs.rows.n_rows
    return step


def _imputer(step: Any, inputs: Fitting) -> Any:
    if step.strategy == "mean":
        return step.fit(inputs.table([[value] for value in inputs.moments()[1]]))
    return step.fit(inputs.table(inputs.categories()))


def _encoder(step: Any, inputs: Fitting) -> Any:
    return step.fit(inputs.table(inputs.categories()))


FITTED_FROM: dict[type, Callable[[Any, Fitting], Any]] = {
    preprocessing.StandardScaler: _standard,
    preprocessing.MinMaxScaler: _of_extremes,
    preprocessing.MaxAbsScaler: _of_extremes,
    impute.SimpleImputer: _imputer,
    preprocessing.OneHotEncoder: _encoder,
    preprocessing.OrdinalEncoder: _encoder,
}
