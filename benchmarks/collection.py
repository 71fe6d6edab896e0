"""Data sets that are not downloaded: those bundled with scikit-learn, and generated ones.

Every second data set in alphabetical order is used to choose the defaults ("choose"). Results are
reported on the others ("report").
"""

from __future__ import annotations

import numpy as np
from sklearn import datasets as sk


def _rng(seed):
    return np.random.default_rng(seed)


def _xor(d):
    """The sign of the product of the first two of d features, with 5 % of the labels flipped."""
    rng = _rng(d)
    X = rng.normal(size=(600, d))
    y = (X[:, 0] * X[:, 1] > 0) ^ (rng.random(600) < 0.05)
    return X, y.astype(int)


def _clusters():
    rng = _rng(1)
    means = [(-16, 0), (-8, 0), (0, 0), (0, 10), (-8, 10), (-16, 10)]
    X = np.concatenate([rng.normal(mean, 2.5, (100, 2)) for mean in means])
    return X, np.repeat(np.arange(6), 100)


def _gaussians():
    """Three Gaussians with different covariances, as QDA assumes."""
    rng = _rng(2)
    parts = []
    for _ in range(3):
        A = rng.normal(size=(6, 6)) / 2
        parts.append(rng.normal(size=(200, 6)) @ A + 0.4 * rng.normal(size=6))
    return np.concatenate(parts), np.repeat(np.arange(3), 200)


def _ringnorm():
    rng = _rng(3)
    X = np.concatenate([2 * rng.normal(size=(400, 20)), rng.normal(size=(400, 20)) + 2 / 20**0.5])
    return X, np.repeat([0, 1], 400)


def _twonorm():
    rng = _rng(4)
    shift = 2 / 20**0.5
    X = np.concatenate([rng.normal(size=(300, 20)) + shift, rng.normal(size=(300, 20)) - shift])
    return X, np.repeat([0, 1], 300)


def _spirals():
    rng = _rng(5)
    t = np.sqrt(rng.random((2, 300))) * 3 * np.pi
    X = np.concatenate(
        [
            np.stack([s * a * np.cos(a), s * a * np.sin(a)], 1)
            for s, a in zip((1, -1), t, strict=True)
        ]
    )
    return X + 0.4 * rng.normal(size=X.shape), np.repeat([0, 1], 300)


def _checkerboard():
    rng = _rng(6)
    X = rng.uniform(0, 3, (700, 2))
    y = X.astype(int).sum(axis=1) % 2 ^ (rng.random(700) < 0.05)
    return X, y


def _ellipsoid():
    """Inside or outside a tilted ellipsoid in four dimensions."""
    rng = _rng(7)
    X = rng.normal(size=(600, 4))
    A = rng.normal(size=(4, 4))
    d = ((X - 0.3) @ A @ A.T * (X - 0.3)).sum(axis=1)
    return X, (d < np.median(d)).astype(int) ^ (rng.random(600) < 0.03)


def _waveform():
    """Breiman's three waves, 21 features."""
    rng = _rng(8)
    t = np.arange(1, 22)
    h = np.maximum(6 - np.abs(t[None] - np.array([[7], [15], [11]])), 0)
    pairs = [(0, 1), (0, 2), (1, 2)]
    y = rng.integers(0, 3, 600)
    u = rng.random((600, 1))
    first, second = (h[[pairs[k][i] for k in y]] for i in (0, 1))
    return u * first + (1 - u) * second + rng.normal(size=(600, 21)), y


def _products():
    rng = _rng(9)
    X = rng.normal(size=(500, 6))
    y = X[:, 0] * X[:, 1] + X[:, 2] ** 2 - X[:, 3] + 0.5 * rng.normal(size=500)
    return X, y


def _waves():
    rng = _rng(10)
    X = rng.uniform(-2, 2, (500, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * np.cos(X[:, 2]) + 0.2 * rng.normal(size=500)


def _of(seed, d, function, noise):
    """500 samples of a function of d standard normal features."""

    def make():
        rng = _rng(seed)
        X = rng.normal(size=(500, d))
        y = function(X)
        return X, y + noise * y.std() * rng.normal(size=500)

    return make


def _linear():
    X, y = sk.make_regression(400, 15, n_informative=8, noise=20.0, random_state=0)
    return X, y / y.std()


def _make_classification():
    return sk.make_classification(
        800, 20, n_informative=8, n_redundant=4, n_classes=3, flip_y=0.03, random_state=0
    )


CLASSIFICATION = {
    "breast cancer": lambda: sk.load_breast_cancer(return_X_y=True),
    "checkerboard": _checkerboard,
    "circles": lambda: sk.make_circles(500, noise=0.15, factor=0.6, random_state=0),
    "clusters": _clusters,
    "digits": lambda: sk.load_digits(return_X_y=True),
    "ellipsoid": _ellipsoid,
    "gaussian quantiles 10": lambda: sk.make_gaussian_quantiles(
        n_samples=600, n_features=10, n_classes=3, random_state=0
    ),
    "gaussian quantiles 3": lambda: sk.make_gaussian_quantiles(
        n_samples=600, n_features=3, n_classes=4, random_state=1
    ),
    "gaussians": _gaussians,
    "hastie": lambda: sk.make_hastie_10_2(800, random_state=0),
    "iris": lambda: sk.load_iris(return_X_y=True),
    "make_classification": _make_classification,
    "moons": lambda: sk.make_moons(500, noise=0.25, random_state=0),
    "ringnorm": _ringnorm,
    "spirals": _spirals,
    "twonorm": _twonorm,
    "waveform": _waveform,
    "wine": lambda: sk.load_wine(return_X_y=True),
    "xor 10": lambda: _xor(10),
    "xor 2": lambda: _xor(2),
    "xor 5": lambda: _xor(5),
    "xor 7": lambda: _xor(7),
}
REGRESSION = {
    "diabetes": lambda: sk.load_diabetes(return_X_y=True),
    "exponential": _of(11, 5, lambda X: np.exp(X[:, 0] + 0.5 * X[:, 1]) + X[:, 2], 0.2),
    "friedman 1": lambda: sk.make_friedman1(500, noise=1.0, random_state=0),
    "friedman 2": lambda: sk.make_friedman2(500, noise=50.0, random_state=0),
    "friedman 3": lambda: sk.make_friedman3(500, noise=0.1, random_state=0),
    "interactions": _of(12, 10, lambda X: X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3], 0.3),
    "linear": _linear,
    "products": _products,
    "ripples": _of(13, 2, lambda X: np.sin(2 * np.hypot(X[:, 0], X[:, 1])), 0.2),
    "sparse uncorrelated": lambda: sk.make_sparse_uncorrelated(400, 10, random_state=0),
    "sphere": _of(14, 6, lambda X: (X**2).sum(axis=1) + X[:, 0], 0.2),
    "steps": _of(15, 4, lambda X: np.sign(X[:, 0]) + 2 * (X[:, 1] > 0.5) * X[:, 2], 0.2),
    "waves": _waves,
}


def half(names, which):
    """Return every second name in alphabetical order, from the first if `which` is 'choose'."""
    return sorted(names)[0 if which == "choose" else 1 :: 2]


__all__ = ["CLASSIFICATION", "REGRESSION", "half"]
