"""Small pieces of HTML for notebooks: tables, bars, curves, and a progress bar.

All styles are inline and nothing is loaded. Text has the notebook's own color, and the colors of
lines and bars are visible on light and dark backgrounds.
"""

import importlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape

from quadric.utils._text import rounded, visible

BLUE = "#3d85c6"
GRAY = "rgba(128,128,128,.4)"
SECONDS_BETWEEN = 0.1  # updates of a progress bar


def paragraph(*lines: str, strong: bool = False) -> str:
    """Return lines of text.

    >>> paragraph("a < b")
    '<p style="margin:.3em 0">a &lt; b</p>'
    """
    text = "<br>".join(escape(visible(line)) for line in lines)
    return f'<p style="margin:.3em 0">{f"<b>{text}</b>" if strong else text}</p>'


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], shares: Sequence[float] = ()
) -> str:
    """Return a table whose first column is text and whose other columns are numbers.

    If there are shares, one per row, a bar is drawn at the end of each row.
    """

    def line(cells: Sequence[str], tag: str, end: str) -> str:
        sides = ["left", *["right"] * (len(cells) - 1)]
        texts = [
            f'<{tag} style="text-align:{side};border-bottom:1px solid {GRAY}">'
            f"{escape(visible(cell))}</{tag}>"
            for side, cell in zip(sides, cells, strict=True)
        ]
        return f"<tr>{''.join(texts)}{end}</tr>"

    ends = [f"<td>{_bar(share)}</td>" for share in shares] or [""] * len(rows)
    body = "".join(line(row, "td", end) for row, end in zip(rows, ends, strict=True))
    head = line(header, "th", "<th></th>" if shares else "")
    style = "border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums"
    return f'<table style="{style}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _bar(share: float) -> str:
    """Return a horizontal bar; a negative share is pale."""
    width, opacity = 120, 0.35 if share < 0 else 1
    length = min(abs(share), 1.0) * width
    return (
        f'<svg width="{width}" height="10" role="img" aria-label="{share:.1%}">'
        f'<rect width="{length:.1f}" height="10" fill="{BLUE}" opacity="{opacity}"/></svg>'
    )


def curve(values: Sequence[float], name: str) -> str:
    """Return a curve labeled with its range; nothing for fewer than two or non-finite numbers.

    Of a long curve, 300 to 600 points are drawn.
    """
    points = list(values)[:: max(1, len(values) // 300)]
    if len(points) < 2 or not all(map(math.isfinite, points)):
        return ""
    low, high, width, height = min(points), max(points), 360, 110
    spread = (high - low) or 1.0
    places = " ".join(
        f"{width * i / (len(points) - 1):.1f},{height * (1 - (y - low) / spread):.1f}"
        for i, y in enumerate(points)
    )
    label = escape(visible(name))
    text = f'fill="currentColor" font-size="11" x="{width + 8}"'
    return (
        f'<svg viewBox="-4 -8 {width + 84} {height + 30}" width="{width + 84}" '
        f'style="max-width:100%" role="img" aria-label="{label}">'
        f'<path d="M0,0V{height}H{width}" fill="none" stroke="{GRAY}"/>'
        f'<polyline points="{places}" fill="none" stroke="{BLUE}" stroke-width="2"/>'
        f'<text {text} y="4">{rounded(high)}</text><text {text} y="{height}">{rounded(low)}</text>'
        f'<text fill="currentColor" font-size="11" x="0" y="{height + 16}">{label}</text></svg>'
    )


def has_display() -> bool:
    """Whether this process is the kernel of a notebook."""
    if "ipykernel" not in sys.modules:
        return False
    shell = importlib.import_module("IPython").get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Show a bar that is updated in place; yield a function of the finished steps and a text."""
    ipython = importlib.import_module("IPython.display")
    shown = ipython.display(ipython.HTML(_progress(title, 0, total, "")), display_id=True)
    last = 0, ""
    updated = 0.0

    def update(done: int, text: str) -> None:
        nonlocal last, updated
        last = done, text
        if time.monotonic() - updated >= SECONDS_BETWEEN:
            updated = time.monotonic()
            shown.update(ipython.HTML(_progress(title, done, total, text)))

    try:
        yield update
    finally:
        shown.update(ipython.HTML(_progress(title, last[0], total, last[1])))


def _progress(title: str, done: int, total: int, text: str) -> str:
    return (
        f'<div style="white-space:nowrap">{escape(visible(title))} '
        f'<progress value="{done}" max="{total}" style="width:14em;vertical-align:middle">'
        f"</progress> {done} of {total} {escape(visible(text))}</div>"
    )
