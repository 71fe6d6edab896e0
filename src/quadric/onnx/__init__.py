"""Models as ONNX graphs, to be run without Python: `export`, and `register` for skl2onnx."""

from importlib.util import find_spec

from quadric._utils.extras import require

require("onnx", extra="onnx", by="quadric.onnx")

from quadric.onnx._export import export
from quadric.onnx._skl2onnx import register

__all__ = ["export", "register"]

if find_spec("skl2onnx") is not None:  # pragma: no branch
    register()
