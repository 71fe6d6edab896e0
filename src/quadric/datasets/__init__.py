"""Data sets: points of the plane, and images with their labels."""

from __future__ import annotations

from quadric.datasets.bundled import digits
from quadric.datasets.image_data import ImageData
from quadric.datasets.points import clusters, xor

__all__ = [
    "ImageData",
    "clusters",
    "digits",
    "xor",
]
