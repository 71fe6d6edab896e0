"""Reproduction of the paper: experiments, sweeps of training runs, and the report.

The package may import every other package except `cli`. Start with `experiments`, which has one
file per result. `sweep` performs and stores the many runs behind the MNIST table, and `report`
writes the HTML page.
"""
