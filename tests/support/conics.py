"""A conic of each kind: diagonal of Q, w, b."""

CONICS = {
    "circle": ((1, 1), (0, 0), -1),
    "ellipse": ((1, 3), (0, 0), -1),
    "hyperbola": ((1, -2), (0, 0), -1),
    "parabola": ((1, 0), (0, 1), 0),
    "crossing lines": ((1, -2), (0, 0), 0),
    "parallel lines": ((1, 0), (0, 0), -1),
    "coincident lines": ((1, 0), (0, 0), 0),
    "line": ((0, 0), (1, 0.5), 1),
    "point": ((1, 3), (0, 0), 0),
    "empty": ((1, 3), (0, 0), 1),
    "everything": ((0, 0), (0, 0), 0),
}
