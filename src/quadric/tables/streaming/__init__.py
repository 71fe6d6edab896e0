"""Training on tables larger than memory, with checkpoints that a killed run resumes from.

Start with `_passes.train_stream`: three passes over the file, made of buffers of rows.
"""

from quadric.tables.streaming._checkpoint import Checkpoint, checkpoint_path
from quadric.tables.streaming._passes import Stream, train_stream

__all__ = ["Checkpoint", "Stream", "checkpoint_path", "train_stream"]
