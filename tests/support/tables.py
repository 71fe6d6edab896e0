"""Small files and tables, their schemas, and streaming runs that stop at a given point."""

import numpy as np
import polars as pl

from quadric.apps.shell.tables import (
    Checkpoint,
    ColumnOptions,
    Settings,
    Stream,
    open_table,
    train_stream,
)
from quadric.apps.shell.tables._column_profile import profile_batch
from quadric.apps.shell.tables._schema_inference import infer_schema, new_profiles, profile_again
from quadric.apps.shell.tables._streaming import Learner
from tests.support import processes


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def schema_of(path, target, batch=10**6, **options):
    return schema_of_source(open_table(path), target, batch, **options)


def schema_of_source(source, target, batch=10**6, stream=False, **options):
    options = ColumnOptions(target, **options)
    profiles = new_profiles(options, source.columns, source.table_format, stream=stream)
    while profiles:
        for frame in source.batches(batch):
            profile_batch(profiles, frame)
        done, profiles = profiles, profile_again(profiles, options, source.table_format)
    return infer_schema(done, options, source.unnamed, stream=stream)


# ---- runs on a stream --------------------------------------------------------------------


class StopError(Exception):
    """Simulates a killed process."""


def at_call(number, stage, action):
    """Return a progress function that calls `action` at the given call of a stage."""
    seen = 0

    def progress(done, total, text):
        nonlocal seen
        if stage in text:
            seen += 1
            if seen == number:
                action()

    return progress


def stop_after(calls, stage):
    """Return a progress function that stops the run during a pass."""

    def stop():
        raise StopError

    return at_call(calls, stage, stop)


def record_learned(monkeypatch):
    """Return a list to which each call of `Learner.learn` appends its values of the column z."""
    learned, learn = [], Learner.learn

    def record(learner, X, y, progress):
        learned.append(np.asarray(X["z"]))
        learn(learner, X, y, progress)

    monkeypatch.setattr(Learner, "learn", record)
    return learned


def write_table(path, n=2400):
    """Write a table of numbers, a category and missing values, with two possible targets."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(3, 2, n), rng.normal(size=n)
    colour = rng.choice(["red", "green", "blue"], n)
    inside = (x - 3) ** 2 / 4 + z**2 < 1.2 + 0.8 * (colour == "red")
    frame = pl.DataFrame(
        {
            "x": [None if i % 50 == 7 else v for i, v in enumerate(x)],
            "z": z,
            "colour": colour,
            "size": 1000 + 50 * (x * z + z**2),
            "label": [
                None if i % 100 == 9 else ("in" if v else "out") for i, v in enumerate(inside)
            ],
        }
    )
    if path.suffix == ".parquet":
        frame.write_parquet(path, row_group_size=300)
    else:
        frame.write_csv(path)
    return path


def go(table, options=None, stream=None, **how):
    """Run on the table, with `table.checkpoint` in the same directory."""
    options = options or ColumnOptions("label", drop=["size"])
    stream = stream or Stream(buffer=300, epochs=3, every=2)
    checkpoint = Checkpoint(table.with_suffix(".checkpoint"))
    return train_stream(open_table(table), options, Settings(), stream, checkpoint, **how)


def parameters(trained):
    return [
        array for layer in trained.model[-1].network_.layers for array in layer.arrays().values()
    ]


def start(directory, data, *more, output="a.quadric"):
    options = ["-t", "label", "-o", output, "--stream", "--json", *more]
    return processes.Started(["-m", "quadric", "train", data, *options], cwd=directory)
