"""Draw docs/figures/engine_layout.svg: the buffers of per-sample SGD for a small network.

python docs/figures/engine_layout.py

The positions and sizes are those of the table that the compiled loop reads, for a network with four
inputs, three reduced neurons and ten quadratic neurons, in float32, with a folded input offset.
"""

from pathlib import Path

import numpy as np

from quadric import Network
from quadric.kernels import UNIT_BYTES
from quadric.training._steppers import PackedLayers

OUTPUT = Path(__file__).with_suffix(".svg")
INK, FAINT, LINE = "#1f2933", "#52606d", "#9aa5b1"
BLUE, ORANGE, GREEN, PURPLE, GRAY = "#a9cfe8", "#f6cf8b", "#9fd8c4", "#e0bcd4", "#e4e7eb"
WIDTH, LEFT, RIGHT = 920, 30, 890


class Drawing:
    """Collects the elements of an SVG picture."""

    def __init__(self):
        self.elements = []

    def box(self, x, y, width, height, color, *, edge=LINE):
        self.elements.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{color}" stroke="{edge}"/>'
        )

    def text(self, x, y, words, *, size=13, anchor="middle", color=INK, weight="normal"):
        self.elements.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{color}" font-weight="{weight}">{words}</text>'
        )

    def line(self, *points, color=FAINT, dash=False):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = ' stroke-dasharray="4 3"' if dash else ""
        self.elements.append(f'<polyline points="{path}" fill="none" stroke="{color}"{dashes}/>')

    def bracket(self, x0, x1, y, words):
        """Draw a bracket below the interval from x0 to x1, with words under it."""
        self.line((x0, y), (x0, y + 6), (x1, y + 6), (x1, y))
        self.text((x0 + x1) / 2, y + 22, words, size=12, color=FAINT)

    def write(self, path, height):
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">\n'
            "<title>Memory layout of per-sample SGD: parameters, the triangle of Q, and values of "
            "the current sample</title>\n"
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="white"/>\n'
        )
        path.write_text(head + "\n".join(self.elements) + "\n</svg>\n", encoding="utf-8")


def example():
    """Return the packed layers of the network in the picture."""
    layers = [("reduced", 3, "tanh"), ("quadratic", 10, "logistic")]
    network = Network.create(4, layers, rng=0, dtype="float32")
    offset = np.full(4, -0.5, dtype=np.float32)
    return PackedLayers(network._stack(), offset)


def sections(table, names, size):
    """Return (position, layer, name, length) of the named arrays of a buffer, in order."""
    found = [
        (int(row[name]), l, name)
        for l, row in enumerate(table)
        for name in names
        if row[name] >= 0 and not (name == "x" and l > 0)
    ]
    found.sort()
    ends = [start for start, _, _ in found[1:]] + [size]
    return [
        (start, l, name, end - start) for (start, l, name), end in zip(found, ends, strict=True)
    ]


LABELS = {"packed": "Q", "W_u": "u", "W_r": "r", "U_u": "u", "U_r": "r", "delta": "δ"}
LABELS |= {"v1": "v₁", "v2": "v₂", "monomials": "M(x)"}


def strip(drawing, parts, size, y, color_of):
    """Draw a buffer as a strip, to scale; return a function from positions to x."""

    def at(position):
        return LEFT + (RIGHT - LEFT) * position / size

    for start, l, name, length in parts:
        x, width = at(start), at(start + length) - at(start)
        drawing.box(x, y, width, 34, color_of(l, name))
        label = LABELS.get(name, name)
        drawing.text(x + width / 2, y + 22, label, size=13 if width > 24 else 11, weight="bold")
    return at


def draw_parameters(drawing, packed, y):
    table, n_penalized = packed.table, int(packed.memory.n_penalized)
    names = ["W", "U", "packed", "W_u", "W_r", "U_u", "U_r", "b", "c"]
    parts = sections(table, names, packed.theta.size)
    drawing.text(
        LEFT,
        y - 12,
        f"theta: all parameters, {packed.theta.size} numbers",
        anchor="start",
        weight="bold",
        size=15,
    )
    at = strip(drawing, parts, packed.theta.size, y, lambda l, name: BLUE if l == 0 else ORANGE)
    drawing.bracket(
        at(0) + 2, at(n_penalized) - 2, y + 40, "weights: stored divided by one number, scale"
    )
    drawing.bracket(at(n_penalized) + 2, at(packed.theta.size) - 2, y + 40, "biases")
    for x, color, words in ((560, BLUE, "layer 0, reduced"), (710, ORANGE, "layer 1, quadratic")):
        drawing.box(x, y - 24, 14, 14, color)
        drawing.text(x + 20, y - 12, words, anchor="start", size=12)
    return next(
        (at(start), at(start + length)) for start, _, name, length in parts if name == "packed"
    )


