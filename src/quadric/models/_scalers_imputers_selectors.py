"""Steps that contain no other steps: scalers, power transforms, projections, imputers, selectors.

Scalers and power transforms treat each column separately, projections are PCA and SVD, and
selectors return some of the input columns unchanged.
"""

from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtri
from sklearn import base, feature_selection, impute, preprocessing
from sklearn.utils.validation import check_is_fitted, validate_data

from quadric.checks import Array
from quadric.errors import expect
from quadric.models._facts import (
    DTYPE,
    PLAIN,
    STATISTICS,
    Facts,
    Known,
    Rules,
    attributes,
    increasing_indices,
    is_vector,
)
from quadric.models._operations import (
    Affine,
    Beside,
    Branch,
    Clip,
    Impute,
    Indicate,
    Operation,
    Power,
    Select,
    is_missing,
)

# About the square root of the smallest positive number. A smaller scale would overflow for any
# data, and `fit` never computes such a scale.
SMALLEST_SCALE = 1e-162
MOST_ITERATIONS = 10_000  # limit for a solver, if the restored step is fitted again
DIRECTIONS: Rules = {
    "a matrix with rows and columns": np.size,
    "finite": lambda rows: np.isfinite(rows).all(),
    "unit vectors": lambda rows: np.abs(rows).max() <= 1.001,  # allows for rounding errors
}
VARIANCES = ("explained_variance_", "explained_variance_ratio_", "singular_values_")
SCORES = (
    "chi2",
    "f_classif",
    "f_regression",
    "mutual_info_classif",
    "mutual_info_regression",
    "r_regression",
)


def _scaled(n: int, center: Any, scale: Any) -> list[Operation]:
    """(u - center) / scale, where None stands for no centering or no scaling."""
    if center is None and scale is None:
        return []
    center = np.zeros(n) if center is None else np.asarray(center, dtype=float)
    factor = np.ones(n) if scale is None else 1 / np.asarray(scale, dtype=float)
    return [Affine(factor, center, np.zeros(n))]


# ------------------------------------------------------------------------ StandardScaler


def _standard(step: Any) -> list[Operation]:
    return _scaled(
        step.n_features_in_,
        step.mean_ if step.with_mean else None,
        step.scale_ if step.with_std else None,
    )


def _restore_standard(step: Any, facts: Facts) -> int:
    """Restore `scale_` from the file; scikit-learn versions derive it from `var_` differently."""
    n = facts.count("n_features_in_", 1)
    step.mean_ = None if facts.get("mean_") is None else facts.vector("mean_", n, nan=True)
    facts.expect("mean_", not step.with_mean or step.mean_ is not None, "a vector")
    step.var_ = facts.vector("var_", n, least=0, nan=True) if step.with_std else None
    step.scale_ = (
        facts.vector("scale_", n, least=SMALLEST_SCALE, nan=True) if step.with_std else None
    )
    step.n_samples_seen_ = facts.samples_seen("n_samples_seen_", n)
    return n


# ------------------------------------------------------------ MinMaxScaler, MaxAbsScaler


def _min_max(step: Any) -> list[Operation]:
    scale, smallest = np.asarray(step.scale_, dtype=float), np.asarray(step.data_min_, dtype=float)
    # not feature_range[0]: for data in float16, `min_` is rounded to three digits
    shift = np.asarray(step.min_, dtype=float) + scale * smallest
    clip = [Clip(*step.feature_range)] if step.clip else []
    return [Affine(scale, smallest, shift), *clip]


def _restore_min_max(step: Any, facts: Facts) -> int:
    """Fit the step to two rows: the smallest and the largest value of each column."""
    smallest = facts.vector("data_min_", nan=True)
    largest = facts.vector("data_max_", len(smallest), nan=True)
    facts.expect("data_max_", not (largest < smallest).any(), "at least data_min_")
    facts.expect(
        "data_max_", (np.isnan(largest) == np.isnan(smallest)).all(), "NaN where data_min_ is NaN"
    )
    with np.errstate(all="ignore"):
        step.fit(np.vstack([smallest, largest]))
    given = np.vstack([step.scale_, step.min_])[:, ~np.isnan(smallest)]
    facts.expect("data_max_", np.isfinite(given).all(), "small enough to be scaled")
    step.n_samples_seen_ = facts.samples_seen("n_samples_seen_", len(smallest))
    return len(smallest)


def _typical_min_max(step: Any) -> tuple[Array, Array]:
    low, high = np.asarray(step.data_min_, dtype=float), np.asarray(step.data_max_, dtype=float)
    return (low + high) / 2, (high - low) / np.sqrt(12)


def _max_abs(step: Any) -> list[Operation]:
    operations = _scaled(step.n_features_in_, None, step.scale_)
    return [*operations, Clip(-1.0, 1.0)] if getattr(step, "clip", False) else operations


