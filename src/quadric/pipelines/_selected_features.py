"""SelectedFeatures, which replaces a selector in a model file."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from quadric._utils.arrays import Array


class SelectedFeatures(SelectorMixin, BaseEstimator):
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

    def fit(self, X: Any, y: Any = None) -> SelectedFeatures:
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
