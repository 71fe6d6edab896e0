"""The random state of torch, and tests that need two processes."""

import os

import pytest

# torchrun sets this variable in the processes that it starts: see test_distributed.py
collect_ignore = [] if "RANK" in os.environ else ["two_processes"]


@pytest.fixture
def seeded():
    """Seed torch's own generator, which its modules use."""
    pytest.importorskip("torch").manual_seed(0)