def _restore_max_abs(step: Any, facts: Facts) -> int:
    """Fit the step to one row: the largest absolute value of each column."""
    largest = facts.vector("max_abs_", least=0, nan=True)
    step.fit(largest[None])
    step.n_samples_seen_ = facts.samples_seen("n_samples_seen_", len(largest))
    return len(largest)


# -------------------------------------------------------------------------- RobustScaler


def _restore_robust(step: Any, facts: Facts) -> int:
    n = facts.count("n_features_in_", 1)
    low, high = step.quantile_range
    facts.expect("quantile_range", 0 <= low <= high <= 100, "two percentages in increasing order")
    step.center_ = facts.vector("center_", n, nan=True) if step.with_centering else None
    step.scale_ = (
        facts.vector("scale_", n, least=SMALLEST_SCALE, nan=True) if step.with_scaling else None
    )
    return n


def _typical_robust(step: Any) -> tuple[Array, Array] | None:
    """Return the medians, and the standard deviations of normal data with these quantiles."""
    low, high = ndtri(np.asarray(step.quantile_range) / 100)
    if not (step.with_scaling and step.with_centering and 0 < high - low < np.inf):
        return None
    return step.center_, step.scale_ if step.unit_variance else step.scale_ / (high - low)


# ---------------------------------------------------------------------- PowerTransformer


def _power(step: Any) -> list[Operation]:
    power = Power(step.method, np.asarray(step.lambdas_, dtype=float))
    return [power, *_standard(step._scaler)] if step.standardize else [power]


def _restore_power(step: Any, facts: Facts) -> int:
    step.lambdas_ = facts.vector("lambdas_")
    n = len(step.lambdas_)
    if step.standardize:
        step._scaler = preprocessing.StandardScaler(copy=False).set_output(transform="default")
        facts.expect(
            "mean_", _restore_standard(step._scaler, facts) == n, f"a vector of {n} numbers"
        )
        step._scaler.n_features_in_ = n
    return n


# -------------------------------------------------------------------------- projections


def _project(step: Any) -> list[Operation]:
    directions, factors = np.asarray(step.components_, dtype=float), 1.0
    if getattr(step, "whiten", False):
        least = np.finfo(step.explained_variance_.dtype).eps  # as in scikit-learn
        factors = 1 / np.maximum(np.sqrt(step.explained_variance_), least).astype(float)
    mean = getattr(step, "mean_", np.zeros(directions.shape[1]))  # a TruncatedSVD has no mean
    center, shift = np.asarray(mean, dtype=float), np.zeros(len(directions))
    if step.components_.dtype != np.float64:
        # scikit-learn projects the mean in the dtype of `fit`, with rounding errors of its own
        shift = directions @ center - np.asarray(mean @ step.components_.T, dtype=float)
    return [Affine(directions * np.reshape(factors, (-1, 1)), center, shift * factors)]


def _restore_directions(step: Any, facts: Facts) -> int:
    for name in ("n_iter", "iterated_power", "n_oversamples"):
        given = getattr(step, name, 0)
        facts.expect(
            name, isinstance(given, str) or given <= MOST_ITERATIONS, f"at most {MOST_ITERATIONS}"
        )
    step.components_ = facts.check("components_", facts.array("components_", 2), DIRECTIONS)
    k, n = step.components_.shape
    for name in VARIANCES:
        setattr(step, name, facts.vector(name, k, nan=name != "explained_variance_"))
    if hasattr(step, "whiten"):  # PCA and IncrementalPCA
        step.noise_variance_, step.n_components_ = facts.number("noise_variance_"), k
        step.mean_ = facts.vector("mean_", n)
    return n


def _restore_pca(step: Any, facts: Facts) -> int:
    n = _restore_directions(step, facts)
    step.n_samples_ = facts.count("n_samples_", 1)
    # methods of a fitted PCA read the solver's name, but do not depend on it
    step._fit_svd_solver = "full" if step.svd_solver == "auto" else step.svd_solver
    return n


def _restore_incremental(step: Any, facts: Facts) -> int:
    n = _restore_directions(step, facts)
    step.var_ = facts.vector("var_", n, least=0)
    step.n_samples_seen_ = facts.samples_seen("n_samples_seen_", n)
    if facts.get("batch_size_") is not None:  # partial_fit alone does not set it
        step.batch_size_ = facts.count("batch_size_", 1)
    return n


# ------------------------------------------------------------------------- SimpleImputer


