"""Model files: safetensors with one metadata key and no pickle; see docs/guide/model_files.md.

`_save_and_load` has `save` and `load`. Saving turns a model into a description and tensors
(`_describe`), and these into bytes with a hash (`_safetensors`). Loading reverses both steps and
checks everything. `quadric.models` lists the classes that a file may name.

`Form`, `tensor_bytes`, `read_tensors` and `has_form` are for programs that store other named arrays
in such a hashed file, for example a checkpoint.

This package imports `models`, `network`, `core` and `utils`.
"""

from quadric.files._safetensors import (
    Form,
    has_key as has_form,
    info,
    read as read_tensors,
    to_bytes as tensor_bytes,
)
from quadric.files._save_and_load import hash_of as hash_of, load, save

__all__ = ["Form", "has_form", "info", "load", "read_tensors", "save", "tensor_bytes"]
