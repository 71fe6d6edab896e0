"""Gaussian classes and ellipsoids as one layer of quadratic neurons."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric._utils import checks
from quadric._utils.arrays import Array, as_numbers
from quadric.core._layers import Quadratic
from quadric.geometry import Quadric
from quadric.geometry._ellipsoids import cholesky
from quadric.geometry._function import FLOAT64
from quadric.network import Network


def from_qda(qda: Any) -> Network:
    """Convert a fitted QuadraticDiscriminantAnalysis to a network.

    The network has one quadratic layer with softmax, and can be trained further. The coefficients
    of the neurons refer to the origin: centre data whose distance from the origin is much larger
    than their spread, because digits are lost otherwise.

    Parameters
    ----------
    qda : sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis
        A fitted model.

    Returns
    -------
    Network
        A network whose outputs are `qda.predict_proba`, in the order of `qda.classes_`.
    """
    for name in ("rotations_", "scalings_", "means_", "priors_"):
        if not hasattr(qda, name):
            raise TypeError(
                "qda must be a fitted sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis. "
                f"Got {type(qda).__name__} without {name}; call fit first."
            )
    priors = np.asarray(qda.priors_, dtype=FLOAT64)
    if not (priors > 0).all():
        raise ValueError(
            "the priors of qda must be positive, because a class that never occurs has no neuron. "
            f"Got {priors.tolist()}; leave out such classes."
        )
    # the covariance of class k is R diag(S) R'
    precisions = [(R / S) @ R.T for R, S in zip(qda.rotations_, qda.scalings_, strict=True)]
    log_determinants = [float(np.log(S).sum()) for S in qda.scalings_]
    means = np.asarray(qda.means_, dtype=FLOAT64)
    return _network(means, np.array(precisions), np.array(log_determinants), priors)


def from_gaussians(means: Any, covariances: Any, priors: Any = None) -> Network:
    """Convert Gaussian class densities to the network of Bayes' classifier.

    The network has one quadratic layer with softmax.

    Parameters
    ----------
    means : array of shape (n_classes, n)
        Mean of each class.
    covariances : array of shape (n_classes, n, n)
        Covariance of each class, symmetric and positive definite.
    priors : array of shape (n_classes,), optional
        Positive prior probabilities, which are scaled to sum to 1. The default is equal ones.

    Returns
    -------
    Network
        A network whose outputs are the posterior probabilities of the classes.
    """
    means = as_numbers("means", means, FLOAT64)
    covariances = as_numbers("covariances", covariances, FLOAT64)
    if means.ndim != 2 or covariances.shape != (*means.shape, means.shape[-1]) or not means.size:
        raise ValueError(
            "means must have shape (n_classes, n) and covariances (n_classes, n, n). "
            f"Got {means.shape} and {covariances.shape} instead."
        )
    C = len(means)
    priors = np.full(C, 1 / C) if priors is None else as_numbers("priors", priors, FLOAT64)
    if priors.shape != (C,) or not (priors > 0).all():
        raise ValueError(f"priors must be {C} positive numbers. Got {priors} instead.")
    factors = np.array([cholesky(f"covariances[{k}]", S) for k, S in enumerate(covariances)])
    inverses = np.linalg.inv(factors)
    precisions = inverses.transpose(0, 2, 1) @ inverses
    log_determinants = 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return _network(means, precisions, log_determinants, priors / priors.sum())


def _network(means: Array, precisions: Array, log_determinants: Array, priors: Array) -> Network:
    """z_k = log prior_k - (log det + (x - mean)' precision (x - mean)) / 2."""
    Pm = np.einsum("kij,kj->ki", precisions, means)
    b = np.log(priors) - (log_determinants + (Pm * means).sum(axis=1)) / 2
    return Network([Quadratic(Pm, b, -precisions / 2)], ["softmax"])


def from_ellipsoids(ellipsoids: Sequence[Quadric], sharpness: float = 1.0) -> Network:
    """Convert ellipsoids to a network with one logistic neuron for each.

    The output of a neuron is above 1/2 exactly inside its ellipsoid. Its pre-activation is
    ``z = sharpness (1 - r^2)``, where r is 0 at the centre and 1 on the surface.

    Parameters
    ----------
    ellipsoids : sequence of Quadric
        Ellipsoids of the same dimension.
    sharpness : float
        Value of z at the centre, which defines how steeply a neuron falls towards the surface.

    Returns
    -------
    Network
        A network of one quadratic layer.
    """
    sharpness = checks.check_number("sharpness", sharpness, above=0)
    ellipsoids = list(ellipsoids)
    if not ellipsoids:
        raise ValueError("ellipsoids must hold at least one. Got none.")
    factors = []
    for k, quadric in enumerate(ellipsoids):
        if not isinstance(quadric, Quadric) or not quadric.is_ellipsoid:
            kind = quadric.kind if isinstance(quadric, Quadric) else type(quadric).__name__
            raise ValueError(f"ellipsoids[{k}] must be an ellipsoid. Got {kind} instead.")
        center = quadric.center
        assert center is not None
        factor = sharpness / quadric.value(center)
        rounded = center @ quadric.Q @ center + quadric.w @ center + quadric.b
        if abs(factor * rounded - sharpness) > 0.01 * sharpness:
            raise ValueError(
                f"ellipsoids[{k}] is so far from the origin, relative to its size, that float64 "
                "cannot represent the coefficients of its neuron. Shift the coordinates first."
            )
        factors.append(factor)
    if len({quadric.n_dims for quadric in ellipsoids}) > 1:
        raise ValueError("ellipsoids must all have the same dimension.")
    layer = Quadratic(
        np.array([factor * q.w for factor, q in zip(factors, ellipsoids, strict=True)]),
        np.array([factor * q.b for factor, q in zip(factors, ellipsoids, strict=True)]),
        np.array([factor * q.Q for factor, q in zip(factors, ellipsoids, strict=True)]),
    )
    return Network([layer], ["logistic"])
