"""What a run was made on: the processor and the versions that may matter."""

import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

import quadric


@dataclass(frozen=True)
class Environment:
    """The processor's name and versions; stored beside a run, no part of its key."""

    cpu: str
    quadric: str
    numpy: str
    numba: str
    python: str


@cache
def environment() -> Environment:
    """The environment of this process."""
    return Environment(
        cpu=_cpu(),
        quadric=quadric.__version__,
        numpy=np.__version__,
        numba=version("numba"),  # asked of the installation: numba itself is slow to import
        python=platform.python_version(),
    )


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine() or "unknown"
