"""Training on a table larger than memory, in three passes: profile, train and score.

Start with `train_stream`. `Learner` trains a model and a linear baseline on buffers of rows.
`Checkpoint` is the state of a run in one file, replaced atomically.
"""

import contextlib
import hashlib
import json
import math
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.pipeline import Pipeline, make_pipeline

import quadric
from quadric.apps.shell.tables._column_profile import ColumnProfile, profile_batch
from quadric.apps.shell.tables._evaluation import LinearBaseline
from quadric.apps.shell.tables._held_out import (
    ScoredRows,
    check_target,
    outputs_of,
    remarks_on_table,
)
from quadric.apps.shell.tables._options import ColumnOptions, Settings, Stream
from quadric.apps.shell.tables._preprocessing import fitted_to_moments
from quadric.apps.shell.tables._schema import (
    Schema,
    check_fields,
    expect,
    is_count,
    labeled_rows,
)
from quadric.apps.shell.tables._schema_inference import infer_schema, new_profiles, profile_again
from quadric.apps.shell.tables._source import Source, changed
from quadric.apps.shell.tables._suspicious_columns import MOST_ROWS, with_suspicions
from quadric.apps.shell.tables._training import (
    Trained,
    check_costs,
    finished,
    make_estimator,
    memory_limit_as_table_error,
    tested_on,
    tested_on_held_out,
)
from quadric.checks import Array
from quadric.errors import ModelFileError, TableError
from quadric.estimators import restore_training, scale_outputs, training_state
from quadric.files import Form, has_form, read_tensors, tensor_bytes
from quadric.utils import remove_leftovers, write_whole

STEPS = 3000  # by default, at least this many steps of 200 rows, but at most MOST_EPOCHS epochs
MOST_EPOCHS = 50
EVERY = 10  # buffers between two checkpoints
BUFFER_NUMBERS = 2_000_000  # maximum number of values in a buffer, to limit memory for wide tables
RATE = 0.01  # initial learning rate, which decreases linearly to RATE * LAST_RATE
LAST_RATE = 0.05
ADVICE = "Remove it, and start again without --resume."
FORM = Form("checkpoint", "quadric_checkpoint", frozenset({"versions"}), ADVICE)
STATE = "state"


