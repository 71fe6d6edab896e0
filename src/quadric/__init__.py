"""Neural networks of quadratic neurons, which compute g(x'Qx + w'x + b) instead of g(w'x + b).

Start with `QuadraticClassifier` for the scikit-learn interface, `Network` for the plain NumPy
one, or `quadric.torch` for PyTorch modules.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadric.config import get_config, set_config
    from quadric.convert import separate
    from quadric.core import Linear, Quadratic, Reduced
    from quadric.errors import DivergenceError, ModelFileError
    from quadric.estimators import (
        QuadraticClassifier,
        QuadraticLogisticRegression,
        QuadraticRegressor,
    )
    from quadric.files import load, save
    from quadric.network import Network

__version__ = "0.1.0"

# Names are imported on first use (PEP 562), so that `import quadric` is fast.
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
    "get_config": "quadric.config",
    "load": "quadric.files",
    "save": "quadric.files",
    "separate": "quadric.convert",
    "set_config": "quadric.config",
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
    "__version__",
    "get_config",
    "load",
    "save",
    "separate",
    "set_config",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'quadric' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
