"""Training on tables larger than memory, with checkpoints from which a killed run can resume.

Start with `_passes.train_stream`, which makes three passes over the file in buffers of rows.
"""

from quadric.apps.shell.tables._options import Stream
from quadric.apps.shell.tables.streaming._checkpoint import Checkpoint, checkpoint_path
from quadric.apps.shell.tables.streaming._passes import train_stream

__all__ = ["Checkpoint", "Stream", "checkpoint_path", "train_stream"]
