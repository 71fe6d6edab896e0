"""Quadric surfaces {x : x'Qx + w'x + b = 0}: named, measured, written down, cut and moved."""

from quadric.geometry.quadric import Axes, Quadric

__all__ = ["Axes", "Quadric"]
