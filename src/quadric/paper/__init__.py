"""Reproduction of the paper: claims, experiments, studies, sweeps of training runs, and the report.

The package may import every other package except `cli`. Start with `experiments`, which has one
file per result; `studies` tests claims that the paper does not test, and `bilinear` reproduces
another publication. `claims` lists the paper's statements. `sweep` performs and stores the many
runs behind the MNIST table and the studies, and `report` writes the HTML page.
"""
