"""Data sets: points in the plane, and labeled images.

The package imports only `utils` and `errors`. Start with `_points_and_images.py`, which
reads MNIST from a directory or downloads it. `_sources.py` lists, finds, verifies and downloads the
files.
"""

from quadric.datasets._points_and_images import (
    ImageData,
    check_files,
    clusters,
    digits,
    download,
    fashion_mnist,
    mnist,
    xor,
)
from quadric.errors import DatasetError

__all__ = [
    "DatasetError",
    "ImageData",
    "check_files",
    "clusters",
    "digits",
    "download",
    "fashion_mnist",
    "mnist",
    "xor",
]
