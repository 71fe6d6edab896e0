"""The sections of the comparison: which module measures each, and with how many threads.

A module of a section has TITLE and NOTES, ``run(quick=...)``, which returns plain data, and either
UNIT and PER_SECOND, if the data are timings of contenders, or ``tables(found)``.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple


class Section(NamedTuple):
    """The module that measures a section, its number of threads, and an addition to its title."""

    module: str
    threads: int = 1
    addition: str = ""

    @property
    def title(self) -> str:
        return self.load().TITLE + self.addition

    def load(self) -> Any:
        return importlib.import_module(f"benchmarks.compare.{self.module}")


SECTIONS = {
    "sgd": Section("_sgd"),
    "layers": Section("_layers"),
    "layers-2-threads": Section("_layers", threads=2, addition=", two threads"),
    "fits": Section("_fits"),
    "accuracy": Section("_accuracy"),
    "certificates": Section("_certificates"),
    "deployment": Section("_deployment"),
    "growth": Section("_growth", threads=2),
    "limits": Section("_limits"),
}
