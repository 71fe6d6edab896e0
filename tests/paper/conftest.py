"""A store for the tests of runs."""

import pytest

from quadric.apps.paper.sweep import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite") as opened:
        yield opened
