"""The paper's results, one file each: `run` returns an Outcome (tables, claims, figures)."""

from quadric.paper.experiments import _ablation as ablation
from quadric.paper.experiments import _clusters as clusters
from quadric.paper.experiments import _complexity as complexity
from quadric.paper.experiments import _mnist as mnist
from quadric.paper.experiments import _theorem as theorem
from quadric.paper.experiments import _timing as timing
from quadric.paper.experiments import _xor as xor

__all__ = ["ablation", "clusters", "complexity", "mnist", "theorem", "timing", "xor"]
