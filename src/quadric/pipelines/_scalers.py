"""Scalers and power transforms, which treat each column by itself."""

from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.pipelines._known_steps import Facts, KnownStep, attributes
from quadric.pipelines._operations import Affine, Clip, Operation, Power

SMALLEST_SCALE = 1e-162  # about the square root of the smallest number, as a variance


def _scaled(n: int, center: Any, scale: Any) -> list[Operation]:
    """(u - center) / scale, where None stands for no centering or no scaling."""
    if center is None and scale is None:
        return []
    center = np.zeros(n) if center is None else np.asarray(center, dtype=float)
    factor = np.ones(n) if scale is None else 1 / np.asarray(scale, dtype=float)
    return [Affine(factor, center, np.zeros(n))]


def _scale(facts: Facts, n: int) -> Array:
    """A vector without the tiny values that `fit` never computes and that overflow on any data."""
    return facts.vector("scale_", n, least=SMALLEST_SCALE, nan=True)


# ------------------------------------------------------------------------ StandardScaler


def _standard(step: Any) -> list[Operation]:
    return _scaled(
        step.n_features_in_, step.mean_ if step.with_mean else None, getattr(step, "scale_", None)
    )


def _restore_standard(step: Any, facts: Facts) -> int:
    """`scale_` is not computed from `var_`: versions differ in which columns they call constant."""
    n = facts.count("n_features_in_", 1)
    step.mean_ = None if facts.get("mean_") is None else facts.vector("mean_", n, nan=True)
    facts.expect("mean_", not step.with_mean or step.mean_ is not None, "a vector")
    step.var_ = facts.vector("var_", n, least=0, nan=True) if step.with_std else None
    step.scale_ = _scale(facts, n) if step.with_std else None
    step.n_samples_seen_ = facts.samples_seen("n_samples_seen_", n)
    return n


def _typical_standard(step: Any) -> tuple[Array, Array] | None:
    if step.scale_ is None:
        return None
    return (
        np.zeros(step.n_features_in_) if step.mean_ is None else step.mean_,
        np.asarray(step.scale_),
    )


# ------------------------------------------------------------ MinMaxScaler, MaxAbsScaler


def _min_max(step: Any) -> list[Operation]:
    scale, smallest = np.asarray(step.scale_, dtype=float), np.asarray(step.data_min_, dtype=float)
    # not feature_range[0]: for data in float16, `min_` is rounded to three digits
    shift = np.asarray(step.min_, dtype=float) + scale * smallest
    clip = [Clip(*step.feature_range)] if step.clip else []
    return [Affine(scale, smallest, shift), *clip]


def _restore_min_max(step: Any, facts: Facts) -> int:
    """Fit the step to two rows, the smallest and the largest values."""
    smallest = facts.vector("data_min_", nan=True)
    largest = facts.vector("data_max_", len(smallest), nan=True)
    facts.expect("data_max_", not (largest < smallest).any(), "at least data_min_")
    facts.expect(
        "data_max_", (np.isnan(largest) == np.isnan(smallest)).all(), "missing where data_min_ is"
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
    """Fit the step to one row, the largest absolute values."""
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
    step.scale_ = _scale(facts, n) if step.with_scaling else None
    return n


def _typical_robust(step: Any) -> tuple[Array, Array] | None:
    if not (step.with_scaling and step.with_centering):
        return None
    return np.asarray(step.center_), np.asarray(step.scale_) / 1.35  # the normal quartile range


# ---------------------------------------------------------------------- PowerTransformer


def _power(step: Any) -> list[Operation]:
    scaling = _standard(step._scaler) if step.standardize else []
    return [Power(step.method, np.asarray(step.lambdas_, dtype=float)), *scaling]


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
        "sklearn.preprocessing:StandardScaler",
        ("with_mean", "with_std"),
        facts=STANDARD_FACTS,
        restore=_restore_standard,
        operations=_standard,
        typical=_typical_standard,
    ),
    KnownStep(
        "sklearn.preprocessing:MinMaxScaler",
        ("feature_range", "clip"),
        facts=attributes("data_min_", "data_max_", "n_samples_seen_"),
        restore=_restore_min_max,
        operations=_min_max,
        typical=_typical_min_max,
    ),
    KnownStep(
        "sklearn.preprocessing:MaxAbsScaler",
        ("clip",),
        facts=attributes("max_abs_", "n_samples_seen_"),
        restore=_restore_max_abs,
        operations=_max_abs,
        typical=lambda step: (np.zeros(step.n_features_in_), np.asarray(step.max_abs_) / 2),
    ),
    KnownStep(
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
    KnownStep(
        "sklearn.preprocessing:PowerTransformer",
        ("method", "standardize"),
        facts=_power_facts,
        restore=_restore_power,
        operations=_power,
    ),
]
