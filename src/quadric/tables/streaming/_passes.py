"""Training on a table of any length: two passes and a third to score, each resumable."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.errors import TableError
from quadric.tables._features import features, labels, take
from quadric.tables._profile import ColumnProfile
from quadric.tables._schema import Schema, Wishes
from quadric.tables._scores import LINEAR, METRIC, MODEL, TRIVIAL, Confusion, Report, Residuals
from quadric.tables._source import Source
from quadric.tables._state_checks import check_fields, check_whole, require
from quadric.tables._training import Settings, Trained
from quadric.tables._unchanged import changed
from quadric.tables.streaming import _first_pass as first_pass
from quadric.tables.streaming._checkpoint import Checkpoint
from quadric.tables.streaming._learner import Learner

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


@dataclass(frozen=True)
class _Rows:
    """The rows of a table, after the first pass: the same in every further one."""

    source: Source
    schema: Schema
    settings: Settings
    rows: int  # in a buffer

    @property
    def count(self) -> int:
        """How many buffers there are."""
        return math.ceil(self.schema.rows / self.rows)

    def epochs(self, stream: Stream) -> int:
        usable = (self.schema.rows - self.schema.missing_targets) * (1 - self.settings.test_size)
        by_size = min(MOST_EPOCHS, math.ceil(STEPS * 200 / max(usable, 1)))
        return stream.epochs or max(1, by_size)

    def buffers(self, skip: int = 0) -> Iterator[tuple[int, Any, Array, Array]]:
        """Number, inputs, targets, and which rows are held out, of each buffer from `skip` on.

        TableError if there are other rows than the first pass has seen.
        """
        path, schema, start = self.source.path, self.schema, skip * self.rows
        for index, frame in enumerate(self.source.batches(self.rows, start), start=skip):
            if len(frame) != min(self.rows, schema.rows - start):
                raise changed(path, f"there are other rows than the {schema.rows:,} at first")
            X = features(schema, frame, start)
            y, there = labels(schema, frame, start)
            if schema.classes and not np.isin(y, schema.classes).all():
                raise changed(path, f"{schema.target!r} has a new class")
            drawn = np.random.default_rng([self.settings.seed, 1, index]).random(len(frame))
            held = (drawn < self.settings.test_size)[there]
            yield index, (X if there.all() else take(X, there)), y, held
            start += len(frame)
        if start != schema.rows:
            raise changed(path, f"there are {start:,} rows, and were {schema.rows:,} at first")


def train_stream(
    source: Source,
    wishes: Wishes,
    settings: Settings,
    stream: Stream,
    checkpoint: Checkpoint,
    *,
    resume: bool = False,
    progress: Progress = lambda text, done, total: None,
) -> Trained:
    """A model from a table of which only a buffer of rows is ever in memory.

    What is random follows from the seed and the buffer's number: a run that was killed and
    resumed gives the same model, bit for bit, as one that was not. The caller removes the
    checkpoint once the model is saved.

    Raises
    ------
    TableError
        Where the table cannot be used or has changed since it was opened, or where the
        checkpoint is damaged, of another run, or not ours to replace.
    """
    profiles, read, done = wishes.new_profiles(source.columns), 0, 0
    rows = stream.buffer or max(500, min(50_000, BUFFER_NUMBERS // len(source.columns)))
    stored = checkpoint.begin(_run(source, wishes, settings, stream, rows), resume=resume)
    learner = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if stored is not None:
            state, arrays = stored
            try:
                if state.get("stage") == "second":
                    table = _Rows(source, _schema(state, profiles, wishes), settings, rows)
                    done = _done(state, table, stream)
                    learner = _learner(table, state["learned"], arrays)
                else:
                    require(state.get("stage") == "first" and not arrays, "the stage")
                    profiles, read = first_pass.restored(profiles, state), state["rows"]
            except TableError:
                raise
            except ValueError as error:
                raise checkpoint.damaged(error) from None
        if learner is None:
            schema = first_pass.gather(
                source, wishes, profiles, read, checkpoint,
                rows=rows, every=stream.every, progress=progress,
            )  # fmt: skip
            table, learner = _Rows(source, schema, settings, rows), Learner(schema, settings)
        total = table.epochs(stream) * table.count
        while done < total:
            epoch, skip = divmod(done, table.count)
            for index, X, y, held in table.buffers(skip):
                rng = np.random.default_rng([settings.seed, 2, epoch, index])
                order = rng.permutation(np.flatnonzero(~held))
                learner.learn(take(X, order), y[order], done / total)
                done += 1
                progress("second pass: training", done * rows, total * rows)
                if done % stream.every == 0 or done == total:
                    state = {
                        "stage": "second", "schema": table.schema.to_dict(), "buffers": done,
                        "learned": learner.has_learned,
                    }  # fmt: skip
                    checkpoint.save(state, learner.state())
        model, report = _score(table, learner, progress)
    notes = table.schema.notes()
    notes += sorted({str(warning.message) for warning in caught
                     if issubclass(warning.category, UserWarning)})  # fmt: skip
    return Trained(model, table.schema, report, notes)


def _run(
    source: Source, wishes: Wishes, settings: Settings, stream: Stream, rows: int
) -> dict[str, Any]:
    """What a checkpoint must agree with."""
    asked = asdict(settings)
    del asked["verbose"], asked["cv"]
    return {
        **source.fingerprint(), **asdict(wishes), **asked, "buffer": rows, "epochs": stream.epochs,
        "format": 3,
    }  # fmt: skip


def _schema(state: dict[str, Any], profiles: list[ColumnProfile], wishes: Wishes) -> Schema:
    """The schema of a checkpoint, which must be of this table."""
    check_fields(state, ("stage", "schema", "buffers", "learned"), "the state")
    schema = Schema.from_dict(state["schema"])
    inputs = [profile.name for profile in profiles if profile.name != wishes.target]
    require((schema.target, list(schema.order)) == (wishes.target, inputs), "the schema")
    require(schema.rows > 0, "the number of rows")
    return schema


def _done(state: dict[str, Any], table: _Rows, stream: Stream) -> int:
    done = state["buffers"]
    check_whole(done, "the number of buffers", least=1, most=table.epochs(stream) * table.count)
    return int(done)


def _learner(table: _Rows, learned: Any, arrays: dict[str, Array]) -> Learner:
    require(learned is bool(arrays), "the list of arrays")
    learner = Learner(table.schema, table.settings)
    learner.restore(arrays)
    return learner


def _score(table: _Rows, learner: Learner, progress: Progress) -> tuple[Any, Report]:
    """The third pass: model and baselines on the rows held out."""
    if not learner.has_learned:
        raise TableError(
            "no row is left to train on: all rows with a target were held out. Use a smaller "
            "--test-size, or more rows."
        )
    schema, task = table.schema, table.schema.task
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
    if table.settings.test_size > 0:
        for index, X, y, held in table.buffers():
            truth, unseen = y[held], take(X, held)
            if len(truth):
                for name, model in models.items():
                    sums[name].add(truth, model.predict(unseen))
                sums[TRIVIAL[task]].add(truth, np.full(len(truth), trivial))
            count += len(truth)
            progress("third pass: scoring", (index + 1) * table.rows, schema.rows)
    trained = schema.rows - schema.missing_targets - count
    scores = {name: one.score for name, one in sums.items()} if count else {}
    how = f"{count} rows held out; the model saved has not seen them"
    return models[MODEL], Report(
        METRIC[task], how if count else "no row was held out", scores, trained, count,
        confusion=sums[MODEL] if task == "classification" and count else None,
        error=sums[MODEL].absolute / count if task == "regression" and count else None,
    )  # fmt: skip
