"""Outlines of surfaces, compared with outlines that are computed with rational numbers."""

from math import lcm

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from quadric.geometry import Quadric
from tests.support.exact import inverse, rationals, signature


def exact_outline(Q, w, b, kept):
    """The matrix [[Q, w/2], [w'/2, b]] of the outline, or None if the surface has none.

    F is stationary along the hidden coordinates where their part of the gradient is zero. For one
    hidden coordinate, this is the discriminant of F, divided by -4 times the coefficient of its
    square.
    """
    H = rationals(np.block([[Q, w[:, None] / 2], [w[None] / 2, np.array([[b]])]]))
    n = len(w)
    rest = [i for i in range(n) if i not in kept]
    seen = [*kept, n]
    hidden = inverse(H[np.ix_(rest, rest)])
    if hidden is None:
        return None
    shadow = H[np.ix_(seen, rest)] @ hidden @ H[np.ix_(rest, seen)]
    return H[np.ix_(seen, seen)] - shadow


def quadric_of(H):
    """The surface with these rational coefficients, multiplied by their common denominator."""
    H = (lcm(*(x.denominator for x in H.flat)) * H).astype(float)
    return Quadric(H[:-1, :-1], 2 * H[:-1, -1], H[-1, -1])


def integer_quadric(seed):
    """Small integer coefficients; Q has any rank, and w may be in its range or not."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    B = rng.integers(-3, 4, size=(rng.integers(0, n + 1), n))
    Q = B.T @ np.diag(rng.choice([-1, 1, 2], size=len(B))) @ B if len(B) else np.zeros((n, n))
    c = rng.integers(-3, 4, size=n)
    w = -2 * Q @ c
    b = c @ Q @ c + rng.integers(-1, 2)
    if rng.random() < 0.5:
        w = w + rng.integers(-2, 3, size=n)
    kept = rng.permutation(n)[: rng.integers(1, n)].tolist()
    return Q.astype(float), w.astype(float), float(b), kept


def test_certify_C12_the_outline_of_a_parabolic_cylinder_is_a_line():
    q = Quadric(np.outer([1, 2, 3], [1, 2, 3]), [1, 0, 0], -1)  # (x + 2y + 3z)² + x = 1
    assert q.kind == "parabolic cylinder"
    outline = q.project([0, 1])
    assert (outline.kind, outline.equation()) == ("line", "x - 1 = 0")
    assert outline.distance([3, 7]) == pytest.approx(2)
    # two parallel planes: every line of sight meets both of them, and touches none
    assert Quadric(np.outer([1, 2, 3], [1, 2, 3]), [0, 0, 0], -1).project([0, 1]).kind == "empty"
    double = Quadric(np.outer([1, 2, 3], [1, 2, 3]), [0, 0, 0], 0)
    assert double.project([0, 1]).kind == "everything"


@pytest.mark.parametrize("seed", range(100))
def test_certify_C12_outlines_have_the_kind_of_the_rational_ones(seed):
    check_outline(*integer_quadric(seed))


@pytest.mark.slow
@given(st.integers(100, 2**32 - 1))
def test_certify_C12_outlines_of_integer_quadrics(seed):
    check_outline(*integer_quadric(seed))


def check_outline(Q, w, b, kept):
    H, q = exact_outline(Q, w, b, kept), Quadric(Q, w, b)
    if H is None:
        with pytest.raises(ValueError, match="has no outline"):
            q.project(kept)
        return
    outline, wanted = q.project(kept), quadric_of(H)
    assert outline.signature == signature(H[:-1, :-1])
    assert outline.kind == wanted.kind
    points = np.random.default_rng(0).normal(size=(5, len(kept)))
    X = rationals(np.column_stack([points, np.ones(5)]))
    exact = ((X @ H) * X).sum(axis=1).astype(float)
    np.testing.assert_allclose(outline.value(points), exact, atol=1e-10)


@given(st.integers(0, 2**32 - 1), st.floats(-6, 6), st.floats(-3, 3))
def test_units_and_shifts_do_not_change_the_kind_of_an_outline(seed, exponent, shift):
    Q, w, b, kept = integer_quadric(seed)
    H = exact_outline(Q, w, b, kept)
    assume(H is not None)
    n = len(w)
    scale = 10.0 ** (exponent * np.linspace(-1, 1, n))
    moved = Quadric(Q, w, b).transform(scale, shift * scale)
    found, wanted = moved.project(kept).kind, quadric_of(H).kind
    assert found.replace("circle", "ellipse") == wanted.replace("circle", "ellipse")
