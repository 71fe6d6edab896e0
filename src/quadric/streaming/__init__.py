"""Training on tables larger than memory, killed and resumed at any moment."""

from quadric.streaming.run import Stream, train_stream

__all__ = ["Stream", "train_stream"]
