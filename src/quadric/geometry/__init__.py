"""Quadric surfaces {x : x'Qx + w'x + b = 0}: named, measured, written down, cut and moved."""

from quadric.geometry._quadric import Axes, Quadric

__all__ = ["Axes", "Quadric"]
