"""Denormal numbers: making and finding them, and setting whether a thread flushes them to zero."""

from contextlib import contextmanager

import numpy as np
import torch


def some_denormal(array, rng, share=0.3):
    """Return a copy in which a share of the entries is denormal, of random sign."""
    tiny = np.finfo(array.dtype).tiny
    few = (rng.uniform(-1, 1, array.shape) * tiny).astype(array.dtype)
    return np.where(rng.random(array.shape) < share, few, array)


def is_denormal(array):
    """Return which entries are denormal; computed from the bits, whatever the mode."""
    whole, mantissa = (np.uint32, 23) if array.dtype == np.float32 else (np.uint64, 52)
    bits = np.ascontiguousarray(array).view(whole) << whole(1)  # without the sign
    return (bits != 0) & (bits >> whole(mantissa + 1) == 0)


def without_denormals(array):
    """Return a copy in which denormal entries are zeros of the same sign."""
    return np.where(is_denormal(array), np.copysign(np.zeros((), array.dtype), array), array)


def flushes():
    """Whether this thread flushes denormal numbers."""
    product = np.full(1, 1e-40, np.float32) * np.ones(1, np.float32)
    return bool(product.view(np.uint32)[0] == 0)


@contextmanager
def flushing(on):
    """Set whether this thread flushes denormal numbers."""
    before = flushes()
    torch.set_flush_denormal(on)
    assert flushes() == on
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
