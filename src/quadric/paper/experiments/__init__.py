"""The paper's results, one file each. `EXPERIMENTS` lists them by name.

An experiment has a function `run`, which takes a `Context` and returns an `Outcome`: tables, claims
with a verdict, and figures. Start with `_experiment.py`, which defines these three.
"""

from quadric.paper.experiments import _ablation as ablation
from quadric.paper.experiments import _clusters as clusters
from quadric.paper.experiments import _complexity as complexity
from quadric.paper.experiments import _mnist as mnist
from quadric.paper.experiments import _theorem as theorem
from quadric.paper.experiments import _timing as timing
from quadric.paper.experiments import _xor as xor
from quadric.paper.experiments._experiment import Context, Experiment, Outcome

EXPERIMENTS = {
    "xor": Experiment(xor.run, lambda context: 2),
    "clusters": Experiment(clusters.run, lambda context: 180 if context.full else 20),
    "mnist": Experiment(mnist.run, mnist.estimate, needs_images=True, needs_store=True),
    "timing": Experiment(timing.run, lambda context: 8, needs_images=True),
    "complexity": Experiment(complexity.run, lambda context: 6 if context.full else 2),
    "theorem": Experiment(theorem.run, lambda context: 50 if context.full else 8),
    "ablation": Experiment(ablation.run, lambda context: 20 if context.full else 4),
}

__all__ = ["EXPERIMENTS", "Context", "Experiment", "Outcome"]
