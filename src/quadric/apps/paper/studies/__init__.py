"""Claims that the paper does not test itself, one study per file. `STUDIES` lists them by name.

A study is an experiment (`quadric.apps.paper.experiments`) with many runs of its own. The runs are
stored and resumed like those of the MNIST table. Start with `_runs.py`, which runs and summarizes
them. Only `_convolutional.py`, `_sequences.py` and `_reproducible.py` import torch.
"""

from quadric.apps.paper.experiments import Experiment
from quadric.apps.paper.studies import _cnn_head, _fewer_layers, _recurrent, _wide_layers

# Those that need torch come last, so that the others run without it.
STUDIES = {
    "wide-layers": Experiment(
        _wide_layers.run, _wide_layers.estimate, needs_images=True, needs_store=True
    ),
    "fewer-layers": Experiment(
        _fewer_layers.run, _fewer_layers.estimate, needs_images=True, needs_store=True
    ),
    "cnn-head": Experiment(_cnn_head.run, _cnn_head.estimate, needs_images=True, needs_store=True),
    "recurrent": Experiment(_recurrent.run, _recurrent.estimate, needs_store=True),
}

__all__ = ["STUDIES"]
