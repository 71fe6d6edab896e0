"""The sections of the comparison: which module measures each, and with how many threads.

A module of a section has TITLE and NOTES, ``run(quick=...)``, which returns plain data, and either
UNIT and PER_SECOND, if the data are timings of contenders, or ``tables(found)`` and
``rival(found)``, a sentence about the strongest rival. A module with ``pieces()``, the names of
data sets, can be measured in pieces: ``run(quick=..., piece=...)`` returns the rows of one.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple


class Section(NamedTuple):
    """The module that measures a section, its number of threads, and an addition to its title.

    `minutes` is the time that a full run takes, and `quick` whether a quick run is worthwhile.
    """

    module: str
    minutes: float
    threads: int = 1
    addition: str = ""
    quick: bool = True

    @property
    def title(self) -> str:
        return self.load().TITLE + self.addition

    def load(self) -> Any:
        return importlib.import_module(f"benchmarks.compare.{self.module}")

    def pieces(self) -> list[str | None]:
        """The pieces in which the section can be measured; None stands for all of it."""
        module = self.load()
        return module.pieces() if hasattr(module, "pieces") else [None]


SECTIONS = {
    "sgd": Section("_sgd", 1),
    "layers": Section("_layers", 1),
    "layers-2-threads": Section("_layers", 1, threads=2, addition=", two threads"),
    "fits": Section("_fits", 6),
    "accuracy": Section("_accuracy", 32, quick=False),
    "certificates": Section("_certificates", 0.5),
    "deployment": Section("_deployment", 1),
    "growth": Section("_growth", 1, threads=2),
    "limits": Section("_limits", 1),
}
