"""Every supported step, with its data and whether it is affine."""

import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import (
    RFE,
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from quadric import QuadraticLogisticRegression

# scikit-learn 1.6 has no such parameter, and later versions warn if it is not given
QUANTILES = {
    name: "averaged_inverted_cdf"
    for name in KBinsDiscretizer().get_params()
    if name == "quantile_method"
}
RNG = np.random.default_rng(5)
NUMBERS = RNG.normal([0, 3, -1, 100], [1, 2, 0.1, 5], size=(120, 4))
POSITIVE = np.exp(NUMBERS[:, :3])
GAPS = np.where(RNG.uniform(size=NUMBERS.shape) < 0.1, np.nan, NUMBERS)
EMPTY = np.column_stack([GAPS, np.full(len(GAPS), np.nan)])
TABLE = pd.DataFrame(
    {
        "size": GAPS[:, 0],
        "weight": NUMBERS[:, 1],
        "colour": RNG.choice(["red", "blue", "gr\u00fcn", "mauve"], 120, p=[0.4, 0.3, 0.28, 0.02]),
        "shop": RNG.choice([1, 2, 40], 120),
    }
)
TEXT = pd.DataFrame(
    {
        "colour": TABLE["colour"].astype(object),
        "grade": RNG.choice(["a", "b", "c"], 120).astype(object),
    }
)
TEXT_GAPS = TEXT.mask(RNG.uniform(size=TEXT.shape) < 0.1, None).astype(object)
WHOLE = pd.DataFrame({"shop": TABLE["shop"], "hour": RNG.integers(0, 4, 120)})
Y = np.where(NUMBERS[:, 0] ** 2 + NUMBERS[:, 1] > 4, "yes", "no")


def _columns(**settings):
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size", "weight"]),
            ("text", OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ],
        **settings,
    )


