"""Training on a table of any length in three passes: profile, train and score."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from quadric.apps.shell.tables._column_profile import ColumnProfile, profile_batch
from quadric.apps.shell.tables._features import labeled_rows
from quadric.apps.shell.tables._linear_baseline import LinearBaseline
from quadric.apps.shell.tables._options import ColumnOptions, Settings, Stream
from quadric.apps.shell.tables._remarks import (
    most_important,
    remarks_on_columns,
    remarks_on_rows,
    remarks_on_scores,
)
from quadric.apps.shell.tables._schema import Schema, check_fields, expect, is_count
from quadric.apps.shell.tables._schema_inference import infer_schema
from quadric.apps.shell.tables._scores import Report, Scores, outputs, report_of, trivial_outputs
from quadric.apps.shell.tables._source import Source, changed
from quadric.apps.shell.tables._test_table import TestTable, check_target, evaluate_table
from quadric.apps.shell.tables._training import (
    Trained,
    how_on,
    how_on_held_out,
    warnings_added_to,
)
from quadric.apps.shell.tables.streaming._checkpoint import Checkpoint
from quadric.apps.shell.tables.streaming._learner import Learner
from quadric.checks import Array
from quadric.errors import TableError

STEPS = 3000  # by default, at least this many steps of 200 rows, but at most MOST_EPOCHS epochs
MOST_EPOCHS = 50
EVERY = 10  # buffers between two checkpoints
BUFFER_NUMBERS = 2_000_000  # maximum number of values in a buffer, to limit memory for wide tables


def train_stream(
    source: Source,
    options: ColumnOptions,
    settings: Settings,
    stream: Stream,
    checkpoint: Checkpoint,
    *,
    resume: bool = False,
    test: Source | None = None,
    progress: Callable[[float, float | None, str], None] = lambda done, total, text: None,
) -> Trained:
    """Train on a table with only one buffer of rows in memory at a time.

    All randomness is determined by the seed and the buffer's number, so a run that was killed and
    resumed yields the same model, bit for bit, as an uninterrupted one. The caller removes the
    checkpoint after saving the model.

    Parameters
    ----------
    source, options, settings
        The table, its columns and the model, as for `quadric.apps.shell.tables.train`.
    stream : Stream
    checkpoint : Checkpoint
    resume : bool
        Whether to continue from the checkpoint, if there is one.
    test : Source, optional
        A table to score the model on, instead of held-out rows of the first table.
    progress : callable, optional
        Called with the number of rows done, the total number of rows (None if unknown) and the
        name of the pass.

    Returns
    -------
    Trained

    Raises
    ------
    TableError
        If the table cannot be used or has changed since it was opened, or if the checkpoint file
        is damaged, belongs to another run, or is not a checkpoint.
    """
    # a stream is read once per epoch, so shapes cannot be compared
    settings = replace(settings, hidden=settings.hidden or (), kind=settings.kind or "quadratic")
    run = _Run(source, options, settings, stream, checkpoint, progress)
    stored = checkpoint.begin(run.identity(), resume=resume)
    warned: list[str] = []
    with warnings_added_to(warned):
        learner, done = run.start(*(stored or ({}, {})))
        if test is not None:
            check_target(learner.schema, test)
        run.second_pass(learner, done)
        model, linear = learner.finish()
        report, notes, tested = run.third_pass(learner.schema, model, linear, test)
    schema = learner.schema
    remarks = remarks_on_columns(schema) + remarks_on_rows(schema)
    if report.evaluation is not None:
        balanced = settings.class_weight is not None
        remarks += remarks_on_scores(report.evaluation, balanced=balanced)
    notes = schema.notes() + warned + notes
    return Trained(model, schema, report, notes, most_important(remarks), tested, linear)


@dataclass(frozen=True)
class _Run:
    """The table, the settings and the passes of one run."""

    source: Source
    options: ColumnOptions
    settings: Settings
    stream: Stream
    checkpoint: Checkpoint
    progress: Callable[[float, float | None, str], None]

    @property
    def rows(self) -> int:
        """The number of rows in a buffer."""
        by_width = BUFFER_NUMBERS // len(self.source.columns)
        return self.stream.buffer or max(500, min(50_000, by_width))

    def identity(self) -> dict[str, Any]:
        """Return the data and settings that a checkpoint must match."""
        settings = asdict(self.settings)
        del settings["verbose"], settings["cv"]
        own = {"buffer": self.rows, "epochs": self.stream.epochs, "format": 6}
        return self.source.fingerprint() | asdict(self.options) | settings | own

    def start(self, state: dict[str, Any], arrays: dict[str, Array]) -> tuple[Learner, int]:
        """Return a learner and the number of buffers seen; `state` is empty for a new run."""
        profiles = self.options.new_profiles(self.source.columns)
        try:
            if state.get("stage") == "second":
                return self._learner_of(state, arrays)
            if state:
                expect(state.get("stage") == "first" and not arrays, "the stage")
                profiles = self._profiles_of(state, profiles)
        except TableError:
            raise
        except ValueError as error:
            raise self.checkpoint.damaged(error) from None
        return Learner(self.first_pass(profiles), self.settings), 0

    def _profiles_of(self, state: dict[str, Any], new: list[ColumnProfile]) -> list[ColumnProfile]:
        """Return the profiles from a checkpoint of the first pass."""
        check_fields(state, {"stage": str, "profiles": list}, "the state")
        profiles = list(map(ColumnProfile.from_dict, state["profiles"]))
        expected = [(one.name, one.most_values) for one in new]
        found = [(one.name, one.most_values) for one in profiles]
        expect(found == expected, "the list of profiles")
        expect(len({one.rows for one in profiles}) == 1 <= profiles[0].rows, "the number of rows")
        return profiles

    def _learner_of(self, state: dict[str, Any], arrays: dict[str, Array]) -> tuple[Learner, int]:
        """Return the learner from a checkpoint of the second pass."""
        check_fields(
            state,
            {"stage": str, "schema": dict, "buffers": is_count, "learned": bool},
            "the state",
        )
        schema, done = Schema.from_dict(state["schema"]), state["buffers"]
        inputs = tuple(name for name in self.source.columns if name != self.options.target)
        expect((schema.target, schema.order) == (self.options.target, inputs), "the schema")
        expect(schema.rows > 0, "the number of rows")
        expect(1 <= done <= self.buffers_in_all(schema), "the number of buffers")
        expect(state["learned"] is bool(arrays), "the list of arrays")
        learner = Learner(schema, self.settings)
        if arrays:
            learner.restore(arrays)
        return learner, done

    def buffers_in_all(self, schema: Schema) -> int:
        """Return the total number of buffers in the second pass, over all epochs."""
        usable = (schema.rows - schema.missing_targets) * (1 - self.settings.test_size)
        by_size = min(MOST_EPOCHS, math.ceil(STEPS * 200 / max(usable, 1)))
        return (self.stream.epochs or max(1, by_size)) * math.ceil(schema.rows / self.rows)

    def first_pass(self, profiles: list[ColumnProfile]) -> Schema:
        """Infer the schema; the profiles may already include the first rows."""
        for k, frame in enumerate(self.source.batches(self.rows, profiles[0].rows), start=1):
            profile_batch(profiles, frame)
            self.progress(profiles[0].rows, None, "first pass: moments and categories")
            if k % (self.stream.every or EVERY) == 0:
                stored = [asdict(profile) for profile in profiles]
                self.checkpoint.save({"stage": "first", "profiles": stored}, {})
        return infer_schema(profiles, self.options, self.source.unnamed)

    def second_pass(self, learner: Learner, done: int) -> None:
        """Train on shuffled buffers, skipping the first `done`, which have already been used."""
        schema, total = learner.schema, self.buffers_in_all(learner.schema)
        while done < total:
            epoch, skip = divmod(done, math.ceil(schema.rows / self.rows))
            for index, X, y, held, _ in self._buffers(schema, skip):
                rng = np.random.default_rng([self.settings.seed, 2, epoch, index])
                order = rng.permutation(np.flatnonzero(~held))
                learner.learn(X[order], y[order], done / total)
                done += 1
                self.progress(done * self.rows, total * self.rows, "second pass: training")
                if done % (self.stream.every or EVERY) == 0 or done == total:
                    state = {"stage": "second", "schema": schema.to_dict(), "buffers": done}
                    self.checkpoint.save(state | {"learned": learner.has_learned}, learner.state())
        if not learner.has_learned:
            raise TableError(
                "no row is left to train on, because all rows with a target were held out. Use a "
                "smaller --test-size, or more rows."
            )

    def third_pass(
        self, schema: Schema, model: Any, linear: LinearBaseline, test: Source | None = None
    ) -> tuple[Report, list[str], TestTable | None]:
        """Score the model and the baselines on the held-out rows or on a test table."""
        scores, count = Scores(schema, self.settings.seed), 0
        if test is not None:
            found = evaluate_table(model, schema, test, linear=linear, seed=self.settings.seed)
            trained = schema.rows - schema.missing_targets
            return report_of(found.evaluation, how_on(test), trained), found.notes, found
        trivial = trivial_outputs(schema)
        for index, X, y, held, numbers in self._buffers(schema) if self.settings.test_size else ():
            unseen = X.filter(held)
            if len(unseen):
                Z = model[:-1].transform(unseen)
                ours, theirs = outputs(model[-1], Z), linear.outputs(Z)
                scores.add(0, numbers[held], y[held], ours, trivial, theirs)
            count += len(unseen)
            self.progress((index + 1) * self.rows, schema.rows, "third pass: scoring")
        trained = schema.rows - schema.missing_targets - count
        return scores.report(how_on_held_out(count), trained, count), [], None

    def _buffers(
        self, schema: Schema, skip: int = 0
    ) -> Iterator[tuple[int, Any, Array, Array, Array]]:
        """Yield the index, inputs, targets, held-out mask and row numbers of each buffer.

        Raises TableError unless the rows are consistent with the first pass.
        """
        path, start = self.source.path, skip * self.rows
        for index, frame in enumerate(self.source.batches(self.rows, start), start=skip):
            if len(frame) != min(self.rows, schema.rows - start):
                raise changed(path, f"it no longer has {schema.rows:,} rows")
            X, y, present = labeled_rows(schema, frame, start)
            if schema.classes and not np.isin(y, schema.classes).all():
                raise changed(path, f"{schema.target!r} has a new class")
            drawn = np.random.default_rng([self.settings.seed, 1, index]).random(len(frame))
            numbers = start + 1 + np.flatnonzero(present)
            yield index, X, y, (drawn < self.settings.test_size)[present], numbers
            start += len(frame)
        if start != schema.rows:
            raise changed(path, f"it had {schema.rows:,} rows and now has {start:,}")
