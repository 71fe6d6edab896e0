"""Reproduction of the paper: experiments, sweeps of training runs, and the report."""
