"""Scalers: each column by itself, moved and scaled."""

from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.pipelines._known_steps import Facts, KnownStep, attributes
from quadric.pipelines._operations import Affine, Clip, Operation, Power

PREPROCESSING = "sklearn.preprocessing"


def _scaled(n: int, center: Any, scale: Any) -> list[Operation]:
    """(u - center) / scale, either of them left out if None."""
    if center is None and scale is None:
        return []
    center = np.zeros(n) if center is None else np.asarray(center, dtype=float)
    factor = np.ones(n) if scale is None else 1 / np.asarray(scale, dtype=float)
    return [Affine(factor, center, np.zeros(n))]


# ------------------------------------------------------------------------ StandardScaler


def _standard(step: Any) -> list[Operation]:
    return _scaled(
        step.n_features_in_, step.mean_ if step.with_mean else None, getattr(step, "scale_", None)
    )


def _restore_standard(step: Any, facts: Facts) -> int:
    """`scale_` is a fact beside `var_`: versions differ in which columns they call constant."""
    n = facts.count("n_features_in_", 1)
    step.mean_ = None if facts.get("mean_") is None else facts.vector("mean_", n, nan=True)
    step.var_ = facts.vector("var_", n, least=0, nan=True) if step.with_std else None
    step.scale_ = facts.vector("scale_", n, least=0, nan=True) if step.with_std else None
    facts.expect("scale_", step.scale_ is None or (step.scale_ != 0).all(), "other than zero")
    facts.expect("mean_", not step.with_mean or step.mean_ is not None, "a vector")
    step.n_samples_seen_ = facts.samples_seen("n_samples_seen_", n)
    return n


def _typical_standard(step: Any) -> tuple[Array, Array] | None:
    if step.scale_ is None:
        return None
    n = step.n_features_in_
    return np.zeros(n) if step.mean_ is None else step.mean_, np.asarray(step.scale_)


# -------------------------------------------------------------------------- MinMaxScaler


def _min_max(step: Any) -> list[Operation]:
    low, high = step.feature_range
    scale, smallest = np.asarray(step.scale_, dtype=float), np.asarray(step.data_min_, dtype=float)
    # not `low`: of data in float16, `min_` is rounded to three digits
    shift = np.asarray(step.min_, dtype=float) + scale * smallest
    operations: list[Operation] = [Affine(scale, smallest, shift)]
    return [*operations, Clip(low, high)] if step.clip else operations


def _restore_min_max(step: Any, facts: Facts) -> int:
    """By its own `fit`, on the two rows that the smallest and the largest values are."""
    smallest = facts.vector("data_min_", nan=True)
    largest = facts.vector("data_max_", len(smallest), nan=True)
    facts.expect("data_max_", not (largest < smallest).any(), "at least data_min_")
    facts.expect(
        "data_max_", (np.isnan(largest) == np.isnan(smallest)).all(), "missing where data_min_ is"
    )
    with np.errstate(all="ignore"):
        step.fit(np.vstack([smallest, largest]))
    for name in ("scale_", "min_"):
        value = getattr(step, name)
        facts.expect(
            "data_max_", np.isfinite(value[~np.isnan(smallest)]).all(), "small enough to be scaled"
        )
    step.n_samples_seen_ = facts.samples_seen("n_samples_seen_", len(smallest))
    return len(smallest)


def _typical_min_max(step: Any) -> tuple[Array, Array]:
    low, high = np.asarray(step.data_min_, dtype=float), np.asarray(step.data_max_, dtype=float)
    return (low + high) / 2, (high - low) / np.sqrt(12)


# -------------------------------------------------------------------------- MaxAbsScaler


def _max_abs(step: Any) -> list[Operation]:
    operations = _scaled(step.n_features_in_, None, step.scale_)
    return [*operations, Clip(-1.0, 1.0)] if getattr(step, "clip", False) else operations


def _restore_max_abs(step: Any, facts: Facts) -> int:
    """By its own `fit`, on the row of the largest absolute values."""
    largest = facts.vector("max_abs_", least=0, nan=True)
    step.fit(largest[None])
    step.n_samples_seen_ = facts.samples_seen("n_samples_seen_", len(largest))
    return len(largest)


def _typical_max_abs(step: Any) -> tuple[Array, Array]:
    return np.zeros(step.n_features_in_), np.asarray(step.max_abs_) / 2


# -------------------------------------------------------------------------- RobustScaler


def _robust(step: Any) -> list[Operation]:
    return _scaled(
        step.n_features_in_,
        step.center_ if step.with_centering else None,
        step.scale_ if step.with_scaling else None,
    )


def _restore_robust(step: Any, facts: Facts) -> int:
    n = facts.count("n_features_in_", 1)
    low, high = step.quantile_range
    facts.expect("quantile_range", 0 <= low <= high <= 100, "two percentages in increasing order")
    step.center_ = facts.vector("center_", n, nan=True) if step.with_centering else None
    step.scale_ = facts.vector("scale_", n, least=0, nan=True) if step.with_scaling else None
    facts.expect("scale_", step.scale_ is None or (step.scale_ != 0).all(), "other than zero")
    return n


def _typical_robust(step: Any) -> tuple[Array, Array] | None:
    if not (step.with_scaling and step.with_centering):
        return None
    return np.asarray(step.center_), np.asarray(step.scale_) / 1.35  # of the normal quartiles


# ---------------------------------------------------------------------- PowerTransformer


def _power(step: Any) -> list[Operation]:
    operations: list[Operation] = [Power(step.method, np.asarray(step.lambdas_, dtype=float))]
    return operations + (_standard(step._scaler) if step.standardize else [])


def _power_facts(step: Any) -> dict[str, Any]:
    facts = {"lambdas_": step.lambdas_}
    return {**facts, **STANDARD_FACTS(step._scaler)} if step.standardize else facts


def _restore_power(step: Any, facts: Facts) -> int:
    from sklearn.preprocessing import StandardScaler

    step.lambdas_ = facts.vector("lambdas_")
    n = len(step.lambdas_)
    if step.standardize:
        step._scaler = StandardScaler(copy=False).set_output(transform="default")
        facts.expect(
            "mean_", _restore_standard(step._scaler, facts) == n, f"a vector of {n} numbers"
        )
        step._scaler.n_features_in_ = n
    return n


STANDARD_FACTS = attributes("n_features_in_", "mean_", "var_", "scale_", "n_samples_seen_")

SCALERS = [
    KnownStep(
        PREPROCESSING, "StandardScaler", ("with_mean", "with_std"),
        facts=STANDARD_FACTS, restore=_restore_standard, operations=_standard,
        typical=_typical_standard,
    ),
    KnownStep(
        PREPROCESSING, "MinMaxScaler", ("feature_range", "clip"),
        facts=attributes("data_min_", "data_max_", "n_samples_seen_"), restore=_restore_min_max,
        operations=_min_max, typical=_typical_min_max,
    ),
    KnownStep(
        PREPROCESSING, "MaxAbsScaler", ("clip",),
        facts=attributes("max_abs_", "n_samples_seen_"), restore=_restore_max_abs,
        operations=_max_abs, typical=_typical_max_abs,
    ),
    KnownStep(
        PREPROCESSING, "RobustScaler",
        ("with_centering", "with_scaling", "quantile_range", "unit_variance"),
        facts=attributes("n_features_in_", "center_", "scale_"), restore=_restore_robust,
        operations=_robust, typical=_typical_robust,
    ),
    KnownStep(
        PREPROCESSING, "PowerTransformer", ("method", "standardize"),
        facts=_power_facts, restore=_restore_power, operations=_power,
    ),
]  # fmt: skip