def _impute(step: Any) -> list[Operation]:
    fill, keep_all = np.asarray(step.statistics_), step.keep_empty_features
    # for scikit-learn, a column is empty if its statistic is NaN, but not if it is None
    kept = np.flatnonzero([keep_all or value is None or not is_missing(value) for value in fill])
    operations: list[Operation] = [Impute(step.missing_values, fill[kept])]
    if len(kept) < len(fill):
        operations.insert(0, Select(kept, len(fill)))
    if not step.add_indicator or not len(step.indicator_.features_):
        return operations
    n = step.n_features_in_
    marks = Branch(np.asarray(step.indicator_.features_), (Indicate(step.missing_values),))
    return [Beside((Branch(np.arange(n), tuple(operations)), marks), n)]


def _restore_imputer(step: Any, facts: Facts) -> int:
    fill = step.statistics_ = facts.require("statistics_", STATISTICS)
    step._fit_dtype = facts.require("fit_dtype", DTYPE)
    step._fill_dtype = facts.require("fill_dtype", DTYPE)
    texts = fill.dtype == object and any(isinstance(value, str) for value in fill)
    facts.expect("fill_dtype", not texts or step._fill_dtype.kind == "O", "object")
    for name in ("missing_values", "fill_value"):
        facts.expect(name, isinstance(getattr(step, name), PLAIN), "a number or a string")
    marker = isinstance(step.missing_values, str)
    facts.expect("missing_values", not marker or step._fit_dtype.kind == "O", "a number or NaN")
    n = len(fill)
    step.indicator_ = None
    if step.add_indicator:
        marked = facts.require("marked", increasing_indices(n))
        step.indicator_ = impute.MissingIndicator(
            missing_values=step.missing_values, error_on_new=False
        )
        vars(step.indicator_).update(
            features_=marked, n_features_in_=n, _n_features=n, _precomputed=True
        )
    return n


# ----------------------------------------------------------------------------- selectors


class SelectedFeatures(feature_selection.SelectorMixin, base.BaseEstimator):
    """Select given columns.

    A model file stores any selector that contains another estimator or a user-defined function
    (`RFE`, `SelectFromModel`, ...) as a `SelectedFeatures`. Its `fit` checks the number of columns
    and keeps the selection.

    Parameters
    ----------
    support : array of bool of shape (n_features,)
        True for the columns to keep.

    Examples
    --------
    >>> import numpy as np
    >>> SelectedFeatures([True, False, True]).fit_transform(np.array([[1, 2, 3]]))
    array([[1, 3]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"support": ["array-like", None]}

    def __init__(self, support: Any) -> None:
        self.support = support

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that X has as many columns as `support` has entries."""
        X = validate_data(self, X, dtype=None, ensure_all_finite=False, accept_sparse="csr")
        expect(
            X.shape[1] == len(self.support),
            ValueError(
                f"X must have {len(self.support)} columns, one for each entry of support. "
                f"Got {X.shape[1]} instead."
            ),
        )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def _get_support_mask(self) -> Array:
        check_is_fitted(self, "n_features_in_")
        return np.asarray(self.support, dtype=bool)


def _select(step: Any) -> list[Operation]:
    mask = np.asarray(step.get_support())
    return [] if mask.all() else [Select(np.flatnonzero(mask), len(mask))]


def has_known_score(step: Any) -> bool:
    """Whether the step's score function, if it has one, is one of scikit-learn's."""
    return not hasattr(step, "score_func") or step.score_func in [
        getattr(feature_selection, name) for name in SCORES
    ]


def _restore_scores(step: Any, facts: Facts) -> int:
    name = facts.require(
        "score_func", {f"one of {SCORES}": lambda name: isinstance(name, str) and name in SCORES}
    )
    step.score_func = getattr(feature_selection, name)
    step.scores_ = facts.array("scores_", 1)
    n = len(step.scores_)
    step.pvalues_ = facts.require(
        "pvalues_",
        {f"a vector of {n} numbers": lambda p: is_vector(p, "f") and len(p) == n},
        optional=True,
    )
    return _if_some_are_selected(step, facts, n)


def _restore_variances(step: Any, facts: Facts) -> int:
    step.variances_ = facts.vector("variances_", nan=True)
    return _if_some_are_selected(step, facts, len(step.variances_))


def _restore_selected(step: Any, facts: Facts) -> int:
    step.support = facts.require("support", {"a boolean array": lambda m: is_vector(m, "b")})
    step.fit(np.zeros((1, len(step.support)), dtype=bool))
    return _if_some_are_selected(step, facts, len(step.support))


def _if_some_are_selected(step: Any, facts: Facts, n: int) -> int:
    """Return n, the number of input columns; raise ModelFileError if the step selects none."""
    try:
        some = step._get_support_mask().any()
    except (TypeError, ValueError, AttributeError):  # required p-values are missing
        some = False
    facts.expect("the number of selected columns", some, "at least 1")
    return n


