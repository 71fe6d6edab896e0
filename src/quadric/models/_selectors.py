"""Feature selectors, which return some of the input columns unchanged."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn import feature_selection
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from quadric.checks import Array
from quadric.models._known_steps import Facts, KnownStep, attributes, is_vector
from quadric.models._operations import Operation, Select

SCORES = (
    "chi2",
    "f_classif",
    "f_regression",
    "mutual_info_classif",
    "mutual_info_regression",
    "r_regression",
)


class SelectedFeatures(feature_selection.SelectorMixin, BaseEstimator):
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
        if X.shape[1] != len(self.support):
            raise ValueError(
                f"X must have {len(self.support)} columns, one for each entry of support. "
                f"Got {X.shape[1]} instead."
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
        {f"a vector of {n} numbers": lambda p: p is None or (is_vector(p, "f") and len(p) == n)},
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
    """Return n, the number of input columns; raise FactError if the step selects none of them."""
    try:
        some = step._get_support_mask().any()
    except (TypeError, ValueError, AttributeError):  # required p-values are missing
        some = False
    facts.expect("the number of selected columns", some, "at least 1")
    return n


def _by_scores(name: str, *parameters: str) -> KnownStep:
    return KnownStep(
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


SELECTORS = [
    _by_scores("SelectKBest", "k"),
    _by_scores("SelectPercentile", "percentile"),
    _by_scores("SelectFpr", "alpha"),
    _by_scores("SelectFdr", "alpha"),
    _by_scores("SelectFwe", "alpha"),
    _by_scores("GenericUnivariateSelect", "mode", "param"),
    KnownStep(
        "sklearn.feature_selection:VarianceThreshold",
        ("threshold",),
        facts=attributes("variances_"),
        restore=_restore_variances,
        operations=_select,
    ),
]

# Any other selector, such as RFE, is reduced to the columns that it selects.
SELECTED = KnownStep(
    "quadric.models._selectors:SelectedFeatures",
    (),
    facts=lambda step: {"support": np.asarray(step.get_support())},
    restore=_restore_selected,
    operations=_select,
    absent={"support": None},
)
