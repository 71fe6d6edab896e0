"""Compile the loops that most tests use, before any test."""

import warnings

import numpy as np

DTYPES = ("float64", "float32")


def compile_loops(dtype):
    from quadric import QuadraticClassifier

    X = np.random.default_rng(0).normal(size=(40, 2)).astype(dtype)
    y = np.arange(40) % 2
    per_sample = {"solver": "sgd", "batch_size": 1, "momentum": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few iterations
        for options in ({"solver": "adam"}, per_sample):
            QuadraticClassifier((3,), max_iter=2, **options).fit(X, y).predict(X)