# name: step, data, whether it is affine (None if it has both affine and other branches)
CASES = {
    "StandardScaler": (StandardScaler(), NUMBERS, True),
    "StandardScaler scale only": (StandardScaler(with_mean=False), NUMBERS, True),
    "StandardScaler nothing": (StandardScaler(with_mean=False, with_std=False), NUMBERS, True),
    "MinMaxScaler": (MinMaxScaler((-1, 2)), NUMBERS, True),
    "MinMaxScaler clip": (MinMaxScaler(clip=True), NUMBERS, False),
    "MaxAbsScaler": (MaxAbsScaler(), NUMBERS, True),
    "RobustScaler": (RobustScaler(), NUMBERS, True),
    "RobustScaler center only": (RobustScaler(with_scaling=False), NUMBERS, True),
    "PowerTransformer": (PowerTransformer(), NUMBERS, False),
    "PowerTransformer box-cox": (PowerTransformer("box-cox", standardize=False), POSITIVE, False),
    "PCA": (PCA(2), NUMBERS, True),
    "PCA whiten": (PCA(0.9999, whiten=True), NUMBERS, True),
    "IncrementalPCA": (IncrementalPCA(2), NUMBERS, True),
    "TruncatedSVD": (TruncatedSVD(2, random_state=0), NUMBERS, True),
    "SimpleImputer": (SimpleImputer(), GAPS, True),
    "SimpleImputer marks": (SimpleImputer(strategy="median", add_indicator=True), GAPS, None),
    "SimpleImputer empty column": (SimpleImputer(), EMPTY, True),
    "SimpleImputer of -1": (SimpleImputer(missing_values=-1), np.nan_to_num(GAPS, nan=-1), False),
    "OneHotEncoder": (OneHotEncoder(), TEXT, False),
    "OneHotEncoder drop": (OneHotEncoder(drop="first", sparse_output=False), TEXT, False),
    "OneHotEncoder drop given": (OneHotEncoder(drop=["red", "b"]), TEXT, False),
    "OneHotEncoder rare": (
        OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist"),
        TEXT,
        False,
    ),
    "OneHotEncoder rare, two left": (
        OneHotEncoder(max_categories=2, drop="if_binary"),
        TEXT,
        False,
    ),
    "OneHotEncoder missing": (OneHotEncoder(), TEXT_GAPS, False),
    "OneHotEncoder whole numbers": (OneHotEncoder(handle_unknown="ignore"), WHOLE, False),
    "OrdinalEncoder": (OrdinalEncoder(), TEXT, False),
    "OrdinalEncoder unknown": (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        TEXT,
        False,
    ),
    "OrdinalEncoder rare": (OrdinalEncoder(min_frequency=10), TEXT, False),
    "OrdinalEncoder missing": (
        OrdinalEncoder(encoded_missing_value=-2, min_frequency=10),
        TEXT_GAPS.fillna(np.nan),
        False,
    ),
    "OrdinalEncoder whole numbers": (OrdinalEncoder(), WHOLE, False),
    "KBinsDiscretizer": (KBinsDiscretizer(3, **QUANTILES), NUMBERS, False),
    "KBinsDiscretizer ordinal": (
        KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
        NUMBERS,
        False,
    ),
    "KBinsDiscretizer dense": (
        KBinsDiscretizer([2, 3, 2, 5], encode="onehot-dense", strategy="kmeans", random_state=0),
        NUMBERS,
        False,
    ),
    "SelectKBest": (SelectKBest(k=2), NUMBERS, True),
    "SelectKBest chi2": (SelectKBest(chi2, k=1), POSITIVE, True),
    "SelectPercentile": (SelectPercentile(percentile=60), NUMBERS, True),
    "SelectFpr": (SelectFpr(alpha=0.5), NUMBERS, True),
    "SelectFdr": (SelectFdr(alpha=0.9), NUMBERS, True),
    "SelectFwe": (SelectFwe(alpha=0.9), NUMBERS, True),
    "GenericUnivariateSelect": (GenericUnivariateSelect(mode="k_best", param=3), NUMBERS, True),
    "VarianceThreshold": (VarianceThreshold(0.5), NUMBERS, True),
    "RFE": (RFE(LogisticRegression(), n_features_to_select=2), NUMBERS, True),
    "SelectFromModel": (SelectFromModel(LogisticRegression()), NUMBERS, True),
    "SelectKBest own score": (SelectKBest(lambda X, y: np.abs(X).sum(axis=0), k=2), NUMBERS, True),
    "FunctionTransformer": (FunctionTransformer(), NUMBERS, True),
    "Pipeline": (make_pipeline(StandardScaler(), "passthrough", PCA(3)), NUMBERS, True),
    "FeatureUnion": (
        FeatureUnion(
            [("a", StandardScaler()), ("b", PCA(1)), ("c", "passthrough")],
            transformer_weights={"b": 0.5},
        ),
        NUMBERS,
        True,
    ),
    "ColumnTransformer": (_columns(), TABLE, None),
    "ColumnTransformer affine, weighted": (
        ColumnTransformer(
            [("a", StandardScaler(), [0, 2]), ("b", "passthrough", [3]), ("gone", "drop", [1])],
            transformer_weights={"a": 3.0},
        ),
        NUMBERS,
        True,
    ),
    "ColumnTransformer rest": (_columns(remainder="passthrough"), TABLE, None),
    "ColumnTransformer rest scaled": (
        _columns(remainder=StandardScaler(), verbose_feature_names_out=False),
        TABLE,
        None,
    ),
    "ColumnTransformer weighted": (_columns(transformer_weights={"numbers": 3.0}), TABLE, None),
    "ColumnTransformer no columns": (
        ColumnTransformer([("none", StandardScaler(), []), ("a", PCA(2), [0, 1, 2])]),
        NUMBERS,
        True,
    ),
    "ColumnTransformer inside": (
        ColumnTransformer(
            [
                ("in", ColumnTransformer([("a", MinMaxScaler(), [1, 0])]), [0, 2]),
                ("bins", KBinsDiscretizer(3, strategy="uniform"), [1]),
            ]
        ),
        NUMBERS,
        None,
    ),
}


def fitted_case(name):
    step, X, _ = CASES[name]
    model = make_pipeline(
        clone(step), StandardScaler(with_mean=False), QuadraticLogisticRegression()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # features without values, few iterations
        return model.fit(X, Y), X
