"""The names of quadrics: in the plane, the seventeen of space, and beyond by signature and rank."""

from quadric.geometry._canonical_form import Shape

# (rank, slanted, level is zero, axes met, axes not met)
PLANE = {
    (2, False, False, 2, 0): "ellipse",
    (2, False, False, 1, 1): "hyperbola",
    (2, False, False, 0, 2): "empty",
    (2, False, True, 2, 0): "point",
    (2, False, True, 1, 1): "crossing lines",
    (1, True, True, 1, 0): "parabola",
    (1, False, False, 1, 0): "parallel lines",
    (1, False, False, 0, 1): "empty",
    (1, False, True, 1, 0): "coincident lines",
}
SPACE = {
    (3, False, False, 3, 0): "ellipsoid",
    (3, False, False, 0, 3): "empty (imaginary ellipsoid)",
    (3, False, False, 2, 1): "hyperboloid of one sheet",
    (3, False, False, 1, 2): "hyperboloid of two sheets",
    (3, False, True, 2, 1): "elliptic cone",
    (3, False, True, 3, 0): "point (imaginary elliptic cone)",
    (2, True, True, 2, 0): "elliptic paraboloid",
    (2, True, True, 1, 1): "hyperbolic paraboloid",
    (2, False, False, 2, 0): "elliptic cylinder",
    (2, False, False, 0, 2): "empty (imaginary elliptic cylinder)",
    (2, False, False, 1, 1): "hyperbolic cylinder",
    (2, False, True, 1, 1): "crossing planes",
    (2, False, True, 2, 0): "line (imaginary crossing planes)",
    (1, True, True, 1, 0): "parabolic cylinder",
    (1, False, False, 1, 0): "parallel planes",
    (1, False, False, 0, 1): "empty (imaginary parallel planes)",
    (1, False, True, 1, 0): "coincident planes",
}
LINE = {
    (1, False, False, 1, 0): "two points",
    (1, False, False, 0, 1): "empty",
    (1, False, True, 1, 0): "point",
}
BY_DIMENSION = {1: LINE, 2: PLANE, 3: SPACE}
FLAT = {1: "point", 2: "line", 3: "plane"}


def kind_of(shape: Shape) -> str:
    """The name of the surface; 'circle' needs lengths, not signs only, and is the caller's."""
    n, rank, (met, unmet) = shape.n, shape.rank, shape.met
    if rank == 0:
        if shape.slanted:
            return FLAT.get(n, "hyperplane")
        return "empty" if shape.level else "everything"
    key = (rank, shape.slanted, shape.level == 0, met, unmet)
    if n in BY_DIMENSION:
        return BY_DIMENSION[n][key]
    if rank == 1 and not shape.slanted:
        return SPACE[key].replace("planes", "hyperplanes")
    if rank == 2 and unmet == 1 and shape.level == 0 and not shape.slanted:
        return "crossing hyperplanes"
    if met == 0:
        return "empty (imaginary ellipsoid)" if rank == n else "empty (imaginary cylinder)"
    spanned = rank + shape.slanted
    if spanned < n:
        section = kind_of(
            Shape(spanned, shape.positive, shape.negative, shape.slanted, shape.level)
        )
        section = section.removesuffix(" (imaginary elliptic cone)")
        return f"cylinder over {'an' if section[0] in 'aeiou' else 'a'} {section}"
    if shape.slanted:
        return "paraboloid" if unmet == 0 else f"paraboloid of signature ({met}, {unmet})"
    if shape.level == 0:
        return "point" if unmet == 0 else f"cone of signature ({met}, {unmet})"
    return "ellipsoid" if unmet == 0 else f"hyperboloid of signature ({met}, {unmet})"
