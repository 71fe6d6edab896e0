"""Quadrics: kinds, distances compared with a minimizer, slices and transformations."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import optimize
from scipy.stats import special_ortho_group

from quadric.geometry import Quadric
from quadric.geometry._plot_points import MESHES, arcs, surface_meshes
from tests.support.fixtures import CONICS

# diagonal of Q, w, b
SPACE = {
    "ellipsoid": ((1, 2, 3), (0, 0, 0), -1),
    "empty (imaginary ellipsoid)": ((1, 2, 3), (0, 0, 0), 1),
    "hyperboloid of one sheet": ((1, 2, -3), (0, 0, 0), -1),
    "hyperboloid of two sheets": ((1, -2, -3), (0, 0, 0), -1),
    "elliptic cone": ((1, 2, -3), (0, 0, 0), 0),
    "point (imaginary elliptic cone)": ((1, 2, 3), (0, 0, 0), 0),
    "elliptic paraboloid": ((1, 2, 0), (0, 0, 1), 0),
    "hyperbolic paraboloid": ((1, -2, 0), (0, 0, 1), 0),
    "elliptic cylinder": ((1, 2, 0), (0, 0, 0), -1),
    "empty (imaginary elliptic cylinder)": ((1, 2, 0), (0, 0, 0), 1),
    "hyperbolic cylinder": ((1, -2, 0), (0, 0, 0), -1),
    "crossing planes": ((1, -2, 0), (0, 0, 0), 0),
    "line (imaginary crossing planes)": ((1, 2, 0), (0, 0, 0), 0),
    "parabolic cylinder": ((1, 0, 0), (0, 1, 0), 0),
    "parallel planes": ((1, 0, 0), (0, 0, 0), -1),
    "empty (imaginary parallel planes)": ((1, 0, 0), (0, 0, 0), 1),
    "coincident planes": ((1, 0, 0), (0, 0, 0), 0),
    "plane": ((0, 0, 0), (0, 0, 1), 2),
    "everything": ((0, 0, 0), (0, 0, 0), 0),
    "empty": ((0, 0, 0), (0, 0, 0), 1),
}
BEYOND = {
    "ellipsoid": ((1, 2, 3, 4, 5), (0,) * 5, -1),
    "empty (imaginary ellipsoid)": ((1, 2, 3, 4, 5), (0,) * 5, 1),
    "hyperboloid of signature (3, 2)": ((1, 2, 3, -4, -5), (0,) * 5, -1),
    "cone of signature (3, 2)": ((-1, -2, 3, 4, 5), (0,) * 5, 0),
    "point": ((1, 2, 3, 4, 5), (0,) * 5, 0),
    "paraboloid": ((1, 2, 3, 4, 0), (0, 0, 0, 0, 1), 0),
    "paraboloid of signature (3, 1)": ((1, 2, 3, -4, 0), (0, 0, 0, 0, 1), 0),
    "cylinder over an ellipsoid": ((1, 2, 3, 0, 0), (0,) * 5, -1),
    "cylinder over an ellipse": ((1, 2, 0, 0, 0), (0,) * 5, -1),
    "cylinder over a hyperbola": ((1, -2, 0, 0, 0), (0,) * 5, -1),
    "cylinder over a parabola": ((1, 0, 0, 0, 0), (0, 0, 0, 0, 1), 0),
    "cylinder over a point": ((1, 2, 3, 0, 0), (0,) * 5, 0),
    "empty (imaginary cylinder)": ((1, 2, 3, 0, 0), (0,) * 5, 1),
    "crossing hyperplanes": ((1, -2, 0, 0, 0), (0,) * 5, 0),
    "parallel hyperplanes": ((1, 0, 0, 0, 0), (0,) * 5, -1),
    "coincident hyperplanes": ((1, 0, 0, 0, 0), (0,) * 5, 0),
    "hyperplane": ((0,) * 5, (1, 0, 0, 0, 0), 1),
}
LINE = {
    "two points": ((1,), (0,), -1),
    "point": ((1,), (2,), 1),
    "empty": ((1,), (0,), 1),
    "everything": ((0,), (0,), 0),
}
EXAMPLES = [
    pytest.param(name, *example, id=f"{name}, n = {len(example[1])}")
    for table in (LINE, CONICS, SPACE, BEYOND)
    for name, example in table.items()
]


def moved(diagonal, w, b, rng, *, shift, factor=1.0, scale=1.0):
    """Return the surface rotated, shifted by up to `shift` and scaled, with F times `factor`."""
    n = len(w)
    R = special_ortho_group.rvs(n, random_state=rng) if n > 1 else np.eye(1)
    Q, w = R @ np.diag(diagonal) @ R.T, R @ np.asarray(w, dtype=float)
    t = R @ rng.uniform(-shift, shift, n)
    b, w = b + t @ Q @ t - w @ t, w - 2 * Q @ t
    return factor * Q / scale**2, factor * w / scale, factor * b


@pytest.mark.parametrize(("kind", "diagonal", "w", "b"), EXAMPLES)
def test_each_kind_is_recognized(kind, diagonal, w, b):
    assert Quadric(np.diag(diagonal), w, b).kind == kind
    assert Quadric(-np.diag(diagonal), -np.array(w), -b).kind == kind


def test_there_are_seventeen_quadrics_in_space():
    assert len({kind for kind, example in SPACE.items() if any(example[0])}) == 17


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "diagonal", "w", "b"), EXAMPLES)
@given(
    seed=st.integers(0, 2**32 - 1),
    factor=st.sampled_from([1.0, 1e3, 1e-9, -1.0, 1e100]),
    scale=st.sampled_from([1.0, 1e-3, 1e5, 1e60]),
)
def test_kind_does_not_change_when_moved(kind, diagonal, w, b, seed, factor, scale):
    rng = np.random.default_rng(seed)
    Q, w, b = moved(diagonal, w, b, rng, shift=1e3, factor=factor, scale=scale)
    assert Quadric(Q, w, b).kind == kind


def test_coincident_lines_shifted_far_along_themselves_stay_coincident():
    """The shift leaves larger rounding errors in b than the size of b suggests."""
    q = Quadric(*moved(*CONICS["coincident lines"], np.random.default_rng(109942), shift=1e3))
    assert q.kind == "coincident lines"


@given(
    n=st.integers(2, 6),
    seed=st.integers(0, 2**32 - 1),
    exponents=st.lists(st.floats(-6, 0), min_size=6, max_size=6),
    signs=st.lists(st.sampled_from([-1, 1]), min_size=6, max_size=6),
    b=st.sampled_from([-1.0, 1.0]),
)
def test_kind_of_long_thin_surfaces(n, seed, exponents, signs, b):
    """Eigenvalues down to 1e-6 of the largest, shifts of 1e3 times the longest half-length."""
    diagonal = np.array(signs[:n]) * 10.0 ** np.array(exponents[:n])
    diagonal[0] = signs[0]
    before = Quadric(np.diag(diagonal), np.zeros(n), b)
    if before.kind == "circle":
        return
    longest = 1 / np.sqrt(np.abs(diagonal).min())
    rng = np.random.default_rng(seed)
    Q, w, b = moved(diagonal, np.zeros(n), b, rng, shift=1e3 * longest)
    assert Quadric(Q, w, b).kind == before.kind


@pytest.mark.parametrize("gap", [1e-6, 1e-9])
def test_almost_a_circle_is_an_ellipse(gap):
    assert Quadric(np.diag([1, 1 + gap]), [0, 0], -1).kind == "ellipse"
    assert Quadric(np.diag([1, 1 + gap]), [0, 0], -1, tolerance=1e-5).kind == "circle"


def test_the_user_can_set_the_tolerance():
    nearly = Quadric([[1, 0], [0, 1e-8]], [0, 0], -1)
    assert nearly.kind == "ellipse"
    assert nearly.tolerance == 2e-14
    assert Quadric([[1, 0], [0, 1e-8]], [0, 0], -1, tolerance=1e-6).kind == "parallel lines"


def test_attributes_of_an_ellipse():
    angle = 0.7
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    Q = R @ np.diag([1 / 9, 1 / 4]) @ R.T
    center = np.array([5.0, -2.0])
    q = Quadric(-Q, 2 * Q @ center, 1 - center @ Q @ center)  # negative Q: the same set
    assert q.kind == "ellipse"
    assert (q.rank, q.signature, q.n_dims) == (2, (0, 2), 2)
    np.testing.assert_allclose(q.center, center)
    np.testing.assert_allclose(q.axes.half_lengths, [3, 2])
    np.testing.assert_allclose(np.abs(q.axes.directions @ R), np.eye(2), atol=1e-12)
    assert q.encloses(center)
    assert q.encloses([[5, -2], [50, 0]]).tolist() == [True, False]
    assert q.encloses(q.center + 2.999 * q.axes.directions[0])
    assert not q.encloses(q.center + 3.001 * q.axes.directions[0])


def test_attributes_without_a_center():
    parabola = Quadric([[1, 0], [0, 0]], [0, -1], 0)
    assert parabola.center is None
    assert np.isnan(parabola.axes.half_lengths[1])
    assert np.isinf(parabola.axes.half_lengths[0])
    lines = Quadric([[1, 0], [0, 0]], [-4, 0], 0)
    assert lines.center.tolist() == [2, 0]  # the center nearest to the origin
    assert lines.axes.half_lengths.tolist() == [np.inf, 2]
    with pytest.raises(ValueError, match="only an ellipsoid encloses points"):
        parabola.encloses([0, 0])


# ---- distance ------------------------------------------------------------------------------


def nearest_by_search(q, p, rng):
    """Return the smallest distance that a general minimizer finds from many starts."""
    best = np.inf
    for _ in range(12):
        start = p + rng.normal(size=q.n_dims) * rng.choice([0.1, 1, 3, 10])
        found = optimize.minimize(
            lambda x: ((x - p) ** 2).sum(),
            start,
            jac=lambda x: 2 * (x - p),
            constraints={"type": "eq", "fun": q.value, "jac": q.gradient},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 300},
        )
        if abs(q.value(found.x)) < 1e-8 * (1 + np.abs(found.x).max() ** 2):
            best = min(best, np.sqrt(found.fun))
    return best


def random_case(rng):
    """Return a surface in 2 to 6 dimensions, and a random, central, focal or axis point."""
    while True:
        n = int(rng.integers(2, 7))
        R = special_ortho_group.rvs(n, random_state=rng)
        eigenvalues = rng.normal(size=n)
        sort = rng.integers(5)
        if sort == 0:
            eigenvalues = np.abs(eigenvalues) + 0.05
        elif sort == 1:
            eigenvalues[rng.integers(n)] = 0.0
        elif sort == 2:
            eigenvalues[:2] = eigenvalues[0]
        Q = R @ np.diag(eigenvalues) @ R.T
        center = rng.normal(size=n)
        w = -2 * Q @ center + (rng.normal(size=n) if sort == 1 else 0.0)
        b = center @ Q @ center + (-1.0 if sort == 0 else rng.choice([-1, 1, -0.1]))
        q = Quadric(Q, w, b)
        if not q.is_empty:
            break
    p, place = rng.normal(size=n) * 2, rng.integers(4)
    if q.center is not None and place == 0:
        p = q.center
    elif q.center is not None and place == 1:
        lengths = q.axes.half_lengths
        p = q.center + q.axes.directions[0] * np.sqrt(np.abs(lengths[0] ** 2 - lengths[-1] ** 2))
    elif q.center is not None and place == 2:
        p = q.center + q.axes.directions[-1] * rng.normal()
    return q, p


@pytest.mark.slow
@pytest.mark.parametrize(
    "cases", [30, pytest.param(500, marks=pytest.mark.full)], ids=["30 cases", "500 cases"]
)
def test_distance_agrees_with_a_minimizer(cases):
    rng = np.random.default_rng(1)
    for _ in range(cases):
        q, p = random_case(rng)
        distance, x = q.distance(p), q.nearest(p)
        assert np.linalg.norm(x - p) == pytest.approx(distance, rel=1e-12)
        scale = abs(q.b) + np.abs(q.w).max() * np.abs(x).max() + np.abs(x).max() ** 2
        assert abs(q.value(x)) < 1e-11 * scale
        searched = nearest_by_search(q, p, rng)
        assert distance == pytest.approx(searched, rel=1e-6, abs=1e-6), (q, p)


def test_distances_match_hand_worked_ones():
    ellipse = Quadric([[1 / 9, 0], [0, 1 / 4]], [0, 0], -1)  # half-axes 3 and 2
    focus = [np.sqrt(5), 0]
    assert ellipse.distance([0, 0]) == 2.0
    assert ellipse.distance(focus) == pytest.approx(3 - np.sqrt(5), rel=1e-14)
    assert ellipse.distance([5, 0]) == pytest.approx(2, rel=1e-14)
    assert ellipse.distance([[3, 0], [0, 2]]) == pytest.approx([0, 0], abs=1e-14)
    np.testing.assert_allclose(np.abs(ellipse.nearest([0, 0])), [0, 2], atol=1e-12)
    hyperbola = Quadric([[1, 0], [0, -1]], [0, 0], -1)
    assert hyperbola.distance([0, 0]) == 1.0
    assert hyperbola.distance([0, 2]) == pytest.approx(np.sqrt(3), rel=1e-14)
    parabola = Quadric([[1, 0], [0, 0]], [0, -1], 0)  # y = x^2, focus (0, 1/4)
    assert parabola.distance([0, 0.25]) == pytest.approx(0.25, rel=1e-14)
    assert parabola.distance([0, 1]) == pytest.approx(np.sqrt(3) / 2, rel=1e-14)
    sphere = Quadric(np.eye(5), np.zeros(5), -4)
    assert sphere.distance(np.zeros(5)) == 2.0
    assert sphere.distance(np.full(5, 1e-200)) == pytest.approx(2.0)
    plane = Quadric(np.zeros((3, 3)), [0, 0, 2], -6)
    assert plane.distance([7, 8, 10]) == pytest.approx(7.0)


def test_distance_of_degenerate_surfaces():
    assert Quadric(np.eye(2), [0, 0], 1).distance([[0, 0], [1, 2]]).tolist() == [np.inf, np.inf]
    with pytest.raises(ValueError, match="no nearest point: the surface is empty"):
        Quadric(np.eye(2), [0, 0], 1).nearest([0, 0])
    point = Quadric(np.eye(2), [-2, -4], 5)  # at (1, 2)
    np.testing.assert_allclose(point.nearest([4, 6]), [1, 2])
    assert point.distance([4, 6]) == pytest.approx(5.0)
    double = Quadric([[1, 0], [0, 0]], [-2, 0], 1)  # x = 1, twice
    assert double.distance([5, 3]) == pytest.approx(4.0)
    assert Quadric(np.zeros((2, 2)), [0, 0], 0).distance([3, 4]) == 0.0
    crossing = Quadric([[1, 0], [0, -1]], [0, 0], 0)
    assert crossing.distance([1, 0]) == pytest.approx(np.sqrt(0.5))


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-9, 1.0, 1e12]))
def test_distance_scales_with_lengths(seed, scale):
    q, p = random_case(np.random.default_rng(seed))
    larger = Quadric(q.Q / scale**2, q.w / scale, q.b)
    assert larger.distance(p * scale) == pytest.approx(q.distance(p) * scale, rel=1e-6)


# ---- drawn pieces --------------------------------------------------------------------------


def equation_scale(q, x):
    size = np.linalg.norm(x, axis=1)
    return abs(q.b) + np.linalg.norm(q.w) * size + np.linalg.norm(q.Q, 2) * size**2


@pytest.mark.parametrize("kind", [kind for kind in CONICS if kind not in ("empty", "everything")])
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.3, 1.0, 30.0, 3000.0]))
def test_drawn_arcs_satisfy_the_equation(kind, seed, scale):
    rng = np.random.default_rng(seed)
    q = Quadric(*moved(*CONICS[kind], rng, shift=2, scale=scale))
    window = (-4 * scale, 4 * scale, -4 * scale, 4 * scale)
    pieces = arcs(q, window)
    assert pieces  # after a shift by 2 sizes, a part of it is in the window
    for piece in pieces:
        assert (np.abs(q.value(piece)) <= 1e-12 * equation_scale(q, piece).max()).all()
        assert (np.abs(piece) <= 4 * scale * (1 + 1e-9)).all()
    assert len(pieces) <= {"hyperbola": 8, "parabola": 4, "ellipse": 4, "circle": 4}.get(kind, 2)


def test_arcs_are_complete():
    (circle,) = arcs(Quadric(np.eye(2), [0, 0], -1), (-2, 2, -2, 2))
    angles = np.unwrap(np.arctan2(*circle.T[::-1]))
    assert abs(angles[-1] - angles[0]) == pytest.approx(2 * np.pi)
    assert np.abs(np.diff(angles)).max() < 0.1
    # the right edge cuts it: one arc from edge to edge
    (cut,) = arcs(Quadric(np.eye(2), [0, 0], -1), (-2, 0.5, -2, 2))
    np.testing.assert_allclose(cut[[0, -1], 0], [0.5, 0.5])
    np.testing.assert_allclose(cut[:, 0].min(), -1, atol=1e-3)
    branches = arcs(Quadric([[1, 0], [0, -1]], [0, 0], -1), (-5, 5, -5, 5))
    assert sorted(np.sign(branch[:, 0].mean()) for branch in branches) == [-1, 1]
    assert arcs(Quadric(np.eye(2), [0, 0], -1), (2, 3, 2, 3)) == []
    assert arcs(Quadric(np.eye(2), [0, 0], -100), (-1, 1, -1, 1)) == []
    assert arcs(Quadric(np.eye(2), [0, 0], 1), (-1, 1, -1, 1)) == []


def test_arcs_of_a_huge_ellipse_near_the_window():
    """Its center is 1e8 away, but the drawn arc satisfies the equation."""
    q = Quadric([[1, 0], [0, 1e-16]], [0, -1e-8], -0.25)
    pieces = arcs(q, (-1, 1, -1, 1))
    assert len(pieces) == 2
    for piece in pieces:
        assert (np.abs(q.value(piece)) <= 1e-13).all()
        assert np.ptp(piece[:, 1]) > 1.9


@pytest.mark.parametrize("kind", MESHES)
@given(seed=st.integers(0, 2**32 - 1))
def test_meshes_satisfy_the_equation(kind, seed):
    q = Quadric(*moved(*SPACE[kind], np.random.default_rng(seed), shift=3))
    meshes = surface_meshes(q, 4.0, np.ones(3))
    assert meshes
    for mesh in meshes:
        x = mesh.reshape(3, -1).T
        assert np.isfinite(x).all()
        assert (np.abs(q.value(x)) <= 1e-12 * equation_scale(q, x).max()).all()


# ---- text ----------------------------------------------------------------------------------


def test_equation_as_text():
    q = Quadric([[0.5, -1], [-1, 0]], [0, -3.14159], 2)
    assert q.equation() == "0.5 x² - 2 xy - 3.14 y + 2 = 0"
    assert q.equation(precision=5) == "0.5 x² - 2 xy - 3.1416 y + 2 = 0"
    assert q.equation(["width", "petal length"]) == (
        "0.5 width² - 2 width·[petal length] - 3.14 [petal length] + 2 = 0"
    )
    assert Quadric([[0]], [0], 0).equation() == "0 = 0"
    assert Quadric([[-1, 0], [0, 1]], [0, 0], 0).equation() == "-x² + y² = 0"
    assert Quadric(np.diag([1e-7, 1, 1, 1]), np.zeros(4), -1e10).equation() == (
        "1e-07 x1² + x2² + x3² + x4² - 1e+10 = 0"
    )


def test_equation_as_latex():
    q = Quadric(np.diag([1e-7, 2, 1, 1]), [0, 0, 0, -1], 1)
    assert q.equation(["x1", "a_b", "50 %", "y"], latex=True) == (
        r"1 \times 10^{-7}\,x_{1}^{2} + 2\,\text{a\_b}^{2} + \text{50 \%}^{2} + y^{2} - y + 1 = 0"
    )


def test_equation_of_many_terms():
    q = Quadric(np.diag([5.0, 1, 3, 100]), [0.1, 0, 0, 0], 1)
    assert q.equation(max_terms=2) == "5 x1² + 100 x4² + (3 smaller terms) + 1 = 0"
    assert q.equation(max_terms=1, sizes=[1, 100, 1, 1]) == "x2² + (4 smaller terms) + 1 = 0"
    with pytest.raises(ValueError, match="names must hold 4 names"):
        q.equation(["a"])


# ---- slices, projections and transformations -----------------------------------------------


@given(seed=st.integers(0, 2**32 - 1))
def test_slice_transform_preimage_agree_with_values(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    q = Quadric(rng.normal(size=(n, n)), rng.normal(size=n), rng.normal())
    x = rng.normal(size=(7, n))
    dims = rng.permutation(n)[: rng.integers(1, n + 1)]
    at = rng.normal(size=n)
    full = np.tile(at, (7, 1))
    full[:, dims] = x[:, : len(dims)]
    np.testing.assert_allclose(q.slice(dims, at).value(x[:, : len(dims)]), q.value(full), atol=1e-9)
    scale, shift = rng.normal(size=n), rng.normal(size=n)
    image = q.transform(scale, shift)
    np.testing.assert_allclose(image.value(x * scale + shift), q.value(x), atol=1e-9)
    # values computed from the coefficients agree with those computed from the original surface
    direct = Quadric(image.Q, image.w, image.b)
    np.testing.assert_allclose(direct.value(x), image.value(x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(direct.gradient(x), image.gradient(x), rtol=1e-6, atol=1e-6)
    A, t = rng.normal(size=(n, 3)), rng.normal(size=n)
    u = rng.normal(size=(7, 3))
    np.testing.assert_allclose(q.preimage(A, t).value(u), q.value(u @ A.T + t), atol=1e-9)
    np.testing.assert_allclose(q.preimage(scale, t).value(x), q.value(x * scale + t), atol=1e-9)
    twice = image.transform(2.0, shift).slice(dims, at)
    np.testing.assert_allclose(
        twice.value(x[:, : len(dims)]),
        q.value(((full - shift) / 2 - shift) / scale),
        rtol=1e-9,
        atol=1e-7,
    )


def test_transform_by_a_matrix():
    q = Quadric(np.diag([1, 4]), [0, 0], -4)
    R = np.array([[0.0, -1.0], [1.0, 0.0]])
    turned = q.transform(R, [10, 0])
    np.testing.assert_allclose(turned.center, [10, 0])
    np.testing.assert_allclose(np.abs(turned.axes.directions), [[0, 1], [1, 0]], atol=1e-12)
    with pytest.raises(ValueError, match="invertible"):
        q.transform([[1, 1], [1, 1]])


def test_kind_in_very_different_units():
    """An ellipsoid on standardized features remains one in units that differ by 1e18."""
    q = Quadric([[2, 1, 0], [1, 2, 1], [0, 1, 2]], [0.1, 0, 0], -1)
    scale, shift = np.array([1e-9, 1.0, 1e9]), np.array([5e-9, 100.0, 1e10])
    own = q.transform(scale, shift)
    assert own.kind == "ellipsoid"
    np.testing.assert_allclose(own.center, q.center * scale + shift, rtol=1e-12)
    # the longest half-length is the extent along the coordinate with the largest unit
    extent = np.sqrt(np.diag(np.linalg.inv(q.Q)) * -q.value(q.center)) * scale
    np.testing.assert_allclose(own.axes.half_lengths[0], extent[2], rtol=1e-6)
    assert own.encloses(own.center)
    x = own.nearest(own.center + scale * [0.3, 0.1, 0.2])
    assert abs(own.value(x)) < 1e-12


def test_projection_is_the_outline():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    q = Quadric(A @ A.T + np.eye(4), rng.normal(size=4), -5)
    shadow = q.project([1, 3])
    assert shadow.kind == "ellipse"
    directions = rng.normal(size=(20000, 4))
    roots = np.linalg.cholesky(np.linalg.inv(q.Q * -1 / q.value(q.center)))
    surface = q.center + directions / np.linalg.norm(directions, axis=1)[:, None] @ roots.T
    np.testing.assert_allclose(q.value(surface), 0, atol=1e-9)
    values = shadow.value(surface[:, [1, 3]])
    assert values.max() < 1e-9  # no point of the surface is outside its projection
    assert values.max() > -0.05  # and some are on the edge
    with pytest.raises(ValueError, match="no outline"):
        Quadric(np.diag([1, 1, 0]), [0, 0, 1], 0).project([0, 1])


# ---- bad input -----------------------------------------------------------------------------


def test_asymmetric_Q_is_the_same_function():
    q = Quadric([[1, 2], [0, 1]], [0, 0], -1)
    assert q.Q.tolist() == [[1, 1], [1, 1]]
    assert q.kind == "parallel lines"
    assert q.value([1, 1]) == 3.0


def test_coefficients_and_points_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"Q must have shape \(n, n\) and w shape \(n,\)"):
        Quadric(np.eye(3), np.zeros(2), 0)
    with pytest.raises(ValueError, match=r"Q must be finite.*index \(0, 0\)"):
        Quadric([[np.nan, 0], [0, 1]], [0, 0], 0)
    with pytest.raises(ValueError, match="b must be a finite number"):
        Quadric(np.eye(2), [0, 0], np.inf)
    with pytest.raises(TypeError, match="w must hold"):
        Quadric(np.eye(2), ["a", "b"], 0)
    with pytest.raises(ValueError, match="tolerance must be"):
        Quadric(np.eye(2), [0, 0], 0, tolerance=-1)
    q = Quadric(np.eye(2), [0, 0], -1)
    with pytest.raises(ValueError, match=r"X must have shape \(n_points, 2\)"):
        q.distance([[1, 2, 3]])
    with pytest.raises(ValueError, match="distinct integers below 2"):
        q.slice([0, 0], 0)
    with pytest.raises(ValueError, match="scale must not be zero"):
        q.transform([1, 0])
    with pytest.raises(ValueError, match="take a section first"):
        arcs(Quadric(np.eye(3), np.zeros(3), -1), (0, 1, 0, 1))
    with pytest.raises(ValueError, match="read-only"):
        q.Q[0, 0] = 5
    with pytest.raises(ValueError, match="larger than floating-point"):
        _ = Quadric([[1e-300]], [1e10], 0).kind
    with pytest.raises(ValueError, match="larger than floating-point"):
        Quadric(1e300 * np.eye(2), [0, 0], 1).transform([1e-9, 1])


def test_single_points_give_numbers_and_arrays_give_arrays():
    q = Quadric(np.eye(2), [0, 0], -1)
    assert isinstance(q.value([1, 0]), float)
    assert isinstance(q.distance([1, 0]), float)
    assert q.value(np.zeros((0, 2))).shape == (0,)
    assert q.distance(np.zeros((0, 2))).shape == (0,)
    np.testing.assert_allclose(q.nearest([[2, 0], [0, 3]]), [[1, 0], [0, 1]], atol=1e-15)
    assert repr(q) == "<Quadric, circle: x² + y² - 1 = 0>"


# ---- other units and large distances -------------------------------------------------------


@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("Q", [[[1, 0.3], [0.3, 2]], [[1, 0.3], [0.3, -2]]])
def test_nearest_in_very_different_units(ratio, Q):
    """The point is on the surface, and no point of the drawn curve is nearer."""
    q = Quadric(Q, [0, 0], -1)
    own = q.transform([1, ratio])
    points = np.stack(np.meshgrid(np.linspace(-3, 3, 7), np.linspace(-3, 3, 7)), -1).reshape(-1, 2)
    found = own.nearest(points * [1, ratio])
    assert np.abs(own.value(found)).max() < 1e-11
    curve = np.vstack(arcs(q, (-6, 6, -6, 6), step=1e-4)) * [1, ratio]
    for p, distance in zip(points * [1, ratio], own.distance(points * [1, ratio]), strict=True):
        least = np.linalg.norm(curve - p, axis=1).min()
        assert distance <= least * (1 + 1e-9) + 1e-9
        assert distance >= least - 1e-2 * ratio  # the spacing of the curve's points


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_arcs_far_from_the_origin(offset):
    """A transformed surface is drawn and clipped correctly far from the origin."""
    q = Quadric(np.eye(2), [0, 0], -1).transform(1.0, [offset, offset])
    (piece,) = arcs(q, (offset + 0.5, offset + 2, offset - 2, offset + 2))
    near = piece - offset
    np.testing.assert_allclose(np.hypot(*near.T), 1, atol=1e-7)
    np.testing.assert_allclose(near[[0, -1], 0], 0.5, atol=1e-7)
    np.testing.assert_allclose(
        np.sort(near[[0, -1], 1]), [-np.sqrt(0.75), np.sqrt(0.75)], atol=1e-7
    )


def test_coefficients_of_extreme_size_do_not_overflow():
    for size in (1e-200, 1e200):
        circle = Quadric(np.eye(2) * size, [0, 0], -size)
        assert circle.kind == "circle"
        assert circle.distance([3, 0]) == pytest.approx(2)
        assert len(arcs(circle, (0.2, 2, 0.2, 2))) == 1
        plane = Quadric(np.zeros((2, 2)), [size, 0], size)
        assert plane.kind == "line"
        assert plane.distance([3, 0]) == pytest.approx(4)


def test_a_matrix_keeps_the_kind():
    q = Quadric(np.diag([1, 2, 3.0]) + 0.2, [0, 0, 0], -1)
    far = q.transform(np.eye(3)[[2, 0, 1]] * 3.0, [1e7, 2e7, -1e7])
    assert far.kind == "ellipsoid"
    assert far.project([0, 1]).kind == "ellipse"
    assert far.slice([0, 1]).kind == "ellipse"
    np.testing.assert_allclose(far.center, [1e7, 2e7, -1e7])
    cylinder = q.preimage([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], [-1e7, 0, 0])
    assert cylinder.kind == "cylinder over an ellipsoid"
    line = q.preimage([[1e-5], [0], [0]], [-1e3, 0, 0])
    assert line.kind == "two points"
    np.testing.assert_allclose(line.nearest([1e8]), 1e8 + 1e5 / np.sqrt(1.2), rtol=1e-9)


def test_distance_to_an_ellipse_that_is_tiny_from_far_away():
    tiny = Quadric([[3, 1], [1, 2]], [-1e-40, 0], -1e-80)
    points = np.array([[3.0, 4.0], [-1.0, 0.0], [1e-3, 0.0]])
    np.testing.assert_allclose(tiny.distance(points), np.linalg.norm(points, axis=1), rtol=1e-12)
    np.testing.assert_allclose(tiny.nearest(points), 0.0, atol=1e-12)
