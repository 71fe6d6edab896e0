"""The first pass over a table: moments, categories and classes, in the memory of one batch."""

from __future__ import annotations

from collections.abc import Callable

from quadric.streaming.checkpoint import Checkpoint
from quadric.tables.profile import ColumnProfile, profile_batch
from quadric.tables.reading import Source
from quadric.tables.schema import Schema, Wishes, decide

__all__ = ["gather"]

Progress = Callable[[str, float, float | None], None]


def gather(
    source: Source,
    wishes: Wishes,
    checkpoint: Checkpoint,
    begin: dict[str, object] | None,
    *,
    rows: int,
    every: int,
    progress: Progress,
) -> Schema:
    """The schema of a table, read in batches of `rows` rows; a checkpoint every `every` batches.

    `begin` is the state of an earlier checkpoint of this pass, or None.
    """
    profiles, done = wishes.new_profiles(source.columns), 0
    if begin is not None:
        done = int(begin["rows"])  # type: ignore[call-overload]
        profiles = [ColumnProfile.from_dict(state) for state in begin["profiles"]]  # type: ignore[attr-defined]
    for k, frame in enumerate(source.batches(rows, done)):
        profile_batch(profiles, frame, done)
        done += len(frame)
        progress("first pass: moments and categories", done, None)
        if (k + 1) % every == 0:
            state = {
                "stage": "first", "rows": done,
                "profiles": [profile.to_dict() for profile in profiles],
            }  # fmt: skip
            checkpoint.save(state, {})
    return decide(profiles, wishes, source.unnamed)
