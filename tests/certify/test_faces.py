"""The local minima of the distance to a quadric, on which the search within bounds relies."""

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.linalg import null_space

from quadric.certify._box_faces import Tie, Walk, local_minima, visit


def stationary_minima(F, g, A):
    """All strict local minima of |d| with F(d) = 0 and a multiplier > 0, from a polynomial.

    With d = -(A + mu I)^-1 g / 2, F(d) is a rational function of mu.
    """
    lam, V = np.linalg.eigh(A)
    G, mu = V.T @ g, Polynomial([0.0, 1.0])
    factors = [(mu + one) ** 2 for one in lam]
    whole = F * np.prod(factors)
    for i, one in enumerate(lam):
        rest = np.prod([*factors[:i], *factors[i + 1 :], Polynomial([1.0])])
        whole = whole + rest * (G[i] ** 2 * (one / 4 - (mu + one) / 2))
    found = []
    for root in whole.roots():
        if abs(root.imag) < 1e-7 * abs(root) and root.real > 1e-6:
            d = -np.linalg.solve(A + root.real * np.eye(len(g)), g) / 2
            tangent = null_space((g + 2 * A @ d)[None])
            bend = tangent.T @ (A + root.real * np.eye(len(g))) @ tangent
            if np.linalg.eigvalsh(bend).min(initial=1.0) > 1e-6:
                found.append(d)
    return found


@pytest.mark.parametrize("seed", range(200))
def test_certify_C7_every_local_minimum_on_a_face_is_found(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    A = rng.normal(size=(n, n))
    A = A @ A.T * rng.choice([-1, 1]) if seed % 3 == 0 else A + A.T
    F, g = float(rng.normal()), rng.normal(size=n)
    wanted = stationary_minima(F, g, A)
    steps, nearest = local_minima(np.array([F]), g[None], A[None])
    there = steps[0][np.isfinite(steps[0]).all(axis=1)]
    for d in wanted:
        assert np.abs(there - d).max(axis=1).min() < 1e-5 * (1 + np.abs(d).max())
    values = F + ((there @ A + g) * there).sum(axis=1)
    assert (values <= 1e-8 * (abs(F) + np.abs(there @ g) + 1)).all()
    if wanted and F > 0:
        np.testing.assert_allclose(nearest[0], np.linalg.norm(wanted, axis=1).min(), rtol=1e-5)


def test_certify_C7_every_face_is_visited_once_unless_it_is_too_far_away():
    tie = Tie.of(1.0, np.array([-0.1, 0.0, 0.0]), np.diag([-1.0, -1.0, -1.0]))
    low, high = np.full(3, -0.1), np.full(3, 0.1)  # too small for a zero
    walk, sides = Walk(tie, low, high), []
    while True:
        assert not len(visit([walk])[0])
        sides += walk.sides.tolist()
        if not walk.advance(np.inf):
            break
    assert len(sides) == len({tuple(one) for one in sides}) == 27
    walk = Walk(tie, low, high)
    visit([walk])
    assert not walk.advance(0.5)  # the nearest zero of the whole space is farther away
