"""The random state of torch."""

import pytest


@pytest.fixture
def seeded():
    """Seed torch's own generator, which its modules use."""
    pytest.importorskip("torch").manual_seed(0)
