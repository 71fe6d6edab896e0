"""The paper's results, one per file. `EXPERIMENTS` lists them by name.

An experiment has a function `run`, which takes a `Context` and returns an `Outcome`: tables, claims
with verdicts, and figures. Start with `_experiment.py`, which defines these classes.
"""

from quadric.apps.paper.experiments import (
    _ablation,
    _clusters,
    _complexity,
    _mnist,
    _theorem,
    _timing,
    _xor,
)
from quadric.apps.paper.experiments._experiment import Context, Experiment, Outcome

EXPERIMENTS = {
    "xor": Experiment(_xor.run, lambda context: 2),
    "clusters": Experiment(_clusters.run, lambda context: 230 if context.full else 20),
    "mnist": Experiment(_mnist.run, _mnist.estimate, needs_images=True, needs_store=True),
    "timing": Experiment(_timing.run, lambda context: 8, needs_images=True),
    "complexity": Experiment(_complexity.run, lambda context: 8 if context.full else 3),
    "theorem": Experiment(_theorem.run, lambda context: 50 if context.full else 8),
    "ablation": Experiment(
        _ablation.run, lambda context: 180 if context.full else 10, needs_images=True
    ),
}

__all__ = ["EXPERIMENTS", "Context", "Experiment", "Outcome"]
