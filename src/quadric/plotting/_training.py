"""Plots of training: curves of loss and validation score, and animated boundaries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadric.geometry import Quadric, Window
from quadric.plotting._quadrics import plot_conic
from quadric.plotting._style import (
    BOUNDARY,
    color_of,
    dashes_of,
    get_ax,
    get_window,
    plot_points,
    points_of,
)


def plot_history(history: Any, ax: Axes | None = None, *, label: str = "loss") -> Axes:
    """Draw the loss of each epoch and, on a second axis, the validation score if there is one.

    Parameters
    ----------
    history : History, or fitted estimator with `loss_curve_`
        The record of training.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, new axes are created.
    label : str
        Name of the loss.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    of_network = isinstance(getattr(history, "loss", None), list)
    names = ("loss", "validation_score") if of_network else ("loss_curve_", "validation_scores_")
    loss, score = (getattr(history, name, None) for name in names)
    if not loss:
        raise ValueError(
            "history must be the result of Network.fit or a fitted estimator, with at least one "
            f"epoch. Got {type(history).__name__}."
        )
    ax = get_ax(ax)
    epochs = np.arange(1, max(len(loss), len(score or ())) + 1)
    lines = ax.plot(epochs[: len(loss)], loss, color=color_of(0), linewidth=1.8, label=label)
    ax.set(xlabel="epoch", ylabel=label)
    values = np.asarray(loss)
    if (values > 0).all() and values.max() > 20 * values.min():
        ax.set_yscale("log")
    if score:
        other = ax.twinx()
        name = "validation score"
        lines += other.plot(
            epochs[: len(score)], score, "--", color=color_of(1), linewidth=1.8, label=name
        )
        other.set_ylabel(name)
        ax.legend(handles=lines, frameon=False, loc="center right")
    return ax


def animate(
    frames: Sequence[Sequence[Quadric]],
    X: Any,
    y: Any,
    *,
    window: Window | None = None,
    titles: Sequence[str] | None = None,
    interval: int = 80,
) -> FuncAnimation:
    """Animate the boundaries of neurons during training.

    Parameters
    ----------
    frames : sequence of lists of Quadric
        Boundaries of the neurons, one list per frame.
    X : array of shape (n_samples, 2)
        Points.
    y : array of shape (n_samples,)
        Class of each point.
    window : tuple (left, right, bottom, top), optional
        Part of the plane to draw. By default, it surrounds X.
    titles : sequence of str, optional
        Titles of the frames. By default, they count the epochs.
    interval : int
        Milliseconds between two frames.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        The animation.

    Examples
    --------
    Collect the boundaries after every epoch. To save the animation, call
    ``animation.save("learning.gif")``.

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
        raise ValueError("frames must hold at least one list, each with at least one quadric.")
    if titles is not None and len(titles) != len(frames):
        raise ValueError(
            f"titles must hold {len(frames)} titles, one per frame. Got {len(titles)}."
        )
    X = points_of(X, 2)
    window = get_window(window, X, 0.35)
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
