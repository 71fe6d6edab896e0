"""Training and predictions on a Dask cluster, whose workers read the files of a table themselves.

The client profiles the table in batches and chooses the shape on some rows. The workers encode
the rows, sum over them in every iteration, and score the held-out rows.
"""

import contextlib
import os
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import polars as pl
from dask.base import compute
from dask.delayed import delayed
from sklearn.pipeline import Pipeline, make_pipeline

from quadric.apps.shell.tables._column_profile import profile_batch
from quadric.apps.shell.tables._evaluation import LinearBaseline
from quadric.apps.shell.tables._held_out import (
    ScoredRows,
    check_target,
    outputs_of,
    remarks_on_table,
)
from quadric.apps.shell.tables._options import ColumnOptions, Settings, TableFormat
from quadric.apps.shell.tables._prediction import Predicted, predict
from quadric.apps.shell.tables._preprocessing import fitted_to_moments
from quadric.apps.shell.tables._schema import Schema, labeled_rows
from quadric.apps.shell.tables._schema_inference import infer_schema, new_profiles, profile_again
from quadric.apps.shell.tables._source import Source, open_table
from quadric.apps.shell.tables._suspicious_columns import MOST_ROWS, with_suspicions
from quadric.apps.shell.tables._training import (
    Trained,
    check_costs,
    finished,
    make_estimator,
    tested_on,
    tested_on_held_out,
)
from quadric.checks import Array
from quadric.cluster import checkpoint, run_tasks
from quadric.errors import TableError

da: Any = dask.array  # which has no types
ROWS_AT_ONCE = 50_000  # when the client profiles the table


@dataclass(frozen=True)
class Part:
    """One file of the table, and what a worker needs to read it."""

    number: int
    path: Path
    table_format: TableFormat
    schema: Schema
    seed: int
    held_out: float

    def rows(self) -> tuple[pl.DataFrame, Array, Array, Array]:
        """Return inputs and targets of the labeled rows, which are held out, and their numbers."""
        frame = open_table(self.path, self.table_format).read()
        X, y, present = labeled_rows(self.schema, frame)
        drawn = np.random.default_rng([self.seed, 1, self.number]).random(len(present))
        return X, y, (drawn < self.held_out)[present], np.flatnonzero(present) + 1


def train_on_cluster(
    source: Source,
    options: ColumnOptions,
    settings: Settings,
    state: Path,
    *,
    resume: bool = False,
    test: Source | None = None,
) -> Trained:
    """Train a model on the cluster of the default Dask client.

    Parameters
    ----------
    source, options, settings, test
        See `quadric.apps.shell.tables.train`. The workers must find the files under the same names.
    state : Path
        The file in which the state of the fit is stored after every iteration.
    resume : bool
        Whether to continue from this file, if there is one.

    Returns
    -------
    Trained
    """
    with warnings.catch_warnings(record=True, action="always") as caught:
        schema = _infer(source, options)
        check_costs(schema, settings)
        if test is not None:
            check_target(schema, test)
        share = settings.held_out_share if test is None else 0.0
        parts = [
            Part(k, path.resolve(), source.table_format, schema, settings.seed, share)
            for k, path in enumerate(source.versions)
        ]
        model, linear, trained_rows = _fit(parts, schema, settings, state, resume=resume)
        if test is None:
            collected = _scored(parts, schema, settings.seed, model, linear)
            trained = tested_on_held_out(collected, model, linear, trained_rows)
        else:
            trained = tested_on(test, model, linear, schema, settings, None)
    return finished(trained, settings, caught, remarks_on_table(schema))


