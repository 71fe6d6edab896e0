"""Certified radii of a table, and the probabilities that noise changes its classes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from quadric.apps.shell.tables._options import applying, refuse
from quadric.apps.shell.tables._prediction import write_batches
from quadric.apps.shell.tables._saved_model import OpenedModel, TableNetwork
from quadric.apps.shell.tables._schema import (
    check_inputs,
    features,
    labels,
    predictable_rows,
)
from quadric.checks import Array
from quadric.errors import TableError
from quadric.utils import counted

if TYPE_CHECKING:
    from quadric.certify import FlipProbabilities, Radii

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)  # quantiles of the radii that the summary shows
# columns that are written after the predictions
RESULTS = ("radius", "distance", "becomes", "flip_probability", "flip_error")


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
    known : array of bool
        Which of these rows have a known class.
    truth : array
        The true classes of the rows with a known class.
    target : str
        The name of the column of predictions.
    flips : FlipProbabilities or None
        The probabilities that noise changes the predicted classes.
    """

    radii: "Radii"
    numbers: Array
    count: int
    known: Array
    truth: Array
    target: str
    flips: "FlipProbabilities | None" = None

    @property
    def labeled(self) -> "tuple[Radii, Array | None]":
        """The radii and classes of the rows whose class is known; all rows if none is."""
        if not self.known.any():
            return self.radii, None
        some = {
            name: getattr(self.radii, name)[self.known]
            for name in ("distance", "radius", "nearest", "predicted", "becomes")
        }
        return replace(self.radii, **some), self.truth

    def write(self, path: Path | None, kept: pl.DataFrame, least: float, *, raw_csv: bool) -> None:
        """Write predictions and radii; a prediction with a smaller radius than `least` is empty.

        The `kept` columns, with one entry for each row of the table, come first.
        """
        refuse(
            {
                f"the target {self.target!r} has the same name as a column of results. Certify "
                "without -o.": self.target in RESULTS,
                **{
                    f"--keep {name!r} has the same name as a column of results. Rename it in the "
                    "table.": name in (self.target, *RESULTS)
                    for name in kept.columns
                },
            }
        )
        radii = self.radii
        predicted = zip(radii.predicted.tolist(), radii.radius >= least, strict=True)
        results = {
            "": self.numbers - 1,  # no column has an empty name
            self.target: [label if is_sure else None for label, is_sure in predicted],
            "radius": radii.radius.tolist(),
            "distance": [None if np.isnan(d) else d for d in radii.distance.tolist()],
            "becomes": radii.becomes.tolist(),
        }
        if self.flips is not None:
            results["flip_probability"] = self.flips.probability.tolist()
            results["flip_error"] = self.flips.error.tolist()
        every = pl.DataFrame({"": np.arange(self.count)})
        rows = every.join(pl.DataFrame(results), on="", how="left", maintain_order="left")
        write_batches(path, [pl.concat([kept, rows.drop("")], how="horizontal")], raw_csv=raw_csv)

    def summary(self, least: float, fragile: int) -> dict[str, Any]:
        """Return the certified accuracy, the rows with at least this radius, and the most fragile.

        The radius of a row is infinite if its class cannot change; such rows are not fragile.
        """
        radii = self.radii
        finite = radii.radius[np.isfinite(radii.radius)]
        quantiles = np.quantile(finite, SHARES) if len(finite) else np.empty(0)
        at = np.unique([0.0, *(float(f"{quantile:.3g}") for quantile in quantiles)])
        known, y = self.labeled
        right = None if y is None else known.predicted == y
        confident = known.radius >= least
        order = np.argsort(radii.radius, kind="stable")[: min(fragile, len(finite))]
        return {
            "rows": len(radii.radius),
            "exact": radii.exact,
            "median_radius": float(np.median(radii.radius)),
            "certified_accuracy" if y is not None else "certified_share": [
                {"radius": float(radius), "share": float(share)}
                for radius, share in zip(at, known.certified_accuracy(y, at), strict=True)
            ],
            "min_radius": least,
            "answered": int((radii.radius >= least).sum()),
            "accuracy_of_answered": None
            if right is None or not confident.any()
            else float(right[confident].mean()),
            "fragile": [
                {
                    "row": int(self.numbers[i]),
                    "predicted": radii.predicted[i].item(),
                    "becomes": radii.becomes[i].item() if radii.exact else None,
                    "radius": float(radii.radius[i]),
                }
                for i in order
            ],
            **({} if self.flips is None else self._noise_summary(fragile)),
        }

    def _noise_summary(self, fragile: int) -> dict[str, Any]:
        """Return the mean probability of a change by noise, and the rows with the largest ones."""
        flips = self.flips
        assert flips is not None
        order = np.argsort(-flips.probability, kind="stable")[:fragile]
        return {
            "mean_flip_probability": float(flips.probability.mean()),
            "largest_flip_error": float(flips.error.max()),
            "noisy": [
                {
                    "row": int(self.numbers[i]),
                    "predicted": flips.predicted[i].item(),
                    "becomes": flips.likely[i].item(),
                    "probability": float(flips.probability[i]),
                    "error": float(flips.error[i]),
                }
                for i in order
            ],
        }

    def notes(self) -> list[str]:
        """Return sentences about rows without a prediction and radii that are lower bounds."""
        missing = self.count - len(self.numbers)
        return applying(
            {
                f"Certified nothing for {counted(missing, 'row')} without a prediction.": missing,
                "The network has several layers that do not fold to one. The radii are lower "
                "bounds, and there are no distances. For a model that is one equation, use "
                "`quadric train --equation`.": not self.radii.exact,
            }
        )


def certify_table(
    opened: OpenedModel,
    *,
    units: str,
    fixed: Iterable[Any],
    noise: float | None = None,
    progress: Callable[[float, float, str], object],
) -> CertifiedTable:
    """Compute the certified radius of every row for which the model makes a prediction.

    Parameters
    ----------
    opened : OpenedModel
        A model with a table.
    units, fixed, progress : str, sequence and callable
        As in `quadric.certify.radius`.
    noise : float, optional
        The standard deviation of noise. The probabilities that it changes the predicted classes
        are computed as well.

    Returns
    -------
    CertifiedTable

    Raises
    ------
    TableError
        If the table cannot be read or lacks a column.
    ValueError, TypeError
        If the model cannot be certified.
    """
    model, (schema, source) = opened.model, opened.table
    if schema.task != "classification":
        raise TableError("certificates need a classifier, but this model predicts numbers.")
    check_inputs(schema, source.columns)
    frame = source.read()
    X = features(schema, frame)
    kept = predictable_rows(X, imputes=not isinstance(model, TableNetwork))
    if not kept.any():
        raise TableError(f"no row of {source.path} has a prediction, because values are missing.")
    y, present = np.empty(0), np.zeros(len(frame), dtype=bool)
    if opened.labeled and schema.target in source.columns:
        y, present = labels(schema, frame)
    from quadric.certify import flip_probability, radius  # predictions do not need it

    options: dict[str, Any] = {"units": units, "fixed": fixed, "progress": progress}
    radii = radius(model, X.filter(kept), **options)
    flips = None if noise is None else flip_probability(model, X.filter(kept), noise, **options)
    numbers, truth = 1 + np.flatnonzero(kept), y[kept[present]]
    known = present[kept]
    return CertifiedTable(radii, numbers, len(frame), known, truth, schema.target, flips)
