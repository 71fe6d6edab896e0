"""Training on a table of any length: two passes and a third to score, each resumable."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quadric.arrays import Array
from quadric.streaming.checkpoint import Checkpoint
from quadric.streaming.first_pass import gather
from quadric.streaming.learner import Learner
from quadric.tables.columns import features, labels, take
from quadric.tables.reading import Source
from quadric.tables.schema import Schema, Wishes
from quadric.tables.scores import LINEAR, METRIC, MODEL, TRIVIAL, Confusion, Report, Residuals
from quadric.tables.training import Settings, Trained

__all__ = ["Stream", "train_stream"]

Progress = Callable[[str, float, float | None], None]
STEPS = 3000  # of 200 rows each, at least, unless that takes more than MOST_EPOCHS
MOST_EPOCHS = 50
BUFFER_NUMBERS = 2_000_000  # in one buffer, so that wide tables take no more memory than long ones


@dataclass(frozen=True)
class Stream:
    """How to read: rows in the buffer that is shuffled, epochs, batches between checkpoints."""

    buffer: int | None = None
    epochs: int | None = None
    every: int = 10


def train_stream(
    source: Source,
    wishes: Wishes,
    settings: Settings,
    stream: Stream,
    checkpoint_path: Path,
    *,
    resume: bool = False,
    progress: Progress = lambda text, done, total: None,
) -> Trained:
    """A model from a table of which only a buffer of rows is ever in memory.

    What is random follows from the seed and the buffer's number: a run that was killed and
    resumed gives the same model, bit for bit, as one that was not.
    """
    rows = stream.buffer or max(500, min(50_000, BUFFER_NUMBERS // len(source.columns)))
    checkpoint = Checkpoint(checkpoint_path, _run(source, wishes, settings, stream, rows))
    stored = checkpoint.load() if resume else None
    state, arrays = stored if stored is not None else ({}, {})
    if state.get("stage") == "second":
        schema = Schema.from_dict(state["schema"])
    else:
        schema = gather(
            source, wishes, checkpoint, state or None,
            rows=rows, every=stream.every, progress=progress,
        )  # fmt: skip
        state = {}
    buffers = math.ceil(schema.rows / rows)
    usable = (schema.rows - schema.missing_targets) * (1 - settings.test_size)
    epochs = stream.epochs or max(1, min(MOST_EPOCHS, math.ceil(STEPS * 200 / max(usable, 1))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = Learner(schema, settings)
        done = int(state.get("buffers", 0))
        if done:
            learner.restore(state["learner"], arrays)
        total = epochs * buffers
        while done < total:
            epoch, skip = divmod(done, buffers)
            for index, X, y, held in _buffers(source, schema, settings, rows, skip):
                rng = np.random.default_rng([settings.seed, 2, epoch, index])
                order = rng.permutation(np.flatnonzero(~held))
                learner.learn(take(X, order), y[order], done / total)
                done += 1
                progress("second pass: training", done * rows, total * rows)
                if done % stream.every == 0 or done == total:
                    numbers, arrays = learner.state()
                    checkpoint.save(
                        {
                            "stage": "second", "schema": schema.to_dict(), "buffers": done,
                            "learner": numbers,
                        },
                        arrays,
                    )  # fmt: skip
        model, report = _score(source, schema, settings, rows, learner, progress)
    notes = schema.notes()
    notes += sorted({str(warning.message) for warning in caught
                     if issubclass(warning.category, UserWarning)})  # fmt: skip
    return Trained(model, schema, report, notes)


def _run(
    source: Source, wishes: Wishes, settings: Settings, stream: Stream, rows: int
) -> dict[str, Any]:
    """What a checkpoint must agree with."""
    stat = source.path.stat()
    asked = asdict(settings)
    del asked["verbose"], asked["cv"]
    return {
        "file": str(source.path.resolve()), "size": stat.st_size, "changed": stat.st_mtime_ns,
        **asdict(wishes), **asked, "buffer": rows, "epochs": stream.epochs, "format": 2,
    }  # fmt: skip


def _buffers(
    source: Source, schema: Schema, settings: Settings, rows: int, skip: int
) -> Iterator[tuple[int, Any, Array, Array]]:
    """Number, inputs, targets, and which rows are held out, of each buffer from `skip` on."""
    for index, frame in enumerate(source.batches(rows, skip * rows), start=skip):
        start = index * rows
        X = features(schema, frame, start)
        y, there = labels(schema, frame, start)
        drawn = np.random.default_rng([settings.seed, 1, index]).random(len(frame))
        held = (drawn < settings.test_size)[there]
        yield index, (X if there.all() else take(X, there)), y, held


def _score(
    source: Source,
    schema: Schema,
    settings: Settings,
    rows: int,
    learner: Learner,
    progress: Progress,
) -> tuple[Any, Report]:
    """The third pass: model and baselines on the rows held out."""
    task = schema.task
    models = dict(zip((MODEL, LINEAR[task]), learner.finish(), strict=True))
    sums: dict[str, Any] = {
        name: Confusion(schema.classes) if task == "classification" else Residuals()
        for name in (MODEL, TRIVIAL[task], LINEAR[task])
    }
    trivial = (
        schema.classes[int(np.argmax(schema.class_counts))]
        if schema.classes
        else schema.target_mean
    )
    count = 0
    if settings.test_size > 0:
        for index, X, y, held in _buffers(source, schema, settings, rows, 0):
            truth, unseen = y[held], take(X, held)
            if len(truth):
                for name, model in models.items():
                    sums[name].add(truth, model.predict(unseen))
                sums[TRIVIAL[task]].add(truth, np.full(len(truth), trivial))
            count += len(truth)
            progress("third pass: scoring", (index + 1) * rows, schema.rows)
    trained = schema.rows - schema.missing_targets - count
    scores = {name: one.score for name, one in sums.items()} if count else {}
    how = f"{count} rows held out; the model saved has not seen them"
    return models[MODEL], Report(
        METRIC[task], how if count else "no row was held out", scores, trained, count,
        confusion=sums[MODEL] if task == "classification" and count else None,
        error=sums[MODEL].absolute / count if task == "regression" and count else None,
    )  # fmt: skip
