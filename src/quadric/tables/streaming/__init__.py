"""Training on tables larger than memory, killed and resumed at any moment."""

from quadric.tables.streaming._checkpoint import Checkpoint, checkpoint_path
from quadric.tables.streaming._passes import Stream, train_stream

__all__ = ["Checkpoint", "Stream", "checkpoint_path", "train_stream"]
