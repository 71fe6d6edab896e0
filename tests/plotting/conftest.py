"""Axes to draw on."""

import pytest


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure().subplots()
