"""Data sets: points of the plane, and images with their labels."""

from quadric.datasets._bundled import digits
from quadric.datasets._image_data import ImageData
from quadric.datasets._images import fashion_mnist, mnist
from quadric.datasets._points import clusters, xor
from quadric.errors import DatasetError

__all__ = [
    "DatasetError",
    "ImageData",
    "clusters",
    "digits",
    "fashion_mnist",
    "mnist",
    "xor",
]
