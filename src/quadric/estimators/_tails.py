"""Scaling for an estimator, with a power transform of inputs with long tails if it helps.

The transform and the constants were chosen by `python -m benchmarks.tails`.
"""

import warnings
from typing import Any, Literal, Self

import numpy as np
from scipy.stats import kurtosistest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, StandardScaler

from quadric.checks import Array

TAILS = ("auto", "keep", "power")
LONG = 3.0  # the excess kurtosis of a Laplace distribution; a normal distribution has 0
FEWEST = 20  # values; the approximation of the test of kurtosis needs them
BY_CHANCE = 0.05  # at most this probability that any column without long tails is found
BETTER = 0.95  # the power transform is used if the loss on held-out samples falls by this factor


def long_tails(X: Any) -> list[int]:
    """Return the columns with long tails: those with an excess kurtosis above 3.

    The excess kurtosis is E[(x - mean)^4] / var^2 - 3. It must also be unlikely to be so large by
    chance in any of the columns, by Anscombe and Glynn's test of normality, because a few of many
    columns with few rows look as if they had long tails. Columns with fewer than 20 values or
    three distinct values have no tails. Missing values (NaN) are ignored.

    Parameters
    ----------
    X : array or table of shape (n_samples, n_features)
        Numbers.

    Returns
    -------
    list of int
        The indices of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.random.default_rng(0).normal(size=(500, 2))
    >>> long_tails(np.column_stack([z[:, 0], np.exp(z[:, 1])]))
    [1]
    """
    columns = np.asarray(X, dtype=float).T
    return [j for j, x in enumerate(columns) if _has_long_tails(x, BY_CHANCE / len(columns))]


def _has_long_tails(x: Array, by_chance: float) -> bool:
    x = x[~np.isnan(x)]
    if len(x) < FEWEST or not ((x > x.min()) & (x < x.max())).any():
        return False
    with np.errstate(all="ignore"):  # infinite values, which the estimator refuses
        z = x / np.abs(x).max()  # the fourth power of a large number may overflow
        squares = np.square(z - z.mean())
        if not np.square(squares).mean() > (3 + LONG) * np.square(squares.mean()):
            return False
        return bool(kurtosistest(z, alternative="greater").pvalue < by_chance)


def power_steps() -> list[Any]:
    """Return unfitted steps: Yeo and Johnson's power transform of standardized columns.

    Standardized first, the result does not depend on units. Then, values outside the range of
    `fit`, where powers may be huge, are replaced by its limits.
    """
    power = PowerTransformer(method="yeo-johnson", standardize=False)
    return [StandardScaler(), power, MinMaxScaler(clip=True), StandardScaler()]


def fit_tails(
    kept: Pipeline | None, transformed: Pipeline, X: Any, y: Any, columns: list[Any], **params: Any
) -> Pipeline:
    """Fit a pipeline, and one that transforms columns with long tails; return the better one.

    The second is used if it reduces the estimator's loss on held-out samples (`selection_`) by at
    least 5 %. Both estimators have the same `random_state`, so that these samples are the same.
    Without `selection_`, because there was nothing to choose, the first is returned.

    Parameters
    ----------
    kept, transformed : Pipeline
        Unfitted, each with an estimator of its own as the last step. If `kept` is None, only the
        other is fitted.
    X, y : arrays
        The training samples.
    columns : list
        The names or indices of the transformed columns. If there are none, only `kept` is fitted.
    **params
        For `Pipeline.fit`, such as the weights of samples.

    Returns
    -------
    Pipeline
        With the attribute `tails_`: a dict with the "columns", whether they are "transformed", and
        the losses "kept_loss" and "transformed_loss"; None if there are no such columns.
    """
    chosen = transformed if kept is None else kept
    before, after = None, None
    caught: list[warnings.WarningMessage] = []
    if kept is not None:
        caught, before = _fitted(kept, X, y, params)
    if kept is None or (columns and before is not None):
        others, after = _fitted(transformed, X, y, params)
        if before is None or (after is not None and after < BETTER * before):
            chosen, caught = transformed, others
    for entry in caught:  # those of the other pipeline are of no interest
        warnings.warn(entry.message, entry.category, stacklevel=2)
    facts = {
        "columns": columns,
        "transformed": chosen is transformed,
        "kept_loss": before,
        "transformed_loss": after,
    }
    chosen.tails_ = facts if columns else None
    return chosen


