"""What all tests share."""

import pytest
from hypothesis import settings

# the same examples in every run: a failure in the checks can be repeated by anyone
settings.register_profile("checks", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("checks")


@pytest.fixture
def small_files(monkeypatch, tmp_path):
    """Tables of small files in place of MNIST's; no source is asked, the user's cache not seen."""
    from tests.support.small_files import put_in_place

    put_in_place(monkeypatch, tmp_path)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker("slow")
