"""The figures of the comparison for the site."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.compare._accuracy_tables import Scores
from benchmarks.compare._ranks import Ranking
from benchmarks.compare._result import OURS, Case, from_json
from quadric.plotting._style import COLORS, color_of, marker_of

SETTINGS = {"svg.hashsalt": "quadric", "svg.fonttype": "path", "font.size": 9}


def ratios(cases: Sequence[Case], title: str) -> Figure:
    """Draw the times relative to quadric; of cases and contenders, the longer list has the rows."""
    names = [t.contender for case in cases for t in case.timings if t.contender != OURS]
    found = {(t.contender, case.name): t.ratio for case in cases for t in case.timings}
    rows, marks = list(dict.fromkeys(names)), [case.name for case in cases]
    if len(marks) > len(rows):
        rows, marks = marks, rows
        found = {(case, contender): ratio for (contender, case), ratio in found.items()}
    figure = Figure(figsize=(8, 1.3 + 0.26 * len(rows)), layout="constrained")
    ax = figure.add_subplot()
    for k, mark in enumerate(marks):
        places = [i for i, row in enumerate(rows) if (row, mark) in found]
        values = [found[rows[i], mark] for i in places]
        ax.plot(values, places, marker_of(k), color=color_of(k), label=mark)
    ax.axvline(1, color="#222222", linewidth=1)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    ax.xaxis.set_minor_formatter("")
    ax.set_xlabel("time relative to quadric; to the right of the line, quadric is faster")
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(axis="x", alpha=0.3)
    ax.set_title(title, loc="left")
    figure.legend(loc="outside lower left", ncols=4, frameon=False)
    return figure


def critical_difference(ranking: Ranking) -> Figure:
    """Mean ranks on a line; a bar joins models that do not differ by Nemenyi's test."""
    order = np.argsort(ranking.mean_ranks)
    count, groups = len(order), ranking.groups()
    half = (count + 1) // 2
    figure = Figure(figsize=(8, 1.4 + 0.24 * half + 0.12 * len(groups)), layout="constrained")
    ax = figure.add_subplot()
    top = 0.5 + 0.5 * len(groups)
    for place, model in enumerate(order):
        rank, left = ranking.mean_ranks[model], place < half
        height = -(place if left else count - 1 - place) - 1.0
        end = 0.6 if left else count + 0.4
        color = COLORS[0] if ranking.models[model].startswith(OURS) else "#222222"
        ax.plot([rank, rank, end], [top, height, height], color=color, linewidth=1)
        text = f"{ranking.models[model]}  {rank:.2f}"
        if not left:
            text = f"{rank:.2f}  {ranking.models[model]}"
        ax.text(end, height, f" {text} ", ha="right" if left else "left", va="center", color=color)
    for level, (first, last) in enumerate(groups):
        low, high = ranking.mean_ranks[order[first]], ranking.mean_ranks[order[last]]
        height = top - 0.4 - 0.5 * level
        ax.plot([low - 0.05, high + 0.05], [height] * 2, color=COLORS[1], linewidth=3)
    ax.plot([1, count], [top] * 2, color="#222222", linewidth=1)
    for rank in range(1, count + 1):
        ax.plot([rank] * 2, [top, top + 0.25], color="#222222", linewidth=1)
        ax.text(rank, top + 0.4, str(rank), ha="center", va="bottom")
    width = ranking.critical_difference
    ax.plot([1, 1 + width], [top + 2.0] * 2, color=COLORS[1], linewidth=3)
    ax.text(1 + width / 2, top + 2.2, "critical difference", ha="center", va="bottom")
    ax.set_xlim(-6.5, count + 7.5)
    ax.axis("off")
    return figure


def cost(scores: Scores) -> Figure:
    """The mean rank of each model against the median time of a fit."""
    ranking = scores.ranking("accuracy", best=1)
    order = np.argsort(ranking.mean_ranks)
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    ax = figure.add_subplot()
    sets = scores.complete_sets()
    seconds = np.nanmedian(scores.matrix("fit_seconds", ranking.models, sets), axis=0)
    ranks = ranking.mean_ranks[order]
    labels = np.linspace(ranks[0], ranks[-1], len(order))  # so that they do not overlap
    for model, label in zip(order, labels, strict=True):
        name, rank = ranking.models[model], ranking.mean_ranks[model]
        color = COLORS[0] if name.startswith(OURS) else COLORS[1]
        ax.plot(seconds[model], rank, "o" if name.startswith(OURS) else "s", color=color)
        ax.annotate(
            name,
            (seconds[model], rank),
            xytext=(1.02, label),
            textcoords=ax.get_yaxis_transform(),
            va="center",
            fontsize=8,
            color=color,
            arrowprops={"arrowstyle": "-", "color": color, "alpha": 0.35, "linewidth": 0.7},
        )
    ax.set_xscale("log")
    ax.invert_yaxis()
    ax.set_xlabel(f"median {scores.clock}time of a fit, s (logarithmic)")
    ax.set_ylabel("mean rank by accuracy (up is better)")
    ax.grid(alpha=0.3)
    return figure


def growth(found: dict[str, Any]) -> Figure:
    """Time against each size, on logarithmic axes, with a line of the slope in theory."""
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    for ax, series in zip(axes, found["series"], strict=True):
        x = np.array([point["value"] for point in series["points"]], float)
        y = np.array([1e3 * point["seconds"] for point in series["points"]])
        slope = series["theory"]["time"]
        ax.plot(x, y[-1] * (x / x[-1]) ** slope, "--", color="#888888", label=f"slope {slope}")
        ax.plot(x, y, "o-", color=COLORS[0], markersize=4)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_title(series["name"], fontsize=8)
        ax.set_ylabel("ms", fontsize=8)
        ax.legend(frameon=False, fontsize=7)
        ax.grid(alpha=0.3)
    return figure


def draw(found: dict[str, Any], directory: Path) -> list[Path]:
    """Write the figures of the sections as SVG, and return their paths."""
    makers: dict[str, dict[str, Callable[[], Figure]]] = {
        "sgd": {
            "sgd": lambda: ratios(from_json(found["sgd"]["cases"]), "One step of per-sample SGD")
        },
        "layers": {
            "layers": lambda: ratios(
                from_json(found["layers"]["cases"]),
                "Quadratic layers (B, n, m), forward and backward, one thread",
            )
        },
        "accuracy": {
            "ranks": lambda: critical_difference(
                Scores(found["accuracy"]).ranking("accuracy", best=1)
            ),
            "cost": lambda: cost(Scores(found["accuracy"])),
        },
        "growth": {"growth": lambda: growth(found["growth"])},
    }
    paths = []
    with mpl.rc_context(SETTINGS):
        for section in filter(found.__contains__, makers):
            for name, make in makers[section].items():
                paths.append(directory / f"comparison_{name}.svg")
                make().savefig(paths[-1], metadata={"Date": None})
    return paths
