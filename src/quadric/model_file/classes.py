"""Which classes a model file may name, and which attributes of theirs it may hold.

A name in a file is looked up here and nowhere else; nothing is imported because a file says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelBinarizer,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

from quadric.estimators import (
    QuadraticClassifier,
    QuadraticLogisticRegression,
    QuadraticRegressor,
)

__all__ = ["CLASSES", "ESTIMATORS", "STEPS", "Known", "supported"]


class Known(NamedTuple):
    """A class, what `fit` gives it, what of that is not kept, and what older files held."""

    of: type[Any]
    fitted: frozenset[str]
    dropped: frozenset[str] = frozenset()
    former: frozenset[str] = frozenset()

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.of._get_param_names())


# Attributes of any estimator: what X looked like, and the form of a transformer's output.
COMMON = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")
# Set for the time of a fit (routing of metadata, callbacks): of no use to a fitted model.
PASSING = ("_metadata_request", "_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx")


def _known(of: type[Any], fitted: str = "", dropped: str = "", former: str = "") -> Known:
    return Known(
        of,
        frozenset([*COMMON, *fitted.split()]),
        frozenset([*PASSING, *dropped.split()]),
        frozenset(former.split()),
    )


RECORDS = (
    "network_ n_iter_ t_ loss_ loss_curve_ best_loss_ validation_scores_ best_validation_score_ "
    "_alpha "
)
STATE = "_state"  # of training: the optimiser's memory
FORMER = "_no_improvement_count _solver _rate"

ESTIMATORS = {
    "QuadraticClassifier": _known(
        QuadraticClassifier, RECORDS + "classes_ _label_binarizer", STATE, FORMER
    ),
    "QuadraticRegressor": _known(QuadraticRegressor, RECORDS, STATE, FORMER),
    "QuadraticLogisticRegression": _known(
        QuadraticLogisticRegression, "network_ classes_ n_iter_", "coef_ intercept_"
    ),
}

STEPS = {
    "StandardScaler": _known(StandardScaler, "mean_ var_ scale_ n_samples_seen_"),
    "MinMaxScaler": _known(
        MinMaxScaler, "min_ scale_ data_min_ data_max_ data_range_ n_samples_seen_"
    ),
    "PCA": _known(
        PCA,
        "components_ explained_variance_ explained_variance_ratio_ singular_values_ mean_ "
        "n_components_ n_samples_ noise_variance_ _fit_svd_solver",
    ),
    "SimpleImputer": _known(SimpleImputer, "statistics_ indicator_ _fit_dtype _fill_dtype"),
    "OneHotEncoder": _known(
        OneHotEncoder,
        "categories_ drop_idx_ _infrequent_enabled _infrequent_indices "
        "_default_to_infrequent_mappings _drop_idx_after_grouping _n_features_outs",
    ),
    "ColumnTransformer": _known(
        ColumnTransformer,
        "transformers_ sparse_output_ output_indices_ _columns _remainder _n_features "
        "_transformer_to_input_indices _name_to_fitted_passthrough "
        "_transformers_feature_names_out",
    ),
    "Pipeline": _known(Pipeline),
}

# What the classes above hold inside them.
INNER = {
    "LabelBinarizer": _known(LabelBinarizer, "classes_ y_type_ sparse_input_"),
    "MissingIndicator": _known(MissingIndicator, "features_ _n_features _precomputed"),
    "FunctionTransformer": _known(FunctionTransformer),  # without a function: 'passthrough'
}

CLASSES = {**ESTIMATORS, **STEPS, **INNER}


def supported() -> str:
    """For messages: what may be in front of an estimator."""
    return ", ".join(STEPS)
