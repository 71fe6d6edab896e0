"""Projections onto a few directions: PCA and truncated SVD."""

from typing import Any

import numpy as np

from quadric.pipelines._known_steps import Facts, KnownStep, attributes
from quadric.pipelines._operations import Affine, Operation

MOST_ITERATIONS = 10_000  # of a solver, if the restored step is fitted again
LONGEST = 1.001  # an entry of a unit vector, rounded
VARIANCES = ("explained_variance_", "explained_variance_ratio_", "singular_values_")


def _project(step: Any) -> list[Operation]:
    A = np.asarray(step.components_, dtype=float)
    if getattr(step, "whiten", False):
        least = np.finfo(step.explained_variance_.dtype).eps  # as in scikit-learn
        A = A / np.maximum(np.sqrt(step.explained_variance_), least)[:, None]
    mean = getattr(step, "mean_", np.zeros(A.shape[1]))  # a TruncatedSVD has none
    return [Affine(A, np.asarray(mean, dtype=float), np.zeros(len(A)))]


def _restore_directions(step: Any, facts: Facts) -> int:
    for name in ("n_iter", "iterated_power", "n_oversamples"):
        given = getattr(step, name, 0)
        facts.expect(
            name, isinstance(given, str) or given <= MOST_ITERATIONS, f"at most {MOST_ITERATIONS}"
        )
    step.components_ = facts.matrix("components_")
    largest = np.abs(step.components_).max(initial=0)
    facts.expect("components_", largest <= LONGEST, "unit vectors")
    k, n = step.components_.shape
    for name in VARIANCES:
        setattr(step, name, facts.vector(name, k, nan=True))
    facts.expect("explained_variance_", not np.isnan(step.explained_variance_).any(), "finite")
    if hasattr(step, "whiten"):  # PCA and IncrementalPCA
        step.mean_ = facts.vector("mean_", n)
        step.n_components_ = k
        step.noise_variance_ = facts.number("noise_variance_")
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


_CENTERED = ("components_", *VARIANCES, "mean_", "noise_variance_")
PROJECTIONS = [
    KnownStep(
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
    KnownStep(
        "sklearn.decomposition:IncrementalPCA",
        ("n_components", "whiten", "batch_size"),
        facts=attributes(*_CENTERED, "var_", "n_samples_seen_", "batch_size_"),
        restore=_restore_incremental,
        operations=_project,
    ),
    KnownStep(
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
]
