"""Gaussian classes and ellipsoids as one layer of quadratic neurons."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import Array, as_numbers
from quadric.core._layers import Quadratic
from quadric.geometry import Quadric
from quadric.network import Network

FLOAT = np.dtype(np.float64)


def from_qda(qda: Any) -> Network:
    """A fitted QuadraticDiscriminantAnalysis as a network: one quadratic layer, softmax.

    Its outputs are the probabilities of `qda.predict_proba`, the classes in the order of
    `qda.classes_`. It can be trained on from there: a warm start. The neurons' coefficients are
    about the origin: data that are much farther from it than they are wide lose digits, and
    should be centred first.
    """
    for name in ("rotations_", "scalings_", "means_", "priors_"):
        if not hasattr(qda, name):
            raise TypeError(
                "qda must be a fitted sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis. "
                f"Got {type(qda).__name__} without {name}; call fit first."
            )
    if not (np.asarray(qda.priors_) > 0).all():
        raise ValueError(
            "the priors of qda must be positive: a class that never occurs has no neuron. Leave it "
            f"out. Got {np.asarray(qda.priors_).tolist()}."
        )
    # the covariance of class k is R diag(S) R'
    precisions, log_determinants = [], []
    for R, S in zip(qda.rotations_, qda.scalings_, strict=True):
        precisions.append((R / S) @ R.T)
        log_determinants.append(float(np.log(S).sum()))
    return _network(
        np.asarray(qda.means_, dtype=FLOAT),
        np.array(precisions),
        np.array(log_determinants),
        np.asarray(qda.priors_, dtype=FLOAT),
    )


def from_gaussians(means: Any, covariances: Any, priors: Any = None) -> Network:
    """Bayes' classifier for Gaussian classes as a network: one quadratic layer, softmax.

    Parameters
    ----------
    means : array of shape (classes, n)
    covariances : array of shape (classes, n, n)
        Symmetric and positive definite.
    priors : array of shape (classes,), optional
        Positive; scaled to a sum of 1. The default is equal ones.
    """
    means = as_numbers("means", means, FLOAT)
    covariances = as_numbers("covariances", covariances, FLOAT)
    if means.ndim != 2 or covariances.shape != (*means.shape, means.shape[-1]) or not means.size:
        raise ValueError(
            "means must have shape (classes, n) and covariances (classes, n, n). "
            f"Got {means.shape} and {covariances.shape} instead."
        )
    C = len(means)
    priors = np.full(C, 1 / C) if priors is None else as_numbers("priors", priors, FLOAT)
    if priors.shape != (C,) or not (priors > 0).all():
        raise ValueError(f"priors must be {C} positive numbers. Got {priors} instead.")
    precisions, log_determinants = np.empty_like(covariances), np.empty(C)
    for k, covariance in enumerate(covariances):
        if np.abs(covariance - covariance.T).max() > 1e-8 * np.abs(covariance).max():
            raise ValueError(f"covariances must be symmetric; that of class {k} is not.")
        try:
            L = np.linalg.cholesky((covariance + covariance.T) / 2)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"covariances must be positive definite; that of class {k} is not. Add a small "
                "multiple of the identity to it."
            ) from None
        inverse = np.linalg.inv(L)
        precisions[k] = inverse.T @ inverse
        log_determinants[k] = 2 * np.log(np.diag(L)).sum()
    return _network(means, precisions, log_determinants, priors / priors.sum())


def _network(means: Array, precisions: Array, log_determinants: Array, priors: Array) -> Network:
    """z_k = log prior_k - (log det + (x - mean)' precision (x - mean)) / 2."""
    Pm = np.einsum("kij,kj->ki", precisions, means)
    b = np.log(priors) - (log_determinants + (Pm * means).sum(axis=1)) / 2
    return Network([Quadratic(Pm, b, -precisions / 2)], ["softmax"])


def from_ellipsoids(ellipsoids: Sequence[Quadric], sharpness: float = 1.0) -> Network:
    """One logistic neuron for each ellipsoid, above 1/2 exactly inside it.

    ``z = sharpness (1 - r^2)``, r being 0 at the centre and 1 on the surface.

    Parameters
    ----------
    ellipsoids : sequence of Quadric
    sharpness : float
        How steeply a neuron falls from inside to outside.
    """
    sharpness = checks.check_number("sharpness", sharpness, above=0)
    ellipsoids = list(ellipsoids)
    if not ellipsoids:
        raise ValueError("ellipsoids must hold at least one. Got none.")
    Q, W, b = [], [], []
    for k, quadric in enumerate(ellipsoids):
        if not isinstance(quadric, Quadric) or not quadric.is_ellipsoid:
            kind = quadric.kind if isinstance(quadric, Quadric) else type(quadric).__name__
            raise ValueError(f"ellipsoids[{k}] must be an ellipsoid. Got {kind} instead.")
        center = quadric.center
        assert center is not None
        factor = sharpness / quadric.value(center)  # z is `sharpness` at the centre
        there = center @ quadric.Q @ center + quadric.w @ center + quadric.b
        if abs(factor * there - sharpness) > 0.01 * sharpness:
            raise ValueError(
                f"ellipsoids[{k}] is so far from the origin, beside its size, that float64 cannot "
                "hold its neuron's coefficients. Shift the coordinates first."
            )
        Q.append(factor * quadric.Q)
        W.append(factor * quadric.w)
        b.append(factor * quadric.b)
    if len({len(w) for w in W}) > 1:
        raise ValueError("ellipsoids must all have the same dimension.")
    return Network([Quadratic(np.array(W), np.array(b), np.array(Q))], ["logistic"])
