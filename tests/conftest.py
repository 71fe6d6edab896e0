"""Fixtures and settings for all tests."""

import gc
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:  # the workers share the cores
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

# the same examples in every run, so that failures are reproducible
settings.register_profile(
    "checks", max_examples=25, derandomize=True, deadline=None, print_blob=True
)
settings.register_profile("thorough", settings.get_profile("checks"), max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "checks"))


def pytest_sessionstart(session):
    """With several workers, compile for one dtype in each, instead of everything in all."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or worker["workercount"] < 2 or session.config.option.collectonly:
        return
    from tests.support.networks import DTYPES, compile_loops

    number = int(worker["workerid"].removeprefix("gw"))
    done = [
        Path(tempfile.gettempdir()) / f"quadric-{worker['testrunuid']}-{dtype}" for dtype in DTYPES
    ]
    if number < len(DTYPES):
        try:
            compile_loops(DTYPES[number])
        finally:
            done[number].touch()
    deadline = time.monotonic() + 120
    while not all(path.exists() for path in done) and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Let each test, run alone or with others, draw the same random numbers."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - scikit-learn's random_state=None uses it
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture
def small_files(monkeypatch, tmp_path):
    """Replace MNIST's files with small ones; use neither a source nor the user's cache."""
    from tests.support.small_files import put_in_place

    put_in_place(monkeypatch, tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect the tests without garbage collection, which would take longer and free nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for doctests in the library only: to find none, all helpers would be imported."""
    collectors = yield
    return [each for each in collectors if not isinstance(each, DoctestModule)]


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items):
    """Keep some cases of a test marked `sample`, always the same; the others are `full`."""
    sampled = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("sample"):
            sampled[item.parent, item.originalname, *mark.args].append(item)
    for (_, name, count), cases in sampled.items():
        kept = random.Random(name).sample(range(len(cases)), count)
        for k in set(range(len(cases))).difference(kept):
            cases[k].add_marker("full")
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker("slow")
        if sys.platform == "win32" and item.get_closest_marker("unix"):
            item.add_marker(pytest.mark.skip(reason="needs Unix"))
