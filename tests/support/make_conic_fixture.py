"""Write the fixture of conics from `quadric.geometry`: python -m tests.support.make_conic_fixture

For conics of every kind, in several positions and sizes, the fixture has the kind, the center, the
half-lengths of the axes, the equation, and the distances and nearest points of some points. The
page's JavaScript is tested against these numbers. Where several points are equally near, as from a
center, the nearest point is null.
"""

import json
from pathlib import Path

import numpy as np

from quadric.geometry import Quadric
from tests.support.conics import CONICS

PATH = Path(__file__).parents[1] / "fixtures" / "conics.json"

# angle, factor of F, length, shift
POSITIONS = (
    (0.0, 1.0, 1.0, (0.0, 0.0)),
    (0.5, -2.0, 1.0, (0.3, -0.4)),
    (2.0, 1e-3, 1.5, (-8.0, 10.0)),
    (1.1, 40.0, 0.02, (0.5, 0.25)),
)
EXTREMES = (
    ([[1, 0], [0, 1e-6]], [0.1, 0.2], -1),  # long
    ([[1, 0.999], [0.999, 1]], [0, 0], -1),
    ([[1e-9, 0], [0, 1e-9]], [1, 2], -1),  # almost a line
    ([[1, 0], [0, -1e-7]], [0, 0.3], 0.01),
    ([[1e120, 0], [0, 2e120]], [0, 0], -1e120),
    ([[3, 1], [1, 2]], [-1e-5, 0], -1e-10),
    ([[0, 0], [0, 0]], [0, 0], 2),  # empty
    ([[0, 0], [0, 0]], [0, 2], 0),
    ([[0, 1], [1, 0]], [0, 0], -1),
)


def placed(diagonal, w, b, angle, factor, length, shift):
    """The image of a conic under a rotation, a scaling and a shift."""
    cos, sin = np.cos(angle), np.sin(angle)
    turn = length * np.array([[cos, -sin], [sin, cos]]) if angle else np.eye(2) * length
    image = Quadric(np.diag(diagonal), w, b).transform(turn, shift)
    # the coefficients alone: the image also knows its source
    return Quadric(factor * image.Q, factor * image.w, factor * image.b)


def described(conic, points, *, unique=True):
    center, axes = conic.center, conic.axes
    on_curve = None if conic.is_empty or not unique else conic.nearest(points).tolist()
    half_lengths = [float(length) for length in axes.half_lengths]
    return {
        "Q": [float(conic.Q[0, 0]), float(conic.Q[0, 1]), float(conic.Q[1, 1])],
        "w": conic.w.tolist(),
        "b": conic.b,
        "kind": conic.kind,
        "center": None if center is None else center.tolist(),
        # null: not a number; a string: infinite
        "half_lengths": [
            None if np.isnan(length) else "inf" if np.isinf(length) else length
            for length in half_lengths
        ],
        "equation": conic.equation(["x1", "petal width"]),
        "points": np.asarray(points).tolist(),
        "distances": None if conic.is_empty else conic.distance(points).tolist(),
        "nearest": on_curve,
    }


def make():
    rng = np.random.default_rng(20240102)
    cases = []
    for kind, (diagonal, w, b) in CONICS.items():
        for angle, factor, length, shift in POSITIONS:
            conic = placed(diagonal, w, b, angle, factor, length, shift)
            assert conic.kind == kind, (conic, kind)
            near = np.array(shift) + length * rng.normal(size=(3, 2)) * [[0.3], [1], [5]]
            cases.append(described(conic, near))
            if conic.center is not None:
                cases.append(described(conic, conic.center[None], unique=False))
    for Q, w, b in EXTREMES:
        cases.append(described(Quadric(Q, w, b), rng.normal(size=(2, 2))))
    return {"cases": cases}


if __name__ == "__main__":
    cases = [json.dumps(case, separators=(",", ":"), allow_nan=False) for case in make()["cases"]]
    PATH.write_text('{"cases":[\n' + ",\n".join(cases) + "\n]}\n")
    print(f"wrote {PATH}")
