"""Fixtures and marks that scikit-learn's tests need, and the marks of the expected differences."""

from fnmatch import fnmatchcase

import numpy as np
import pytest

from tests.peers.substitution import uses


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: used by scikit-learn's tests")


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(autouse=True)
def same_random_numbers():
    """Some of the tests set no seed."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    yield
    np.random.set_state(state)  # noqa: NPY002


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the expected differences, and leave out tests that do not use our classes."""
    left_out = []
    for item in items:
        expected = getattr(item.module, "EXPECTED", None) if hasattr(item, "module") else None
        if expected is None:
            continue
        if not uses(item, item.module.CLASSES):
            left_out.append(item)
        reasons = (reason for name, reason in expected.items() if fnmatchcase(item.name, name))
        reason = next(reasons, None)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