def _fitted(
    model: Pipeline, X: Any, y: Any, params: dict[str, Any]
) -> tuple[list[warnings.WarningMessage], float | None]:
    """Fit a pipeline; return its warnings, and the loss on held-out samples of what it chose."""
    with warnings.catch_warnings(record=True) as caught:
        model.fit(X, y, **params)
    tried = getattr(model[-1], "selection_", [])
    return caught, next((one["loss"] for one in tried if one.get("chosen")), None)


class ScaledPipeline(Pipeline):
    """A pipeline that scales its inputs; see `with_scaling`.

    `fit` replaces the first step with a StandardScaler, or with a ColumnTransformer if it
    transforms columns with long tails.
    """

    steps: list[tuple[str, Any]]

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the pipeline with and without the power transform, and keep the better one."""
        (first, _), (last, estimator) = self.steps
        kept = Pipeline([(first, StandardScaler()), (last, estimator)])
        transformed = Pipeline([(first, _power_scaler()), (last, clone(estimator))])
        columns = [] if hasattr(X, "toarray") else long_tails(X)
        best = fit_tails(kept, transformed, X, y, columns, **params)
        self.steps, self.tails_ = [(first, best[0]), (last, best[1])], best.tails_
        return self


def _power_scaler() -> ColumnTransformer:
    return ColumnTransformer(
        [("tails", make_pipeline(*power_steps()), long_tails)],
        remainder=StandardScaler(),
        verbose_feature_names_out=False,
    )


def with_scaling(estimator: Any, *, tails: Literal["auto", "keep", "power"] = "auto") -> Pipeline:
    """Return a pipeline that scales its inputs and then fits the estimator.

    All columns are standardized. Columns with long tails (`long_tails`), such as amounts and
    counts, can be transformed by Yeo and Johnson's power transform before.

    Parameters
    ----------
    estimator : estimator
        For example `QuadraticClassifier(random_state=0)`.
    tails : {'auto', 'keep', 'power'}
        With 'auto', `fit` fits the estimator with and without the power transform, and keeps it if
        it reduces the loss on held-out samples by at least 5 %. This takes twice as long, but only
        if there are columns with long tails, and if the estimator chooses its shape or penalty on
        held-out samples. With 'keep', no column is transformed, and with 'power', all of those.

    Returns
    -------
    Pipeline
        Unfitted. With 'auto', the fitted pipeline has the attribute `tails_`: the "columns" with
        long tails, whether they are "transformed", and the losses "kept_loss" and
        "transformed_loss"; None if there are no such columns.

    Examples
    --------
    >>> import numpy as np
    >>> from quadric import QuadraticRegressor
    >>> z = np.random.default_rng(0).normal(size=(200, 2))
    >>> X, y = np.exp(2 * z), z[:, 0] * z[:, 1]
    >>> model = with_scaling(QuadraticRegressor(random_state=0)).fit(X, y)
    >>> model.tails_["columns"], model.tails_["transformed"]
    ([0, 1], True)
    """
    if tails not in TAILS:
        raise ValueError(f"tails must be one of {', '.join(map(repr, TAILS))}. Got {tails!r}.")
    if tails == "auto":
        return ScaledPipeline([("scale", StandardScaler()), ("model", estimator)])
    scaler = StandardScaler() if tails == "keep" else _power_scaler()
    return Pipeline([("scale", scaler), ("model", estimator)])
