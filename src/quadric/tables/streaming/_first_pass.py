"""The first pass over a table: moments, categories and classes, in the memory of one batch."""

from collections.abc import Callable
from typing import Any

from quadric.tables._profile import ColumnProfile, profile_batch
from quadric.tables._schema import Schema, Wishes, decide
from quadric.tables._source import Source
from quadric.tables._state_checks import check_fields, check_whole, require
from quadric.tables.streaming._checkpoint import Checkpoint

Progress = Callable[[str, float, float | None], None]


def gather(
    source: Source,
    wishes: Wishes,
    profiles: list[ColumnProfile],
    done: int,
    checkpoint: Checkpoint,
    *,
    rows: int,
    every: int,
    progress: Progress,
) -> Schema:
    """The schema of a table, read in batches of `rows` rows; a checkpoint every `every` batches.

    The first `done` rows are in the profiles already.
    """
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


def restored(fresh: list[ColumnProfile], state: dict[str, Any]) -> list[ColumnProfile]:
    """The profiles of a checkpoint, of the same columns as fresh ones; ValueError otherwise."""
    check_fields(state, ("stage", "rows", "profiles"), "the state")
    check_whole(state["rows"], "the number of rows", least=1)
    require(isinstance(state["profiles"], list), "the list of profiles")
    profiles = [ColumnProfile.from_dict(one) for one in state["profiles"]]
    known = [(profile.name, profile.most_values, state["rows"]) for profile in fresh]
    found = [(profile.name, profile.most_values, profile.rows) for profile in profiles]
    require(found == known, "the list of profiles")
    return profiles
