"""Model files: safetensors with one key of metadata, no pickle; see docs/model_files.md."""

from quadric.model_file._save_and_load import info, load, save

__all__ = ["info", "load", "save"]