def draw_triangle(drawing, n, x, y, side):
    """Draw the upper triangle of a symmetric matrix, with the numbers of its rows in memory."""
    number = 0
    for i in range(n):
        for j in range(n):
            upper = j >= i
            drawing.box(x + j * side, y + i * side, side, side, ORANGE if upper else "white")
            if upper:
                drawing.text(
                    x + (j + 0.5) * side, y + (i + 0.5) * side - 2, f"q{i}{j}", weight="bold"
                )
                drawing.text(
                    x + (j + 0.5) * side,
                    y + (i + 0.5) * side + 13,
                    f"row {number}",
                    size=10,
                    color=FAINT,
                )
                number += 1
    drawing.text(x + n * side / 2, y - 12, "Q of one neuron", size=13, weight="bold")
    drawing.text(
        x + n * side / 2, y + n * side + 18, "the lower half is not stored", size=12, color=FAINT
    )


def draw_rows(drawing, n, m, lanes, x, y, width):
    """Draw the rows of Q in memory: one register of lanes for each pair of inputs."""
    side, height = width / lanes, 24
    drawing.text(
        x + width / 2,
        y - 26,
        "Q in memory: one row of 64 bytes for each pair of inputs",
        size=13,
        weight="bold",
    )
    for k in range(m):
        drawing.text(x + (k + 0.5) * side, y - 7, f"k={k}", size=10, color=FAINT)
    drawing.text(x + (m + lanes) / 2 * side, y - 7, "padding", size=10, color=FAINT)
    row = 0
    for i in range(n):
        for j in range(i, n):
            top = y + row * height
            for lane in range(lanes):
                used = lane < m
                drawing.box(x + lane * side, top, side, height, ORANGE if used else GRAY)
                drawing.text(
                    x + (lane + 0.5) * side,
                    top + 16,
                    f"q{i}{j}" if used else "0",
                    size=11,
                    color=INK if used else LINE,
                )
            drawing.text(x - 8, top + 16, f"row {row}", size=11, anchor="end", color=FAINT)
            row += 1
    top = y + 1 * height
    drawing.box(x - 2, top, width + 4, height, "none", edge=INK)
    drawing.text(
        x + width / 2,
        y + row * height + 18,
        "one load fills a register with q01 of all neurons, one instruction updates it",
        size=12,
        color=FAINT,
    )


def draw_work(drawing, packed, y):
    names = ["x", "z", "a", "delta", "v1", "v2", "V", "monomials"]
    parts = sections(packed.table, names, packed.work.size)
    drawing.text(
        LEFT,
        y - 12,
        f"work: values of the current sample, {packed.work.size} numbers",
        anchor="start",
        weight="bold",
        size=15,
    )

    def color(l, name):
        if name == "x":
            return GREEN
        return BLUE if l == 0 else ORANGE

    at = strip(drawing, parts, packed.work.size, y, color)
    first = [p for p in parts if p[1] == 0 and p[2] != "x"]
    second = [p for p in parts if p[1] == 1]
    drawing.bracket(at(0) + 2, at(first[0][0]) - 2, y + 40, "sample")
    drawing.bracket(at(first[0][0]) + 2, at(second[0][0]) - 2, y + 40, "layer 0")
    drawing.bracket(
        at(second[0][0]) + 2,
        at(packed.work.size) - 2,
        y + 40,
        "layer 1: V is kept for the backward pass, M(x) for the update",
    )


def main(output=OUTPUT):
    packed = example()
    quadratic = packed.table[1]
    n, m = int(quadratic["n_in"]), int(quadratic["n_out"])
    drawing = Drawing()
    left, right = draw_parameters(drawing, packed, 52)
    draw_triangle(drawing, n, 60, 212, 56)
    rows_x, rows_width, rows_y = 330, 540, 226
    drawing.line((left, 88), (rows_x, rows_y - 44), color=LINE, dash=True)
    drawing.line((right, 88), (rows_x + rows_width, rows_y - 44), color=LINE, dash=True)
    draw_rows(drawing, n, m, UNIT_BYTES // 4, rows_x, rows_y, rows_width)
    draw_work(drawing, packed, 470)
    drawing.write(output, 550)


if __name__ == "__main__":
    main()
