"""Certified radii of the rows of a table."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from quadric.apps.shell.tables._preprocessing import (
    check_inputs,
    features,
    labels,
    predictable_rows,
)
from quadric.apps.shell.tables._saved_model import TableNetwork
from quadric.apps.shell.tables._schema import Schema
from quadric.apps.shell.tables._source import Source
from quadric.apps.shell.tables._writing import write_batches
from quadric.certify import Radii, radius
from quadric.checks import Array
from quadric.errors import TableError
from quadric.utils import counted

RESULTS = ("radius", "distance", "becomes")  # columns that are written after the predictions


@dataclass(frozen=True)
class CertifiedTable:
    """The certified radii of a table.

    Attributes
    ----------
    radii : Radii
        The radii of the rows that have a prediction.
    numbers : array
        The numbers of these rows, counted from 1.
    count : int
        The number of rows of the table.
    truth : array or None
        The true classes of these rows, None where unknown; None if there are none at all.
    target : str
        The name of the column of predictions.
    """

    radii: Radii
    numbers: Array
    count: int
    truth: Array | None
    target: str

    @property
    def labeled(self) -> tuple[Radii, Array | None]:
        """The radii and classes of the rows whose class is known; all rows if none is."""
        if self.truth is None:
            return self.radii, None
        known = np.array([value is not None for value in self.truth])
        parts = ("distance", "radius", "nearest", "predicted", "becomes")
        some = replace(self.radii, **{name: getattr(self.radii, name)[known] for name in parts})
        return some, np.array(self.truth[known].tolist())

    def accuracy(self, at: Array) -> Array:
        """Return the certified accuracy at each radius, or the certified share without labels."""
        radii, y = self.labeled
        return radii.certified_accuracy(y, at)

    def write(self, path: Path | None, kept: pl.DataFrame, least: float, *, raw_csv: bool) -> None:
        """Write predictions and radii; a prediction with a smaller radius than `least` is empty.

        The `kept` columns, with one entry for each row of the table, come first.
        """
        if self.target in RESULTS:
            raise TableError(
                f"the target {self.target!r} has the same name as a column of results. Certify "
                "without -o."
            )
        if clash := [name for name in kept.columns if name in (self.target, *RESULTS)]:
            raise TableError(
                f"--keep {clash[0]!r} has the same name as a column of results. Rename it in the "
                "table."
            )
        radii = self.radii
        predicted = zip(radii.predicted.tolist(), radii.radius >= least, strict=True)
        results = {
            self.target: [label if is_sure else None for label, is_sure in predicted],
            "radius": radii.radius.tolist(),
            "distance": [None if np.isnan(d) else d for d in radii.distance.tolist()],
            "becomes": radii.becomes.tolist(),
        }
        frame = pl.DataFrame({"": self.numbers - 1, **results})  # no column has an empty name
        rows = pl.DataFrame({"": np.arange(self.count)})
        all_rows = rows.join(frame, on="", how="left", maintain_order="left").drop("")
        write_batches(path, [pl.concat([kept, all_rows], how="horizontal")], raw_csv=raw_csv)


def certify_table(
    model: Any,
    schema: Schema,
    source: Source,
    *,
    units: str = "inputs",
    fixed: Iterable[Any] = (),
    labeled: bool = True,
    progress: Callable[[float, float, str], object] | None = None,
) -> CertifiedTable:
    """Compute the certified radius of every row for which the model makes a prediction.

    Parameters
    ----------
    model : estimator
        A pipeline or a `TableNetwork`.
    schema : Schema
        The columns that the model uses.
    source : Source
        The table; see `open_table`.
    units, fixed, progress : str, sequence and callable
        As in `quadric.certify.radius`.
    labeled : bool
        Whether a column with the target's name contains the true classes.

    Returns
    -------
    CertifiedTable

    Raises
    ------
    TableError
        If the table cannot be read or lacks a column, or if the model cannot be certified.
    """
    if schema.task != "classification":
        raise TableError("certificates need a classifier, but this model predicts numbers.")
    check_inputs(schema, source.columns)
    frame = source.read()
    X = features(schema, frame)
    kept = predictable_rows(X, imputes=not isinstance(model, TableNetwork))
    if not kept.any():
        raise TableError(f"no row of {source.path} has a prediction, because values are missing.")
    truth = None
    if labeled and schema.target in source.columns:
        y, present = labels(schema, frame)
        truth = np.full(len(frame), None, dtype=object)
        truth[present] = y.tolist()
        truth = truth[kept] if present[kept].any() else None
    try:
        radii = radius(model, X.filter(kept), units=units, fixed=fixed, progress=progress)
    except (ValueError, TypeError) as error:
        raise TableError(" ".join(str(error).split())) from None
    numbers = 1 + np.flatnonzero(kept)
    return CertifiedTable(radii, numbers, len(frame), truth, schema.target)


def notes_of(certified: CertifiedTable) -> list[str]:
    """Return sentences about rows without a prediction and about radii that are lower bounds."""
    notes = []
    if missing := certified.count - len(certified.numbers):
        notes.append(f"Certified nothing for {counted(missing, 'row')} without a prediction.")
    if not certified.radii.exact:
        notes.append(
            "The network has several layers that do not fold to one. The radii are lower bounds, "
            "and there are no distances."
        )
    return notes
