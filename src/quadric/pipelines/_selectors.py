"""Selectors: some of the columns, as they are."""

from typing import Any

import numpy as np

from quadric.pipelines._known_steps import Facts, KnownStep, attributes
from quadric.pipelines._operations import Operation, Select

SELECTION = "sklearn.feature_selection"
SCORES = (
    "chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression",
    "r_regression",
)  # fmt: skip


def _select(step: Any) -> list[Operation]:
    mask = np.asarray(step.get_support())
    return [] if mask.all() else [Select(np.flatnonzero(mask), len(mask))]


def has_known_score(step: Any) -> bool:
    """Whether a selector by scores has one of scikit-learn's own functions for them."""
    from sklearn import feature_selection

    known = [getattr(feature_selection, name) for name in SCORES]
    return not hasattr(step, "score_func") or step.score_func in known


def _score_facts(step: Any) -> dict[str, Any]:
    return {
        "scores_": step.scores_,
        "pvalues_": step.pvalues_,
        "score_func": step.score_func.__name__,
    }


def _no_score(X: Any, y: Any) -> Any:
    """Holds the place of the score function until it is restored."""
    raise NotImplementedError


def _restore_scores(step: Any, facts: Facts) -> int:
    from sklearn import feature_selection

    name = facts.get("score_func")
    facts.expect("score_func", isinstance(name, str) and name in SCORES, f"one of {SCORES}")
    step.score_func = getattr(feature_selection, name)
    step.scores_ = facts.array("scores_", 1)
    n = len(step.scores_)
    step.pvalues_ = None if facts.get("pvalues_") is None else facts.array("pvalues_", 1)
    facts.expect(
        "pvalues_", step.pvalues_ is None or len(step.pvalues_) == n, f"a vector of {n} numbers"
    )
    _expect_some(step, facts)
    return n


def _restore_variances(step: Any, facts: Facts) -> int:
    step.variances_ = facts.vector("variances_", nan=True)
    _expect_some(step, facts)
    return len(step.variances_)


def _restore_selected(step: Any, facts: Facts) -> int:
    mask = facts.get("support")
    right = isinstance(mask, np.ndarray) and mask.ndim == 1 and mask.dtype == bool
    facts.expect("support", right, "an array of booleans")
    step.support = mask
    step.fit(np.empty((1, len(mask))))
    _expect_some(step, facts)
    return len(mask)


def _expect_some(step: Any, facts: Facts) -> None:
    try:
        some = step._get_support_mask().any()
    except (TypeError, ValueError, AttributeError):  # p-values that are needed and not there
        some = False
    facts.expect("the number of selected columns", some, "at least 1")


def _by_scores(name: str, *parameters: str) -> KnownStep:
    return KnownStep(
        SELECTION, name, parameters,
        facts=_score_facts, restore=_restore_scores, operations=_select,
        absent={"score_func": _no_score},
    )  # fmt: skip


SELECTORS = [
    _by_scores("SelectKBest", "k"),
    _by_scores("SelectPercentile", "percentile"),
    _by_scores("SelectFpr", "alpha"),
    _by_scores("SelectFdr", "alpha"),
    _by_scores("SelectFwe", "alpha"),
    _by_scores("GenericUnivariateSelect", "mode", "param"),
    KnownStep(
        SELECTION, "VarianceThreshold", ("threshold",),
        facts=attributes("variances_"), restore=_restore_variances, operations=_select,
    ),
]  # fmt: skip

# Any other selector, such as RFE: the columns that it has selected.
SELECTED = KnownStep(
    "quadric.pipelines._selected_features", "SelectedFeatures", (),
    facts=lambda step: {"support": np.asarray(step.get_support())},
    restore=_restore_selected, operations=_select,
    absent={"support": None},
)  # fmt: skip
