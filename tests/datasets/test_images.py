"""The data sets: their values, the directories searched, and bad files."""

import gzip
import hashlib

import numpy as np
import pytest
from sklearn.datasets import load_digits

from quadric import datasets
from quadric.datasets import DatasetError, ImageData
from tests.support.small_files import CONTENTS, LABELS, PARTS, REAL, SPELLINGS, assert_is, fill

pytestmark = pytest.mark.usefixtures("small_files")

# ---- data sets without files ------------------------------------------------------------


def test_clusters_have_the_papers_means_and_covariances():
    X, y = datasets.clusters(5000, rng=1)
    means = [(-16, 0), (-8, 0), (0, 0), (0, 10), (-8, 10), (-16, 10)]
    for label, (mean, tilt) in enumerate(zip(means, [-0.3, 0, 0.3] * 2, strict=True)):
        mine = X[y == label]
        assert mine.shape == (5000, 2)
        np.testing.assert_allclose(mine.mean(axis=0), mean, atol=0.06)
        np.testing.assert_allclose(np.cov(mine.T), [[1, tilt], [tilt, 1]], atol=0.08)


def test_clusters_draw_from_the_generator_in_order():
    rng = np.random.default_rng(7)
    first, second = datasets.clusters(3, rng)[0], datasets.clusters(3, rng)[0]
    assert np.array_equal(first, datasets.clusters(3, 7)[0])
    assert not np.array_equal(first, second)
    same = np.random.default_rng(7)
    expected = [same.multivariate_normal((-16, 0), [[1, -0.3], [-0.3, 1]], 3)]
    expected.append(same.multivariate_normal((-8, 0), np.eye(2), 3))
    assert np.array_equal(first[:6], np.concatenate(expected))


def test_clusters_refuse_bad_arguments():
    with pytest.raises(ValueError, match="per_class must be a whole number of at least 1"):
        datasets.clusters(0)
    with pytest.raises(ValueError, match="rng must be"):
        datasets.clusters(2, rng="seed")


def test_digits_are_scikit_learns_with_a_fixed_split():
    data = datasets.digits()
    X, y = load_digits(return_X_y=True)
    assert np.array_equal(np.vstack([data.X_train, data.X_test]), X)
    assert np.array_equal(np.concatenate([data.y_train, data.y_test]), y)
    assert (len(data.X_train), len(data.X_test)) == (1297, 500)
    assert data.X_train.dtype == np.uint8
    assert data.y_train.dtype == np.int64
    assert data.largest == data.X_train.max() == 16
    assert data.shape == (8, 8)
    assert data.checksum == "2a989c3cfddb9a584c7a5c6ea26f304f589ded5478a3bbfbd3ed3e557794e18e"


def test_checksum_is_over_the_bytes_of_the_four_arrays():
    X, y = np.arange(12, dtype=np.uint8).reshape(4, 3), np.array([0, 1, 1, 0])
    data = ImageData("small", X[:2], y[:2], X[2:], y[2:], 255, (1, 3), "here")
    labels = y.astype("<i8")
    parts = (X[:2], labels[:2], X[2:], labels[2:])
    expected = hashlib.sha256(b"".join(part.tobytes() for part in parts))
    assert data.checksum == expected.hexdigest()
    changed = ImageData("small", X[:2], 1 - y[:2], X[2:], y[2:], 255, (1, 3), "here")
    assert changed.checksum != data.checksum
    big_endian = y[:2].astype(">i8")
    swapped = ImageData("small", X[:2], big_endian, X[2:], y[2:], 255, (1, 3), "here")
    assert swapped.checksum == data.checksum
    assert repr(data) == "ImageData(name='small', largest=255, shape=(1, 3), source='here')"


# ---- directories ----------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_named_directory_is_read_under_any_file_name(tmp_path, spelling):
    place = fill(tmp_path / "own", spelling=SPELLINGS[spelling])
    data = datasets.mnist(place)
    assert_is(data, "mnist")
    assert str(place) in data.source
    assert not (tmp_path / "cache").exists()


def test_quadric_data_may_hold_both_data_sets(tmp_path, monkeypatch):
    fill(tmp_path / "own" / "mnist")
    fill(tmp_path / "own" / "fashion_mnist", "fashion_mnist")
    monkeypatch.setenv("QUADRIC_DATA", str(tmp_path / "own"))
    assert_is(datasets.mnist(), "mnist")
    assert_is(datasets.fashion_mnist(), "fashion_mnist")
    monkeypatch.setenv("QUADRIC_DATA", str(tmp_path / "nothing"))
    assert_is(datasets.mnist(tmp_path / "own"), "mnist")  # the argument comes first
    with pytest.raises(DatasetError, match="no such directory"):
        datasets.mnist()


