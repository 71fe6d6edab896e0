"""Fixtures and settings for all tests."""

import os
import random
from collections import defaultdict

import pytest
from hypothesis import settings

# the same examples in every run, so that failures are reproducible
settings.register_profile(
    "checks", max_examples=25, derandomize=True, deadline=None, print_blob=True
)
settings.register_profile("thorough", settings.get_profile("checks"), max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "checks"))


@pytest.fixture
def small_files(monkeypatch, tmp_path):
    """Replace MNIST's files with small ones; use neither a source nor the user's cache."""
    from tests.support.small_files import put_in_place

    put_in_place(monkeypatch, tmp_path)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items):
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