def _infer(source: Source, options: ColumnOptions) -> Schema:
    """Infer the schema as for a stream, batch by batch."""
    profiles = new_profiles(options, source.columns, source.table_format, stream=True)
    for frame in source.batches(ROWS_AT_ONCE):
        profile_batch(profiles, frame)
    if again := profile_again(profiles, options, source.table_format):
        for frame in source.batches(ROWS_AT_ONCE):
            profile_batch(profiles := again, frame)
    schema = infer_schema(profiles, options, source.unnamed, stream=True)
    every = -(-schema.rows // MOST_ROWS)
    frames = (frame.gather_every(every) for frame in source.batches(ROWS_AT_ONCE))
    some = [labeled_rows(schema, frame)[:2] for frame in frames]
    return with_suspicions(
        schema, pl.concat([X for X, _ in some]), np.concatenate([y for _, y in some])
    )


def _fit(
    parts: list[Part], schema: Schema, settings: Settings, state: Path, *, resume: bool
) -> tuple[Pipeline, LinearBaseline, int]:
    """Fit the model and the linear baseline; return them and the number of training rows."""
    preprocess = fitted_to_moments(schema)
    width = len(preprocess.get_feature_names_out())
    encoded = [delayed(_encoded, pure=False)(part, preprocess) for part in parts]
    kind = np.array(schema.classes).dtype if schema.classes else np.dtype(float)
    Z, y = (
        da.concatenate(
            [
                da.from_delayed(one[k], (np.nan, *shape), meta=np.empty((0, *shape), dtype))
                for one in encoded
            ],
            allow_unknown_chunksizes=True,
        )
        for k, (shape, dtype) in enumerate((((width,), np.dtype(float)), ((), kind)))
    )
    estimator = make_estimator(schema, settings, verbose=settings.verbose)
    with checkpoint(state, resume=resume):
        estimator.fit(Z, y)
    only_linear = replace(settings, hidden=(), kind="linear")  # type: ignore[arg-type]
    baseline = make_estimator(schema, only_linear).fit(Z, y)
    layer = baseline.network_.layers[-1]
    linear = LinearBaseline(layer.W, layer.b, classifies=bool(schema.classes))
    rows = int(estimator._state.history.n_samples)
    return make_pipeline(*preprocess, estimator), linear, rows


def _encoded(part: Part, preprocess: Pipeline) -> tuple[Any, Array]:
    """Return the inputs of the estimator for the training rows of a part, and their targets."""
    X, y, held, _ = part.rows()
    if part.schema.classes and not np.isin(y, part.schema.classes).all():
        raise TableError(f"{part.path} has changed: {part.schema.target!r} has a new class.")
    if not (~held).any():
        width = len(preprocess.get_feature_names_out())
        return np.empty((0, width)), y[:0]
    return preprocess.transform(X.filter(~held)), y[~held]


def _scored(
    parts: list[Part], schema: Schema, seed: int, model: Any, linear: LinearBaseline
) -> ScoredRows:
    """Score the held-out rows, each part on a worker."""
    collected, start = ScoredRows(schema, seed), 0
    run: Any = compute
    found = run(*(delayed(_outputs)(part, model, linear) for part in parts))
    for rows, numbers, y, outputs in found:
        if len(numbers):
            collected.add(start + numbers, collected.codes(y), outputs)
        start += rows
    return collected


def _outputs(
    part: Part, model: Any, linear: LinearBaseline
) -> tuple[int, Array, Array, list[Array]]:
    X, y, held, numbers = part.rows()
    outputs = outputs_of(model, part.schema, X.filter(held), linear) if held.any() else []
    return len(held), numbers[held], y[held], outputs


# ---- predictions -----------------------------------------------------------------------------


def predict_on_cluster(
    client: Any, model: Any, schema: Schema, source: Source, directory: Path, **options: Any
) -> Predicted:
    """Write predictions for each file of a table to a file of the same name in a new directory.

    The directory appears when all files are complete. The workers must find the table, and the
    place of the directory, under the same names. Options are those of `predict`.
    """
    files = [path.resolve() for path in source.versions]
    if len({file.name for file in files}) < len(files):
        raise TableError("the files of the table must have different names.")
    # the sums of numbers have another center in each file
    options["labeled"] = options["labeled"] and bool(schema.classes)
    with _new_directory(directory) as place:
        write = partial(_write_part, schema, source.table_format, place, options)
        done = list(run_tasks(client, write, files, model, note=str))
        total = done[0]
        for one in done[1:]:
            total = _added(total, one)
    return total


@contextlib.contextmanager
def _new_directory(directory: Path) -> Iterator[Path]:
    """Yield a temporary directory that gets its name at the end, if there is no exception."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise TableError(f"{directory} exists and is not an empty directory. Choose another one.")
    directory = directory.resolve()
    place = Path(tempfile.mkdtemp(prefix=".quadric-", dir=directory.parent))
    try:
        yield place
        place.chmod(0o755)
        os.replace(place, directory)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _write_part(
    schema: Schema, table_format: TableFormat, place: Path, options: Any, file: Path, model: Any
) -> Predicted:
    return predict(model, schema, open_table(file, table_format), place / file.name, **options)


def _added(total: Predicted, one: Predicted) -> Predicted:
    """Add the counts of another part."""
    for name, value in vars(total).items():
        other = getattr(one, name)
        if isinstance(value, Counter):
            value.update(other)
        elif type(value) is int or name == "sums":
            setattr(total, name, value + other)
    return total