# selectors by the scores of columns, and their parameters
BY_SCORES = {
    "SelectKBest": ("k",),
    "SelectPercentile": ("percentile",),
    "SelectFpr": ("alpha",),
    "SelectFdr": ("alpha",),
    "SelectFwe": ("alpha",),
    "GenericUnivariateSelect": ("mode", "param"),
}
STANDARD_FACTS = attributes("n_features_in_", "mean_", "var_", "scale_", "n_samples_seen_")
_CENTERED = ("components_", *VARIANCES, "mean_", "noise_variance_")

SCALERS_IMPUTERS_SELECTORS = [
    Known(
        "sklearn.preprocessing:StandardScaler",
        ("with_mean", "with_std"),
        facts=STANDARD_FACTS,
        restore=_restore_standard,
        operations=_standard,
        typical=lambda step: (
            None
            if step.scale_ is None
            else (np.zeros(step.n_features_in_) if step.mean_ is None else step.mean_, step.scale_)
        ),
    ),
    Known(
        "sklearn.preprocessing:MinMaxScaler",
        ("feature_range", "clip"),
        facts=attributes("data_min_", "data_max_", "n_samples_seen_"),
        restore=_restore_min_max,
        operations=_min_max,
        typical=_typical_min_max,
    ),
    Known(
        "sklearn.preprocessing:MaxAbsScaler",
        ("clip",),
        facts=attributes("max_abs_", "n_samples_seen_"),
        restore=_restore_max_abs,
        operations=_max_abs,
        typical=lambda step: (np.zeros(step.n_features_in_), np.asarray(step.max_abs_) / 2),
    ),
    Known(
        "sklearn.preprocessing:RobustScaler",
        ("with_centering", "with_scaling", "quantile_range", "unit_variance"),
        facts=attributes("n_features_in_", "center_", "scale_"),
        restore=_restore_robust,
        operations=lambda step: _scaled(
            step.n_features_in_,
            step.center_ if step.with_centering else None,
            step.scale_ if step.with_scaling else None,
        ),
        typical=_typical_robust,
    ),
    Known(
        "sklearn.preprocessing:PowerTransformer",
        ("method", "standardize"),
        facts=lambda step: {
            "lambdas_": step.lambdas_,
            **(STANDARD_FACTS(step._scaler) if step.standardize else {}),
        },
        restore=_restore_power,
        operations=_power,
    ),
    Known(
        "sklearn.decomposition:PCA",
        (
            "n_components",
            "whiten",
            "svd_solver",
            "tol",
            "iterated_power",
            "n_oversamples",
            "power_iteration_normalizer",
            "random_state",
        ),
        facts=attributes(*_CENTERED, "n_samples_"),
        restore=_restore_pca,
        operations=_project,
    ),
    Known(
        "sklearn.decomposition:IncrementalPCA",
        ("n_components", "whiten", "batch_size"),
        facts=attributes(*_CENTERED, "var_", "n_samples_seen_", "batch_size_"),
        restore=_restore_incremental,
        operations=_project,
    ),
    Known(
        "sklearn.decomposition:TruncatedSVD",
        (
            "n_components",
            "algorithm",
            "n_iter",
            "n_oversamples",
            "power_iteration_normalizer",
            "random_state",
            "tol",
        ),
        facts=attributes("components_", *VARIANCES),
        restore=_restore_directions,
        operations=_project,
    ),
    Known(
        "sklearn.impute:SimpleImputer",
        ("missing_values", "strategy", "fill_value", "add_indicator", "keep_empty_features"),
        facts=lambda step: {
            "statistics_": step.statistics_,
            "fit_dtype": step._fit_dtype,
            "fill_dtype": getattr(step, "_fill_dtype", step.statistics_.dtype),
            "marked": step.indicator_.features_ if step.add_indicator else None,
        },
        restore=_restore_imputer,
        operations=_impute,
    ),
    *[
        Known(
            f"sklearn.feature_selection:{name}",
            parameters,
            facts=lambda step: {
                "scores_": step.scores_,
                "pvalues_": step.pvalues_,
                "score_func": step.score_func.__name__,
            },
            restore=_restore_scores,
            operations=_select,
            absent={"score_func": lambda X, y: None},  # until `restore` sets it
        )
        for name, parameters in BY_SCORES.items()
    ],
    Known(
        "sklearn.feature_selection:VarianceThreshold",
        ("threshold",),
        facts=attributes("variances_"),
        restore=_restore_variances,
        operations=_select,
    ),
]

# Any other selector, such as RFE, is reduced to the columns that it selects.
SELECTED = Known(
    "quadric.models._scalers_imputers_selectors:SelectedFeatures",
    (),
    facts=lambda step: {"support": np.asarray(step.get_support())},
    restore=_restore_selected,
    operations=_select,
    absent={"support": None},
)
