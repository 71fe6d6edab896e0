"""The inputs behind the coordinates: where they come from, and their typical values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.models import (
    Columns,
    NotAffineError,
    PartlyAffine,
    UnknownStepError,
    affine_map,
    drops,
    find,
    operations,
    origins_after,
    passes,
    split,
    unchanged,
)


def groups_of(
    before: Sequence[Any],
    encoded: PartlyAffine | None,
    after: Sequence[Any],
    shown: list[str],
    inputs: Any,
) -> tuple[list[str], Array]:
    """The name of each coordinate's input, and the numbers of the one-hot encodings.

    `shown` are the names of the coordinates, and `inputs` those of the pipeline's inputs or None.
    A coordinate that is computed from several inputs, or by an unknown step, is its own group.
    """
    alone = shown, np.zeros(len(shown), dtype=int)
    steps = [*before, *after]
    n = getattr(steps[0], "n_features_in_", None) if steps else None
    if n is None or (not before and encoded is None):
        return alone
    try:
        found = unchanged(n)
        for step in before:
            found = origins_after(operations(step), found)
        if encoded is not None:
            outputs = origins_after(operations(after[0]), found)
            found = [found[i] if kind == "input" else outputs[i] for kind, i in encoded.origins]
    except UnknownStepError:
        return alone
    if len(found) != len(shown):
        return alone
    names = [f"x{i + 1}" for i in range(n)] if inputs is None else list(map(str, inputs))
    groups = [
        names[one.column] if one.column >= 0 else name
        for one, name in zip(found, shown, strict=True)
    ]
    return groups, np.array([one.encoding for one in found], dtype=int)


def typical_after(steps: Sequence[Any]) -> tuple[Array, Array] | None:
    """Means and standard deviations that the first scaler has learned.

    An imputer before it may drop columns without values; for these, both are zero.
    """
    if not steps:
        return None
    if type(steps[0]).__name__ == "SimpleImputer":
        found, kept = typical_after(steps[1:]), affine_map(steps[0])
        return None if found is None else (kept.pull_back(found[0]), kept.pull_back(found[1]))
    learned = find(steps[0]).typical(steps[0])
    if learned is None:
        return None
    mean, std = np.nan_to_num(np.array(learned, dtype=float))
    return mean, std


def typical_encoded(
    encoded: PartlyAffine, step: Any, encodings: Array
) -> tuple[Array, Array] | None:
    """Means and standard deviations learned by the scalers of a ColumnTransformer's branches.

    The categories of a column count as equally frequent, because encoders do not learn their
    frequencies.
    """
    mean, std = np.zeros(len(encodings)), np.ones(len(encodings))
    known = encodings > 0
    for number in np.unique(encodings[known]):
        share = 1 / np.count_nonzero(encodings == number)
        mean[encodings == number], std[encodings == number] = share, np.sqrt(share * (1 - share))
    places = {origin: k for k, origin in enumerate(encoded.origins)}
    known_columns = Columns.of(step)
    for _, inner, columns in getattr(step, "transformers_", ()):
        learned = _typical_inside(inner)
        indices = known_columns.indices(columns)
        for c, *values in zip(indices, *(learned or ()), strict=False):
            k = places.get(("input", int(c)))
            if k is not None and values:
                mean[k], std[k], known[k] = *values, True
    return (mean, std) if known.all() else None


def _typical_inside(step: Any) -> tuple[Array, Array] | None:
    """Means and standard deviations learned by the scaler of one branch."""
    if passes(step) or drops(step):
        return None
    found, last = split(step)
    try:
        return typical_after([*(inner for _, inner in found), last])
    except (NotAffineError, UnknownStepError):
        return None
