"""Model files: safetensors with one metadata key and no pickle; see docs/model_files.md.

`_save_and_load` has the public functions. Saving turns a model into a description and tensors
(`_describe`), and these into bytes with a hash (`_safetensors`). Loading reverses both steps and
checks everything. `quadric.models` lists the classes that a file may name.

This package imports `models`, `network`, `core` and `utils`.
"""

from quadric.files._canonical_json import canonical as canonical, parse as parse
from quadric.files._save_and_load import info, load, save

__all__ = ["info", "load", "save"]
