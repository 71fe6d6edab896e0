"""Cosine similarity of interaction matrices."""

from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.explain._interactions import interactions


def similarity(
    a: Any, b: Any = None, *, centered: bool | None = None, units: str = "inputs"
) -> Array:
    """Compute the cosine similarity of the interaction matrices Q of classes.

    The similarity of two matrices is the sum of the products of their entries, divided by the
    product of their Frobenius norms. It is 1 if they are equal up to a positive factor, -1 up to a
    negative factor, and 0 for a matrix of zeros.

    Parameters
    ----------
    a : Network, layer, fitted estimator, Pipeline or torch.nn.Module
        A model that folds to one quadratic layer; see `quadric.convert.fold`.
    b : like a, optional
        Another model with the same inputs. By default, the classes of `a` are compared with each
        other.
    centered, units : bool and str, optional
        As in `spectrum`.

    Returns
    -------
    array of shape (m_a, m_b)
        The similarity of each class of `a` with each class of `b`.
    """
    first = interactions(a, centered=centered, units=units)
    second = first if b is None else interactions(b, centered=centered, units=units)
    n = len(first.names), len(second.names)
    if n[0] != n[1]:
        raise ValueError(f"a and b must have the same inputs. Got {n[0]} and {n[1]} inputs.")
    left, right = _normalized(first.Q), _normalized(second.Q)
    return np.clip(left @ right.T, -1.0, 1.0)


def _normalized(Q: Array) -> Array:
    """The matrices as rows of length 1, or 0 for a matrix of zeros."""
    size = np.abs(Q).max(axis=(1, 2), keepdims=True)  # avoids overflow of the squares
    rows = (Q / np.where(size > 0, size, 1.0)).reshape(len(Q), -1)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
