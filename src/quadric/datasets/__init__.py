"""Data sets: points in the plane, and labeled images.

The package imports only `utils` and `errors`. Start with `_images.py`, which reads MNIST from a
directory or downloads it. `_sources.py` lists, finds, verifies and downloads the files.
"""

from quadric.datasets._images import (
    ImageData,
    check_files,
    digits,
    download,
    fashion_mnist,
    mnist,
)
from quadric.datasets._points import clusters, xor
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
