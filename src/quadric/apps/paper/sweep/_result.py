"""The result of a run, and the environment in which it ran."""

import platform
import re
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

import quadric
from quadric.network import Network


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Attributes
    ----------
    accuracies : tuple of float
        Numbers from 0 to 1: the test accuracy after each of the recipe's epochs, or one number for
        each of a study's measures.
    seconds : float
        Training time. For a recipe, it excludes tests and compilation.
    steps : int
        Number of training samples visited.
    model : Network or None
        The trained network, for studies that return it. It is not part of the stored run.
    """

    accuracies: tuple[float, ...]
    seconds: float
    steps: int
    model: Network | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Environment:
    """Processor name and versions, stored with each run but not part of its key."""

    cpu: str
    quadric: str
    numpy: str
    numba: str
    python: str


@cache
def environment() -> Environment:
    """Return the environment of this process."""
    linux = Path("/proc/cpuinfo")
    listed = linux.read_text(encoding="utf-8") if linux.exists() else ""
    found = re.search(r"^model name\s*:(.*)$", listed, re.M)
    return Environment(
        cpu=found[1].strip() if found else platform.processor() or platform.machine() or "unknown",
        quadric=quadric.__version__,
        numpy=np.__version__,
        numba=version("numba"),  # from the metadata: numba is slow to import
        python=platform.python_version(),
    )