class Checkpoint:
    """The checkpoint of one run.

    The format is that of model files: it contains only numbers and text, which are all checked and
    never executed. Only checkpoints are replaced or removed, and never a file that another process
    has written in the meantime. Links are not followed.

    Parameters
    ----------
    path : Path
        See `checkpoint_path`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run: dict[str, Any] = {}
        self._tag = ""
        self._ours: tuple[int, ...] | None = None  # the file that this run has read or written

    def begin(
        self, run: dict[str, Any], *, resume: bool
    ) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """Return the state and the arrays of an earlier checkpoint, or None if there is none.

        Parameters
        ----------
        run : dict
            The data and settings that a checkpoint must match.
        resume : bool
            If False, an earlier checkpoint is not read, and the first `save` replaces it.

        Raises
        ------
        TableError
            If the file is not a checkpoint or if, with `resume`, it is damaged or belongs to
            another run.
        """
        text = json.dumps(run)
        self._run = json.loads(text)  # in the order of `run`: errors name the first difference
        self._tag = hashlib.sha256(text.encode()).hexdigest()[:8]
        current = self._current()
        if current is None:
            return None
        regular = stat.S_ISREG(os.lstat(self.path).st_mode)
        if not regular or not has_form(self.path, FORM):
            odd = (
                "not a quadric checkpoint" if regular else "a link, a directory, a device or a pipe"
            )
            raise TableError(
                f"{self.path} is {odd}, so the checkpoint cannot be written there. Move it, or "
                "choose another output with -o."
            )
        stored = self._read() if resume else None
        self._ours = current
        return stored

    def save(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Replace the file atomically; raise OSError if it cannot be written."""
        text = json.dumps({"run": self._run, "state": state}).encode()
        content = tensor_bytes(
            {"versions": _versions()}, {**arrays, STATE: np.frombuffer(text, dtype=np.uint8)}, FORM
        )
        current = self._current()
        try:
            if current not in (None, self._ours):
                raise FileExistsError
            write_whole(self.path, content, follow_links=False, new=current is None, tag=self._tag)
        except FileExistsError:
            raise TableError(
                f"{self.path} was written by another process, perhaps a run with the same output. "
                "Choose another output with -o."
            ) from None
        self._ours = self._current()

    def remove(self) -> None:
        """Remove the file that this run has written, and its temporary files."""
        with contextlib.suppress(OSError):
            if self._ours is not None and self._current() == self._ours:
                self.path.unlink()
        remove_leftovers(self.path, self._tag)

    def damaged(self, reason: object) -> TableError:
        """Return the error for an invalid state."""
        return TableError(f"{self.path} is a damaged checkpoint ({reason}). {ADVICE}")

    def _current(self) -> tuple[int, ...] | None:
        """Return values that identify the current file, or None if there is none."""
        try:
            now = os.lstat(self.path)
        except FileNotFoundError:
            return None
        return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns

    def _read(self) -> tuple[dict[str, Any], dict[str, Array]]:
        try:
            description, arrays = read_tensors(self.path, FORM)
        except ModelFileError as error:
            raise TableError(str(error)) from None
        try:
            expect({"its state": STATE in arrays and arrays[STATE].dtype == np.uint8})
            described = json.loads(arrays.pop(STATE).tobytes().decode("ascii"))
            check_fields(described, {"run": dict, "state": dict}, "its state")
        except (ValueError, RecursionError) as error:  # invalid encoding, JSON or values
            raise self.damaged(error) from None
        run = described["run"] | {"versions": description["versions"]}
        expected = self._run | {"versions": _versions()}
        for name in [*expected, *run]:
            if name not in run or name not in expected or run[name] != expected[name]:
                raise TableError(
                    f"{self.path} belongs to another run: {name} was {repr(run.get(name))[:80]}, "
                    f"but is now {repr(expected.get(name))[:80]}. Repeat that run's command, "
                    "or start again without --resume."
                )
        return described["state"], arrays


def checkpoint_path(output: Path) -> Path:
    """Return the checkpoint's path: the output path plus ".checkpoint", unless that is too long."""
    name = f"{output.name}.checkpoint"
    if len(os.fsencode(name)) > 255:  # the limit of most file systems
        name = f"{hashlib.sha256(os.fsencode(output.name)).hexdigest()[:16]}.checkpoint"
    return output.with_name(name)


def _versions() -> dict[str, str]:
    """Return the versions that must match for a resumed run to be bit-identical."""
    return {"numpy": np.__version__, "quadric": quadric.__version__}


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
    with warnings.catch_warnings(record=True, action="always") as caught:
        learner, done = run.start(*(stored or ({}, {})))
        schema = learner.schema
        check_costs(schema, settings)
        if test is not None:
            check_target(schema, test)
        run.second_pass(learner, done)
        model, linear = learner.finish()
        if test is None:
            trained = run.third_pass(schema, model, linear)
        else:
            trained = tested_on(test, model, linear, schema, settings, None)
    return finished(trained, settings, caught, remarks_on_table(schema))


