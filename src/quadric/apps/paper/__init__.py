"""Reproduction of the paper: experiments, studies, claims and the report.

The names below are imported when they are first used. `EXPERIMENTS`, `STUDIES` and `BILINEAR` list
what can be run (`_experiment.py`). There is one file for each experiment, such as `_xor.py`, and
for each study of a claim that the paper does not test. All have the same form (`_experiment.py`);
`_bilinear.py` is a study that reproduces another publication. `_claims.py` lists the statements
of the paper, `_report.py` writes the page, and the package `sweep` performs and stores the many
runs behind the MNIST table and the studies.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadric.apps.paper._claims import Statement, judge, statements
    from quadric.apps.paper._cost import cost
    from quadric.apps.paper._experiment import (
        BILINEAR,
        EXPERIMENTS,
        STUDIES,
        Context,
        Experiment,
        Outcome,
        Table,
        Verdict,
    )
    from quadric.apps.paper._mnist import parse_row
    from quadric.apps.paper._report import about_this_run, write_report
    from quadric.apps.paper.sweep import RECIPES, Recipe, Store

_HOMES = {
    "BILINEAR": "_experiment",
    "EXPERIMENTS": "_experiment",
    "RECIPES": "sweep",
    "STUDIES": "_experiment",
    "Context": "_experiment",
    "Experiment": "_experiment",
    "Outcome": "_experiment",
    "Recipe": "sweep",
    "Statement": "_claims",
    "Store": "sweep",
    "Table": "_experiment",
    "Verdict": "_experiment",
    "about_this_run": "_report",
    "cost": "_cost",
    "judge": "_claims",
    "parse_row": "_mnist",
    "statements": "_claims",
    "write_report": "_report",
}

__all__ = [
    "BILINEAR",
    "EXPERIMENTS",
    "RECIPES",
    "STUDIES",
    "Context",
    "Experiment",
    "Outcome",
    "Recipe",
    "Statement",
    "Store",
    "Table",
    "Verdict",
    "about_this_run",
    "cost",
    "judge",
    "parse_row",
    "statements",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
