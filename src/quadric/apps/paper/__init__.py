"""Reproduction of the paper: claims, experiments, studies, sweeps of training runs, and the report.

The package may import every other package except `cli`. Start with `experiments`, which has one
file per result; `studies` tests claims that the paper does not test, and `bilinear` reproduces
another publication. `claims` lists the paper's statements. `sweep` performs and stores the many
runs behind the MNIST table and the studies, and `report` writes the HTML page.
"""

from quadric.apps.paper.bilinear import BILINEAR as BILINEAR
from quadric.apps.paper.claims import Verdict as Verdict, statements as statements
from quadric.apps.paper.experiments import (
    EXPERIMENTS as EXPERIMENTS,
    Context as Context,
    Experiment as Experiment,
    Outcome as Outcome,
)
from quadric.apps.paper.experiments._experiment import Table as Table
from quadric.apps.paper.experiments._network_cost import cost as cost
from quadric.apps.paper.report import about_this_run as about_this_run, write_report as write_report
from quadric.apps.paper.studies import STUDIES as STUDIES
from quadric.apps.paper.sweep import RECIPES as RECIPES, Recipe as Recipe, Store as Store
