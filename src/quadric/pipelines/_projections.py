"""Projections on a few directions, learned from data."""

from typing import Any

import numpy as np

from quadric.pipelines._known_steps import Facts, KnownStep, attributes
from quadric.pipelines._operations import Affine, Operation

DECOMPOSITION = "sklearn.decomposition"
MOST_STEPS = 10_000  # of the solvers, in another `fit`
VARIANCES = ("explained_variance_", "explained_variance_ratio_", "singular_values_")


def _pca(step: Any) -> list[Operation]:
    A = np.asarray(step.components_, dtype=float)
    if step.whiten:
        least = np.finfo(step.explained_variance_.dtype).eps  # as scikit-learn has it
        A = A / np.maximum(np.sqrt(step.explained_variance_), least)[:, None]
    return [Affine(A, np.asarray(step.mean_, dtype=float), np.zeros(len(A)))]


def _svd(step: Any) -> list[Operation]:
    A = np.asarray(step.components_, dtype=float)
    return [Affine(A, np.zeros(A.shape[1]), np.zeros(len(A)))]


def _restore_directions(step: Any, facts: Facts) -> int:
    for name in ("n_iter", "iterated_power", "n_oversamples"):
        given = getattr(step, name, 0)
        facts.expect(name, isinstance(given, str) or given <= MOST_STEPS, f"at most {MOST_STEPS}")
    step.components_ = facts.matrix("components_")
    k, n = step.components_.shape
    for name in VARIANCES:
        setattr(step, name, facts.vector(name, k, nan=True))
    facts.expect("explained_variance_", not np.isnan(step.explained_variance_).any(), "finite")
    return n


def _restore_pca(step: Any, facts: Facts) -> int:
    n = _restore_directions(step, facts)
    step.mean_ = facts.vector("mean_", n)
    step.n_components_ = len(step.components_)
    step.noise_variance_ = facts.number("noise_variance_")
    step.n_samples_ = facts.count("n_samples_", 1)
    # which of the solvers `fit` has taken is of no use to a fitted step, but it looks for it
    step._fit_svd_solver = "full" if step.svd_solver == "auto" else step.svd_solver
    return n


def _restore_incremental(step: Any, facts: Facts) -> int:
    n = _restore_directions(step, facts)
    step.mean_ = facts.vector("mean_", n)
    step.var_ = facts.vector("var_", n, least=0)
    step.n_components_ = len(step.components_)
    step.noise_variance_ = facts.number("noise_variance_")
    step.n_samples_seen_ = facts.samples_seen("n_samples_seen_", n)
    if facts.get("batch_size_") is not None:  # partial_fit alone does not set it
        step.batch_size_ = facts.count("batch_size_", 1)
    return n


PROJECTIONS = [
    KnownStep(
        DECOMPOSITION, "PCA",
        ("n_components", "whiten", "svd_solver", "tol", "iterated_power", "n_oversamples",
         "power_iteration_normalizer", "random_state"),
        facts=attributes("components_", *VARIANCES, "mean_", "noise_variance_", "n_samples_"),
        restore=_restore_pca, operations=_pca,
    ),
    KnownStep(
        DECOMPOSITION, "IncrementalPCA", ("n_components", "whiten", "batch_size"),
        facts=attributes(
            "components_", *VARIANCES, "mean_", "var_", "noise_variance_", "n_samples_seen_",
            "batch_size_",
        ),
        restore=_restore_incremental, operations=_pca,
    ),
    KnownStep(
        DECOMPOSITION, "TruncatedSVD",
        ("n_components", "algorithm", "n_iter", "n_oversamples", "power_iteration_normalizer",
         "random_state", "tol"),
        facts=attributes("components_", *VARIANCES), restore=_restore_directions,
        operations=_svd,
    ),
]  # fmt: skip
