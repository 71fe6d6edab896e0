"""Export models to ONNX, so that any ONNX runtime can run them without Python.

`export` writes a model as one ONNX graph. Importing the package also calls `register`, which
registers the estimators with skl2onnx. The package imports `network`, `estimators` and `models`,
and is the only one that imports onnx and skl2onnx. Start with `_export.py`.
"""

from importlib.util import find_spec

from quadric.utils import require

require("onnx", extra="onnx", by="quadric.onnx")

from quadric.onnx._export import export, register

__all__ = ["export", "register"]

if find_spec("skl2onnx") is not None:  # pragma: no branch
    register()
