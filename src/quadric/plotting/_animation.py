"""A boundary while it learns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.figure import Figure

from quadric._utils.arrays import unmasked
from quadric.geometry import Quadric
from quadric.geometry._conic_arcs import Window
from quadric.plotting._conics import plot_conic
from quadric.plotting._regions import plot_points
from quadric.plotting._style import BOUNDARY, color_of, dashes_of, window_of


def animate(
    frames: Sequence[Sequence[Quadric]],
    X: Any,
    y: Any,
    *,
    window: Window | None = None,
    titles: Sequence[str] | None = None,
    interval: int = 80,
) -> FuncAnimation:
    """An animation of the neurons' boundaries, one frame for each moment of training.

    Parameters
    ----------
    frames : sequence of lists of Quadric
        The neurons at each moment.
    X : array of shape (n_samples, 2)
    y : array of shape (n_samples,)
    window : (x from, x to, y from, y to), optional
    titles : sequence of str, optional
        One for each frame; the default counts the epochs.
    interval : int
        Milliseconds from one frame to the next.

    Examples
    --------
    Collect the neurons after every epoch, then ``animation.save("learning.gif")``:

    >>> from quadric import Network, datasets
    >>> from quadric.explain import quadrics
    >>> X, y = datasets.xor()
    >>> net = Network.create(2, [("quadratic", 1, "logistic")], rng=0)
    >>> frames = []
    >>> history = net.fit(X, y, epochs=5, callback=lambda epoch: frames.append(quadrics(net)))
    >>> len(frames)
    5
    """
    frames = [list(frame) for frame in frames]
    if not frames or not all(frames):
        raise ValueError("frames must hold at least one moment, each with at least one quadric.")
    if titles is not None and len(titles) != len(frames):
        raise ValueError(f"titles must hold {len(frames)}, one a frame. Got {len(titles)}.")
    X = np.asarray(unmasked("X", X), dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have shape (n_samples, 2). Got {X.shape} instead.")
    window = window_of(X, 0.35) if window is None else window
    figure = Figure(figsize=(4, 4), layout="constrained", dpi=90)
    ax = figure.subplots()
    several = max(map(len, frames)) > 1

    def draw(index: int) -> list[Any]:
        ax.clear()
        plot_points(X, y, ax, size=30)
        for k, conic in enumerate(frames[index]):
            color = color_of(k) if several else BOUNDARY
            plot_conic(conic, ax, window=window, color=color, linestyle=dashes_of(k))
        ax.set_aspect("equal")
        kind = "" if several else f": {frames[index][0].kind}"
        ax.set_title(titles[index] if titles is not None else f"epoch {index + 1}{kind}")
        return list(ax.lines)

    return FuncAnimation(figure, draw, frames=len(frames), interval=interval)