class Learner:
    """A model and a linear baseline that are trained on buffers of rows.

    Parameters
    ----------
    schema : Schema
        The result of the first pass. Its moments are used to standardize the inputs and, for
        regression, the targets, because Adam's steps have a fixed size.
    settings : Settings
    """

    def __init__(self, schema: Schema, settings: Settings) -> None:
        self.schema, self.settings = schema, settings
        self.preprocess = fitted_to_moments(schema)
        # the output of a reduced neuron is a product, so finish() cannot add a mean to it
        self.center = 0.0 if settings.kind == "reduced" else schema.target_mean
        self.scale = schema.target_std or 1.0  # the variance of tiny numbers can underflow to 0
        adam = dict[str, Any](solver="adam", shuffle=False, tol=0.0, learning_rate_init=RATE)
        if settings.class_weight is not None and schema.classes:
            # the weights of 'balanced', which `partial_fit` cannot compute from a buffer
            mean = sum(schema.class_counts) / len(schema.classes)
            adam["class_weight"] = {
                label: mean / count
                for label, count in zip(schema.classes, schema.class_counts, strict=True)
            }
        linear = replace(settings, hidden=(), kind="linear")  # type: ignore[arg-type]  # not an option
        self.estimators = {
            "model": make_estimator(schema, settings, **adam),
            "linear": make_estimator(schema, linear, **adam),
        }

    @property
    def has_learned(self) -> bool:
        """Whether the estimators have been trained on any row."""
        return all("network_" in vars(estimator) for estimator in self.estimators.values())

    def learn(self, X: Any, y: Array, progress: float) -> None:
        """Train on the rows in order; `progress` is the fraction of the run completed so far."""
        if not len(y):
            return
        Z, classes = self.preprocess.transform(X), {}
        if self.schema.classes:
            classes = {"classes": np.array(self.schema.classes)}
        else:
            y = (y - self.center) / self.scale
        for estimator in self.estimators.values():
            estimator.set_params(learning_rate_init=RATE * max(LAST_RATE, 1 - progress))
            with memory_limit_as_table_error():
                estimator.partial_fit(Z, y, **classes)
            if not estimator.n_iter_:  # the estimator has caught a KeyboardInterrupt
                raise KeyboardInterrupt

    def state(self) -> dict[str, Array]:
        """Return the arrays for a checkpoint; empty before training on the first row."""
        return {
            f"{name}.{key}": array
            for name, estimator in self.estimators.items()
            if self.has_learned
            for key, array in training_state(estimator).items()
        }

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore a state, so that training continues as if it had never been interrupted.

        The result is bit-identical. Raises ValueError if the arrays are not those of a valid state.
        """
        n_features = len(self.preprocess.get_feature_names_out())
        classes = np.array(self.schema.classes) if self.schema.classes else None
        owned = [(*key.partition(".")[::2], array) for key, array in arrays.items()]
        expect({"the list of arrays": {owner for owner, _, _ in owned} <= set(self.estimators)})
        for name, estimator in self.estimators.items():
            own = {key: array for owner, key, array in owned if owner == name}
            with memory_limit_as_table_error():
                restore_training(estimator, own, n_features, classes)

    def finish(self) -> tuple[Pipeline, LinearBaseline]:
        """Return the model and the baseline, which predict in the target's units."""
        for estimator in self.estimators.values():
            estimator.set_params(learning_rate_init=RATE)
            if self.schema.task == "regression":
                scale_outputs(
                    estimator.network_.layers[-1], np.array([self.scale]), np.array([self.center])
                )
        model, linear = self.estimators.values()
        layer = linear.network_.layers[-1]
        baseline = LinearBaseline(layer.W, layer.b, classifies=bool(self.schema.classes))
        return make_pipeline(*self.preprocess, model), baseline


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
        chosen = asdict(self.options) | asdict(self.settings)
        del chosen["verbose"], chosen["cv"], chosen["cost"]
        own = {"buffer": self.rows, "epochs": self.stream.epochs, "format": 9}
        return self.source.fingerprint() | chosen | own

    def start(self, state: dict[str, Any], arrays: dict[str, Array]) -> tuple[Learner, int]:
        """Return a learner and the number of buffers seen; `state` is empty for a new run."""
        profiles = new_profiles(
            self.options, self.source.columns, self.source.table_format, stream=True
        )
        try:
            if state.get("stage") == "second":
                return self._learner_of(state, arrays)
            if state:
                expect({"the stage": state.get("stage") == "first" and not arrays})
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
        stored, expected = (
            [(one.name, one.most_values) for one in some] for some in (profiles, new)
        )
        rows = {one.rows for one in profiles}
        expect(
            {
                "the list of profiles": stored == expected,
                "the number of rows": len(rows) == 1 and 0 not in rows,
            }
        )
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
        expect(
            {
                "the schema": (schema.target, schema.order) == (self.options.target, inputs),
                "the number of rows": schema.rows > 0,
                "the number of buffers": 1 <= done <= self.buffers_in_all(schema),
                "the list of arrays": state["learned"] is bool(arrays),
            }
        )
        learner = Learner(schema, self.settings)
        if arrays:
            learner.restore(arrays)
        return learner, done

    def buffers_in_all(self, schema: Schema) -> int:
        """Return the total number of buffers in the second pass, over all epochs."""
        usable = (schema.rows - schema.missing_targets) * (1 - self.settings.held_out_share)
        by_size = min(MOST_EPOCHS, math.ceil(STEPS * 200 / max(usable, 1)))
        return (self.stream.epochs or max(1, by_size)) * math.ceil(schema.rows / self.rows)

    def first_pass(self, profiles: list[ColumnProfile]) -> Schema:
        """Infer the schema; the profiles may already include the first rows."""
        self._profile(profiles)
        if again := profile_again(profiles, self.options, self.source.table_format):
            self._profile(profiles := again)
        schema = infer_schema(profiles, self.options, self.source.unnamed, stream=True)
        return with_suspicions(schema, *self._sample(schema))

    def _sample(self, schema: Schema) -> tuple[pl.DataFrame, Array]:
        """Return the inputs and targets of rows at equal distances."""
        every = math.ceil(schema.rows / MOST_ROWS)
        frames = (frame.gather_every(every) for frame in self.source.batches(self.rows))
        some = [labeled_rows(schema, frame)[:2] for frame in frames]
        return pl.concat([X for X, _ in some]), np.concatenate([y for _, y in some])

    def _profile(self, profiles: list[ColumnProfile]) -> None:
        """Add the rows that the profiles do not include yet."""
        for k, frame in enumerate(self.source.batches(self.rows, profiles[0].rows), start=1):
            profile_batch(profiles, frame)
            self.progress(profiles[0].rows, None, "first pass: moments and categories")
            if k % (self.stream.every or EVERY) == 0:
                self.checkpoint.save(
                    {"stage": "first", "profiles": list(map(asdict, profiles))}, {}
                )

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
                    self.checkpoint.save(
                        {
                            "stage": "second",
                            "schema": schema.to_dict(),
                            "buffers": done,
                            "learned": learner.has_learned,
                        },
                        learner.state(),
                    )
        if not learner.has_learned:
            raise TableError(
                "no row is left to train on, because all rows with a target were held out. Use a "
                "smaller --test-size, or more rows."
            )

    def third_pass(self, schema: Schema, model: Pipeline, linear: LinearBaseline) -> Trained:
        """Score the model and the baselines on the held-out rows."""
        collected = ScoredRows(schema, self.settings.seed)
        for index, X, y, held, numbers in (
            self._buffers(schema) if self.settings.held_out_share else ()
        ):
            if held.any():
                outputs = outputs_of(model, schema, X.filter(held), linear)
                collected.add(numbers[held], collected.codes(y[held]), outputs)
            self.progress((index + 1) * self.rows, schema.rows, "third pass: scoring")
        used = schema.rows - schema.missing_targets - collected.seen
        return tested_on_held_out(collected, model, linear, used)

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
            yield index, X, y, (drawn < self.settings.held_out_share)[present], numbers
            start += len(frame)
        if start != schema.rows:
            raise changed(path, f"it had {schema.rows:,} rows and now has {start:,}")
