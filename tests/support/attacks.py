"""Attacks on certified radii: search for inputs of another class within the radius."""

import numpy as np


def attack(predict, X, found, *, count=40, share=0.999, seed=0):
    """Return the number of points at `share` of the radius that have another label.

    The steps go towards the nearest change of class, along single inputs and in random directions.
    A point that is rounded to the dtype of X and thereby leaves the ball is not counted.
    """
    rng = np.random.default_rng(seed)
    limits = np.minimum(found.radius, 1e6)
    X64 = np.asarray(X, dtype=float)
    flips = int((predict(X) != found.predicted).sum())
    for k in range(count):
        step = rng.normal(size=X64.shape)
        if k % 4 == 0:
            step = found.nearest - X64 + 1e-3 * (k > 0) * limits[:, None] * step
        elif k % 4 == 1:
            step = np.sign(step) * np.eye(X64.shape[1])[rng.integers(X64.shape[1], size=len(X64))]
        length = np.linalg.norm(step, axis=1)
        usable = np.isfinite(length) & (length > 0)
        step = np.where(usable[:, None], step, 0.0)
        step *= (share * limits / np.where(usable, length, 1.0))[:, None]
        points = (X64 + step).astype(np.asarray(X).dtype)
        inside = np.linalg.norm(points.astype(float) - X64, axis=1) < found.radius
        flips += int((predict(points)[inside] != found.predicted[inside]).sum())
    return flips


def near_ties(X, found, shares=(1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 0.0)):
    """Points close to the change of class, on both sides of it."""
    there = np.isfinite(found.distance)
    X, nearest = np.asarray(X, dtype=float)[there], found.nearest[there]
    return np.vstack([nearest + sign * s * (X - nearest) for s in shares for sign in (1, -1)])
