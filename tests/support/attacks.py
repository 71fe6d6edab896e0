"""Attacks on certified radii: search for inputs of another class within the radius."""

import numpy as np

SHARES = (0.999999, 0.99, 0.5, 0.1, 0.01)  # of the radius, towards the nearest change of class


def attack(predict, X, found, *, count=40, share=0.999, seed=0):
    """Return the number of rows and of about `count` points for each row with another label."""
    rng = np.random.default_rng(seed)
    points, rows = attacked(np.asarray(X), found, rng, count=count // 4, share=share)
    flips = int((predict(X) != found.predicted).sum())
    return flips + int((predict(points) != found.predicted[rows]).sum()) if len(points) else flips


def attacked(X, found, rng, *, count=2, share=0.999, moving=None, scale=1.0):
    """Points within the radius of each row, and the numbers of their rows.

    They lie towards the nearest change of class, along single columns and in random directions,
    most of them at `share` of the radius, and a few units in the last place from the row. The first
    `moving` columns may change. A point that the dtype of X rounds to outside the ball is left out.
    """
    k, start = moving or X.shape[1], X.astype(float)
    limit, shape = np.minimum(found.radius, 1e6 * scale)[:, None], (len(X), k)
    toward = unit(found.nearest[:, :k] - start[:, :k])
    steps = [toward * limit * part for part in SHARES]
    directions = [unit(toward + 1e-3 * rng.normal(size=shape)) for _ in range(count)]
    directions += [unit(rng.normal(size=shape)) for _ in range(2 * count)]
    axes = [np.eye(k)[rng.integers(k, size=len(X))] for _ in range(count // 2)]
    directions += [sign * axis for axis in axes for sign in (1, -1)]
    steps += [direction * limit * share for direction in directions]
    with np.errstate(all="ignore"):
        ulp = np.spacing(np.abs(X[:, :k])).astype(float)
    steps += [number * axes[0] * ulp for number in (-2, -1, 1, 2)]
    points, rows = [], []
    for step in steps:
        moved = start.copy()
        moved[:, :k] += np.where(np.isfinite(step), step, 0.0)
        with np.errstate(over="ignore"):  # an infinite point is outside
            moved = moved.astype(X.dtype)
        gap = (moved[:, :k].astype(float) - start[:, :k]).astype(np.longdouble)
        largest = np.abs(gap).max(axis=1, initial=0.0) + np.finfo(float).tiny
        length = largest * np.sqrt(((gap / largest[:, None]) ** 2).sum(axis=1))
        inside = np.flatnonzero(length < found.radius)
        points.append(moved[inside])
        rows.append(inside)
    return np.vstack(points), np.concatenate(rows)


def unit(steps):
    """The steps with length 1; zero if the length is not finite or zero."""
    with np.errstate(all="ignore"):
        scaled = steps / np.abs(steps).max(axis=1, keepdims=True, initial=0.0)
        scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.where(np.isfinite(scaled), scaled, 0.0)


def near_ties(X, found, shares=(1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 0.0)):
    """Points close to the change of class, on both sides of it."""
    there = np.isfinite(found.distance)
    X, nearest = np.asarray(X, dtype=float)[there], found.nearest[there]
    return np.vstack([nearest + sign * s * (X - nearest) for s in shares for sign in (1, -1)])
