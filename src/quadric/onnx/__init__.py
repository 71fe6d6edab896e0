"""Models as ONNX graphs, to be run without Python: `export`, and `register` for skl2onnx."""

from importlib.util import find_spec

if find_spec("onnx") is None:
    raise ImportError('ONNX graphs need the package onnx: pip install "quadric[onnx]"')

from quadric.onnx._exporting import export
from quadric.onnx._registration import register

__all__ = ["export", "register"]

if find_spec("skl2onnx") is not None:  # pragma: no branch
    register()
