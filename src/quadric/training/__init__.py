"""Training of layers on arrays. All other packages train through `train`.

`train` runs epochs with one of two steppers, `PerSample` (the compiled loop) or `MiniBatch` (the
equations of the layers), or minimizes the objective with L-BFGS. `_divergence` decides when an
epoch is undone. `_run` holds the data of a run, including `Options` and `TrainingState`, and
`_memory_needs` estimates how much memory it needs.
"""

from quadric.training._blocks import (
    BLOCK_ROWS as BLOCK_ROWS,
    Block as Block,
    BlockSamples as BlockSamples,
    Encoding as Encoding,
    Node as Node,
    Total as Total,
    divide as divide,
    nodes_of as nodes_of,
    total_of as total_of,
)
from quadric.training._lbfgs import Descent as Descent
from quadric.training._memory_needs import (
    Architecture,
    check_answers,
    check_backward,
    check_creation,
    check_fit,
    check_training,
    converted_bytes,
    matrix_bytes,
)
from quadric.training._run import Epoch, History, Options, Samples, TrainingState
from quadric.training._train import train

__all__ = [
    "Architecture",
    "Epoch",
    "History",
    "Options",
    "Samples",
    "TrainingState",
    "check_answers",
    "check_backward",
    "check_creation",
    "check_fit",
    "check_training",
    "converted_bytes",
    "matrix_bytes",
    "train",
]
