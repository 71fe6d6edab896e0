"""Conics by name: every case by a constructed example, and as moved and rotated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadric.geometry import conic_equation, conic_kind

EXAMPLES = {
    "circle": ([[1, 0], [0, 1]], [0, 0], -1),
    "ellipse": ([[1, 0], [0, 3]], [0, 0], -1),
    "hyperbola": ([[1, 0], [0, -2]], [0, 0], -1),
    "parabola": ([[1, 0], [0, 0]], [0, 1], 0),
    "crossing lines": ([[1, 0], [0, -2]], [0, 0], 0),
    "parallel lines": ([[1, 0], [0, 0]], [0, 0], -1),
    "coincident lines": ([[1, 0], [0, 0]], [0, 0], 0),
    "line": ([[0, 0], [0, 0]], [1, 0], 1),
    "point": ([[1, 0], [0, 3]], [0, 0], 0),
    "empty": ([[1, 0], [0, 3]], [0, 0], 1),
    "everything": ([[0, 0], [0, 0]], [0, 0], 0),
}


@pytest.mark.parametrize("kind", EXAMPLES)
@given(
    angle=st.integers(0, 3600).map(lambda tenth: np.deg2rad(tenth / 10)),
    shift=st.tuples(st.integers(-640, 640), st.integers(-640, 640)).map(lambda s: np.array(s) / 64),
    factor=st.sampled_from([1.0, -1.0, 1e3, -1e-3]),
)
def test_kind_does_not_change_when_moved(kind, angle, shift, factor):
    Q, w, b = (np.array(part, dtype=float) for part in EXAMPLES[kind])
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    Q, w = R @ Q @ R.T, R @ w
    b, w = b + shift @ Q @ shift - w @ shift, w - 2 * Q @ shift  # x -> x - shift
    assert conic_kind(factor * Q, factor * w, factor * b) == kind


def test_other_empty_sets():
    assert conic_kind([[1, 0], [0, 0]], [0, 0], 1) == "empty"
    assert conic_kind([[0, 0], [0, 0]], [0, 0], 1) == "empty"


def test_equation():
    assert conic_equation([[0.5, -1], [-1, 0]], [0, -3.14159], 2) == (
        "0.50 x² - 2.00 xy - 3.14 y + 2.00 = 0"
    )
    assert conic_equation([[0, 0], [0, 0]], [0, 0], 0) == "0 = 0"
    assert conic_equation([[-1, 0], [0, 1]], [0, 0], 0, precision=1) == "-1.0 x² + 1.0 y² = 0"


def test_bad_input():
    with pytest.raises(ValueError, match=r"Q of shape \(2, 2\)"):
        conic_kind(np.eye(3), np.zeros(3), 0)
    with pytest.raises(ValueError, match="finite"):
        conic_kind([[np.nan, 0], [0, 1]], [0, 0], 0)