def test_a_directory_of_the_other_data_set_is_refused(tmp_path):
    place = fill(tmp_path / "own")
    with pytest.raises(DatasetError, match=r"its MD5 is that of train-images-idx3-ubyte of MNIST"):
        datasets.fashion_mnist(place)


def test_the_cache_is_read_before_any_source(tmp_path, monkeypatch):
    fill(tmp_path / "cache" / "mnist")
    data = datasets.mnist()
    assert_is(data, "mnist")
    assert "the cache" in data.source
    monkeypatch.delenv("QUADRIC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "general"))
    fill(tmp_path / "general" / "quadric" / "mnist")
    assert str(tmp_path / "general") in datasets.mnist().source
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    fill(tmp_path / "home" / ".cache" / "quadric" / "mnist")
    assert str(tmp_path / "home") in datasets.mnist().source


def test_data_dir_must_be_a_path():
    with pytest.raises(TypeError, match=r"data_dir must be a path or None. Got 3 instead"):
        datasets.mnist(3)


def test_known_files_have_the_published_names_and_sizes():
    for collection in REAL.values():
        assert [file.name for file in collection.files] == list(PARTS)
        assert sum(file.size for file in collection.files) == 60000 * 785 + 10000 * 785 + 2 * (
            16 + 8
        )


# ---- bad files ------------------------------------------------------------------------------


def replaced(start, new):
    def change(content):
        return content[:start] + new + content[start + len(new) :]

    return change


FAULTS = {
    "flipped byte": (replaced(10, b"\xff"), "its MD5 is [0-9a-f]{32}, not"),
    "cut short": (lambda content: content[:-1], "contains only 13 of 14 bytes"),
    "cut in the header": (lambda content: content[:5], "contains only 5 of 14 bytes"),
    "empty": (lambda content: b"", "contains only 0 of 14 bytes"),
    "too long": (lambda content: content + b"\0", "it contains more than 14 bytes"),
    "magic": (replaced(3, b"\x03"), "its MD5 is [0-9a-f]{32}, not"),
    "dimensions": (replaced(4, b"\xff\xff\xff\xff"), "its MD5 is [0-9a-f]{32}, not"),
    "swapped": (
        lambda content: CONTENTS["mnist"][PARTS[3]],
        "its MD5 is that of t10k-labels-idx1-ubyte of MN",
    ),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_bad_files_are_refused(tmp_path, fault, packed):
    change, message = FAULTS[fault]
    spelling = SPELLINGS["gz" if packed else "raw"]
    bad = change(CONTENTS["mnist"][LABELS])
    for place in (tmp_path / "own", tmp_path / "cache" / "mnist"):
        fill(place, spelling=spelling)
        (place / spelling(LABELS)).write_bytes(gzip.compress(bad) if packed else bad)
    with pytest.raises(DatasetError, match=message) as named:
        datasets.mnist(tmp_path / "own")
    assert str(tmp_path / "own" / spelling(LABELS)) in str(named.value)
    assert "data_dir or QUADRIC_DATA" in str(named.value)
    with pytest.raises(DatasetError, match=message) as cached:
        datasets.mnist()
    assert "`quadric.datasets.download('mnist', force=True)`" in str(cached.value)


GZ_FAULTS = {
    "cut short": (lambda packed: packed[:-9], "ends too early"),
    "not gz": (lambda packed: b"hello" + packed, r"not a valid \.gz file"),
    "flipped byte": (replaced(12, b"\xff\xff\xff"), r"not a valid \.gz file"),
    "wrong sum": (lambda packed: packed[:-8] + b"0000" + packed[-4:], r"not a valid \.gz file"),
    "bomb": (lambda packed: gzip.compress(bytes(10_000_000)), "it contains more than 14 bytes"),
}


@pytest.mark.parametrize("fault", GZ_FAULTS)
def test_bad_gz_files_are_refused(tmp_path, fault):
    change, message = GZ_FAULTS[fault]
    place = fill(tmp_path / "own", spelling=SPELLINGS["gz"])
    path = place / f"{LABELS}.gz"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DatasetError, match=message):
        datasets.mnist(place)


def test_a_missing_file_in_a_named_directory_is_an_error(tmp_path):
    place = fill(tmp_path / "own")
    (place / LABELS).unlink()
    with pytest.raises(DatasetError, match=r"is missing. Expected MNIST's train-labels-idx1"):
        datasets.mnist(place)
