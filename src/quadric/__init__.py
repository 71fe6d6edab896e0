"""Neural networks of quadratic neurons, which compute g(x'Qx + w'x + b) instead of g(w'x + b).

Start with `QuadraticClassifier` for the scikit-learn interface, `Network` for the plain NumPy
one, or `quadric.torch` for PyTorch modules.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadric import (
        certify as certify,
        cluster as cluster,
        codegen as codegen,
        config as config,
        convert as convert,
        core as core,
        datasets as datasets,
        errors as errors,
        estimators as estimators,
        explain as explain,
        files as files,
        geometry as geometry,
        lasso as lasso,
        models as models,
        network as network,
        onnx as onnx,
        plotting as plotting,
        reference as reference,
        torch as torch,
        training as training,
    )
    from quadric.config import get_config, set_config
    from quadric.convert import separate
    from quadric.core import Linear, Quadratic, Reduced
    from quadric.errors import DivergenceError, ModelFileError
    from quadric.estimators import (
        QuadraticClassifier,
        QuadraticLogisticRegression,
        QuadraticRegressor,
        SparseQuadraticClassifier,
        SparseQuadraticRegressor,
        with_scaling,
    )
    from quadric.files import load, save
    from quadric.network import Network

__version__ = "0.1.0"

# Modules and names are imported on first use (PEP 562), so that `import quadric` is fast.
_HOMES = {
    "DivergenceError": "quadric.errors",
    "Linear": "quadric.core",
    "ModelFileError": "quadric.errors",
    "Network": "quadric.network",
    "Quadratic": "quadric.core",
    "QuadraticClassifier": "quadric.estimators",
    "QuadraticLogisticRegression": "quadric.estimators",
    "QuadraticRegressor": "quadric.estimators",
    "Reduced": "quadric.core",
    "SparseQuadraticClassifier": "quadric.estimators",
    "SparseQuadraticRegressor": "quadric.estimators",
    "get_config": "quadric.config",
    "load": "quadric.files",
    "save": "quadric.files",
    "separate": "quadric.convert",
    "set_config": "quadric.config",
    "with_scaling": "quadric.estimators",
}

__all__ = [
    "DivergenceError",
    "Linear",
    "ModelFileError",
    "Network",
    "Quadratic",
    "QuadraticClassifier",
    "QuadraticLogisticRegression",
    "QuadraticRegressor",
    "Reduced",
    "SparseQuadraticClassifier",
    "SparseQuadraticRegressor",
    "__version__",
    "get_config",
    "load",
    "save",
    "separate",
    "set_config",
    "with_scaling",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value  # so that this function is called only once for each name
        return value
    if name in _modules():
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ImportError as error:  # a missing extra: `hasattr` and completion expect this type
            raise AttributeError(str(error)) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _modules() -> list[str]:
    """List the modules of the package that users may import."""
    return [info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")]


def __dir__() -> list[str]:
    return sorted((*__all__, *_modules()))
