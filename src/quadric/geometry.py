"""What the zero set of x'Qx + w'x + b is, in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["conic_equation", "conic_kind"]

TOLERANCE = 1e-9


def conic_kind(Q: Any, w: Any, b: float) -> str:
    """The name of the set {x : x'Qx + w'x + b = 0} in two dimensions.

    One of 'circle', 'ellipse', 'hyperbola', 'parabola', 'crossing lines', 'parallel lines',
    'coincident lines', 'line', 'point', 'empty', 'everything'. A quantity counts as zero where
    it is below 1e-9 of what it is computed from.

    >>> conic_kind([[1, 0], [0, 1]], [0, 0], -1), conic_kind([[0, 1], [1, 0]], [0, 0], -1)
    ('circle', 'hyperbola')
    """
    Q, w, b = np.asarray(Q, dtype=float), np.asarray(w, dtype=float), float(b)
    if Q.shape != (2, 2) or w.shape != (2,):
        raise ValueError(
            f"a conic needs Q of shape (2, 2) and w of shape (2,). Got {Q.shape} and {w.shape}."
        )
    if not (np.isfinite(Q).all() and np.isfinite(w).all() and np.isfinite(b)):
        raise ValueError("Q, w and b must be finite.")
    eigenvalues, axes = np.linalg.eigh((Q + Q.T) / 2)
    size = float(np.abs(eigenvalues).max())
    if size == 0:
        if not w.any():
            return "everything" if b == 0 else "empty"
        return "line"
    along = axes.T @ w  # w in the coordinates of the axes
    curved = np.abs(eigenvalues) > TOLERANCE * size
    if curved.all():
        # complete both squares: sum_i l_i (y_i - c_i)^2 + level = 0
        parts = along**2 / (4 * eigenvalues)
        level = b - parts.sum()
        zero = abs(level) <= TOLERANCE * (abs(b) + float(np.abs(parts).sum()))
        if eigenvalues[0] * eigenvalues[1] < 0:
            return "crossing lines" if zero else "hyperbola"
        if zero:
            return "point"
        if level * eigenvalues[0] > 0:
            return "empty"
        round_ = abs(eigenvalues[0] - eigenvalues[1]) <= TOLERANCE * size
        return "circle" if round_ else "ellipse"
    i = int(np.argmax(curved))
    if abs(along[1 - i]) > TOLERANCE * max(float(np.abs(along).max()), size):
        return "parabola"
    part = along[i] ** 2 / (4 * eigenvalues[i])
    level = b - part
    if abs(level) <= TOLERANCE * (abs(b) + abs(part)):
        return "coincident lines"
    return "empty" if level * eigenvalues[i] > 0 else "parallel lines"


def conic_equation(Q: Any, w: Any, b: float, *, precision: int = 2) -> str:
    """The equation of the conic in x and y, as text.

    >>> conic_equation([[1, 0], [0, 2]], [0, -3], -1)
    '1.00 x² + 2.00 y² - 3.00 y - 1.00 = 0'
    """
    Q, w = np.asarray(Q, dtype=float), np.asarray(w, dtype=float)
    terms = [
        (Q[0, 0], " x²"),
        (Q[0, 1] + Q[1, 0], " xy"),
        (Q[1, 1], " y²"),
        (w[0], " x"),
        (w[1], " y"),
        (float(b), ""),
    ]
    text = ""
    for value, name in terms:
        size = f"{abs(value):.{precision}f}"
        if float(size) == 0:
            continue
        sign = "-" if value < 0 else "+"
        text += f" {sign} {size}{name}" if text else f"{'-' if value < 0 else ''}{size}{name}"
    return f"{text or '0'} = 0"
