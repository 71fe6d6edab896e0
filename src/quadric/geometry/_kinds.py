"""Names of quadrics: tables for one, two and three dimensions, rules for more."""

from quadric.geometry._canonical_form import Shape

# (n, axes met, axes not met): names for F(centre) != 0, for F(centre) = 0, and without a centre
KINDS: dict[tuple[int, int, int], tuple[str, ...]] = {
    (1, 1, 0): ("two points", "point"),
    (1, 0, 1): ("empty",),
    (2, 2, 0): ("ellipse", "point"),
    (2, 1, 1): ("hyperbola", "crossing lines"),
    (2, 1, 0): ("parallel lines", "coincident lines", "parabola"),
    (2, 0, 2): ("empty",),
    (2, 0, 1): ("empty",),
    (3, 3, 0): ("ellipsoid", "point (imaginary elliptic cone)"),
    (3, 2, 1): ("hyperboloid of one sheet", "elliptic cone"),
    (3, 1, 2): ("hyperboloid of two sheets",),
    (3, 2, 0): ("elliptic cylinder", "line (imaginary crossing planes)", "elliptic paraboloid"),
    (3, 1, 1): ("hyperbolic cylinder", "crossing planes", "hyperbolic paraboloid"),
    (3, 1, 0): ("parallel planes", "coincident planes", "parabolic cylinder"),
    (3, 0, 3): ("empty (imaginary ellipsoid)",),
    (3, 0, 2): ("empty (imaginary elliptic cylinder)",),
    (3, 0, 1): ("empty (imaginary parallel planes)",),
}
PLANES = {1: "point", 2: "line", 3: "plane"}  # Q = 0


def kind_of(shape: Shape) -> str:
    """The name of a surface, except 'circle', which depends on lengths and not only on signs."""
    n, rank, (met, unmet) = shape.n, shape.rank, shape.met
    column = 2 if shape.slanted else int(shape.level == 0)
    if rank == 0:
        return ("empty", "everything", PLANES.get(n, "hyperplane"))[column]
    if n <= 3:
        return KINDS[n, met, unmet][column]
    if rank == 1 and not shape.slanted:
        return KINDS[3, met, unmet][column].replace("planes", "hyperplanes")
    if (rank, unmet, column) == (2, 1, 1):
        return "crossing hyperplanes"
    if met == 0:
        return "empty (imaginary ellipsoid)" if rank == n else "empty (imaginary cylinder)"
    spanned = rank + shape.slanted
    if spanned < n:
        section = kind_of(
            Shape(spanned, shape.positive, shape.negative, shape.slanted, shape.level)
        ).removesuffix(" (imaginary elliptic cone)")
        return f"cylinder over {'an' if section[0] in 'aeiou' else 'a'} {section}"
    if unmet == 0:
        return ("ellipsoid", "point", "paraboloid")[column]
    return f"{('hyperboloid', 'cone', 'paraboloid')[column]} of signature ({met}, {unmet})"
