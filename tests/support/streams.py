"""A small table to stream, and runs on it that stop where a test wants them to."""

import numpy as np
import polars as pl

from quadric.tables import Settings, Wishes, open_table
from quadric.tables.streaming import Checkpoint, Stream, train_stream


class StopError(Exception):
    """Stands for a killed process."""


def stop_after(calls, stage):
    """A progress function that stops the run in mid-pass."""
    seen = [0]

    def progress(text, done, total):
        if stage in text:
            seen[0] += 1
            if seen[0] == calls:
                raise StopError

    return progress


def write_table(path, n=2400):
    """Numbers, a category, holes, a number and a class that follow from them."""
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
            "label": [None if i % 100 == 9 else ("in" if v else "out")
                      for i, v in enumerate(inside)],
        }
    )  # fmt: skip
    if path.suffix == ".parquet":
        frame.write_parquet(path, row_group_size=300)
    else:
        frame.write_csv(path)
    return path


def go(table, wishes=None, stream=None, **options):
    """A run on the table, with `table.checkpoint` beside it."""
    wishes = wishes or Wishes("label", drop=["size"])
    stream = stream or Stream(buffer=300, epochs=3, every=2)
    checkpoint = Checkpoint(table.with_suffix(".checkpoint"))
    return train_stream(open_table(table), wishes, Settings(), stream, checkpoint, **options)


def parameters(trained):
    return [
        array for layer in trained.model[-1].network_.layers for array in layer.arrays().values()
    ]
