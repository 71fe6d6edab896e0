"""The paper's results, one file each: `run` returns an Outcome (tables, claims, figures)."""

from quadric.experiments import ablation, clusters, complexity, mnist, theorem, timing, xor

__all__ = ["ablation", "clusters", "complexity", "mnist", "theorem", "timing", "xor"]
