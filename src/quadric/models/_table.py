"""The table of supported steps, and functions that walk through pipelines.

Steps that contain other steps are defined here, because their operations follow from the table.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from quadric.models._composed_steps import (
    REMAINDER,
    Columns,
    Part,
    column_facts,
    drops,
    expect_input_names,
    expect_plain_options,
    has_sparse_output,
    named_steps,
    passes,
    rebuild_columns,
)
from quadric.models._encoders import ENCODERS
from quadric.models._imputers import IMPUTERS
from quadric.models._known_steps import Facts, KnownStep, attributes, is_vector
from quadric.models._name_lengths import expect_short_names
from quadric.models._operations import Affine, Beside, Branch, Operation, width_after
from quadric.models._scalers_and_projections import SCALERS_AND_PROJECTIONS
from quadric.models._selectors import SELECTED, SELECTORS, has_known_score

Steps = Sequence[tuple[str, Any]]


class UnknownStepError(TypeError):
    """Raised for a step that is not in the table, is not fitted, or contains code.

    Attributes
    ----------
    path : str
        The names of the steps that lead to the step, joined by '__'.
    reason : str
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"step {path!r}: {reason}" if path else reason)
        self.reason, self.path = reason, path

    def inside(self, name: str) -> "UnknownStepError":
        """The same error for a step inside the step `name`."""
        return UnknownStepError(self.reason, f"{name}__{self.path}" if self.path else name)


def split(model: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The named steps of a model in order, and its final estimator.

    The steps of inner pipelines are listed one by one; 'passthrough' is omitted.
    """
    if not _is_pipeline(model):
        return [], model
    found = [inner for name, step in model.steps for inner in _flat(name, step)]
    return (found[:-1], found[-1][1]) if found else ([], None)


def _flat(name: str, step: Any) -> list[tuple[str, Any]]:
    """The step, or the steps of an inner pipeline, with their names."""
    if not _is_pipeline(step):
        return [] if passes(step) else [(name, step)]
    return [pair for inner, s in step.steps for pair in _flat(f"{name}__{inner}", s)]


def flat_steps(model: Any) -> list[Any]:
    """The steps of a model in order, including its final estimator, as in `split`."""
    if not _is_pipeline(model):
        return [] if passes(model) else [model]
    return [inner for _, step in model.steps for inner in flat_steps(step)]


def find(step: Any) -> KnownStep:
    """Return the entry of a step in the table; raise UnknownStepError if there is none."""
    of, name = type(step), type(step).__name__
    known = STEPS.get(name)
    if of.__module__.startswith("sklearn.") and known is not None and has_known_score(step):
        return known
    # a selector with scikit-learn's own `transform` does nothing but select
    if (
        hasattr(step, "get_support")
        and of.transform.__module__ == "sklearn.feature_selection._base"
    ):
        return SELECTED
    raise UnknownStepError(
        f"{name} is not among the supported steps, {', '.join(STEPS)} and other feature selectors"
    )


def operations(step: Any) -> list[Operation]:
    """The operations of a fitted step."""
    if passes(step):
        return []
    known = find(step)
    if known.name not in ("Pipeline", "FeatureUnion") and not hasattr(step, "n_features_in_"):
        raise UnknownStepError(f"{known.name} is not fitted")
    return known.operations(step)


def transformed(steps: Sequence[Any], X: Any) -> Any:
    """X after all steps, as a dense array if the last one returns a sparse one."""
    for step in steps:
        X = step.transform(X)
    return X.toarray() if hasattr(X, "toarray") else X


def width(steps: Sequence[Any], n: int) -> int:
    """Return the number of output columns for n input columns.

    Raises ValueError if a step expects a different number of columns.
    """
    for step in steps:
        expected = getattr(step, "n_features_in_", n)
        if expected != n:
            raise ValueError(
                f"{type(step).__name__} expects {expected} columns, but the input has {n}"
            )
        n = width_after(operations(step), n)
    return n


def _is_pipeline(step: Any) -> bool:
    return type(step).__name__ == "Pipeline" and type(step).__module__.startswith("sklearn.")


def _named_operations(
    steps: Steps, n: int = 0, weight: float | None = None
) -> tuple[Operation, ...]:
    """The operations of named steps on n columns, followed by multiplication by the weight."""
    found: list[Operation] = []
    for name, step in steps:
        try:
            found += operations(step)
        except UnknownStepError as error:
            raise error.inside(name) from None
    if weight is not None:
        m = width_after(found, n)
        zeros = np.broadcast_to(0.0, m)  # takes no memory, however large an m the file claims
        found.append(Affine(np.broadcast_to(float(weight), m), zeros, zeros))
    return tuple(found)


# ------------------------------------------------------------------------------ Pipeline


def _restore_pipeline(step: Any, facts: Facts) -> int:
    """Check the steps, which fully define a pipeline. The last may be an estimator."""
    facts.check("steps", step.steps, named_steps(2))
    inner = [s for _, s in step.steps if not passes(s)]
    facts.expect("steps", not any(drops(s) for s in inner), "a list of steps without 'drop'")
    taken = [s.n_features_in_ for s in inner if hasattr(s, "n_features_in_")]
    if not taken:
        return 0  # only 'passthrough', which accepts any number of columns
    transforms = [s for s in inner if hasattr(s, "transform")]
    facts.expect("steps", transforms in (inner, inner[:-1]), "transformers, except for the last")
    m = width(transforms, int(taken[0]))
    if len(transforms) < len(inner):
        facts.expect("n_features_in_ of the last step", inner[-1].n_features_in_ == m, str(m))
    for before, after in pairwise(inner):
        if hasattr(after, "feature_names_in_") and hasattr(before, "get_feature_names_out"):
            expect_short_names([before], facts.limits)
            expect_input_names(facts, after, before.get_feature_names_out())
    return int(taken[0])


# --------------------------------------------------------------------- ColumnTransformer


def _columns(step: Any) -> list[Operation]:
    weights, known = step.transformer_weights or {}, Columns.of(step)
    parts = [
        (name, inner, known.indices(columns))
        for name, inner, columns in step.transformers_
        if not drops(inner)
    ]
    branches = [
        Branch(indices, _named_operations([(name, inner)], len(indices), weights.get(name)))
        for name, inner, indices in parts
        if indices.size
    ]
    return [Beside(tuple(branches), step.n_features_in_)]


def _restore_columns(step: Any, facts: Facts) -> int:
    listed = facts.require("transformers", named_steps(4))
    rest, indices = facts.require("remainder", REMAINDER)
    expect_plain_options(facts, step)
    parts = [_part(facts, *entry) for entry in [*listed, ("remainder", rest, None, indices)]]
    # every column is listed, so the length of the lists limits the number of columns
    every = np.unique(np.concatenate([part.indices for part in parts]))
    n = len(every)
    facts.expect(
        "transformers", n and np.array_equal(every, np.arange(n)), "a list that covers every column"
    )
    names = facts.feature_names(n)
    columns = Columns(n, names)
    facts.expect(
        "transformers",
        all(part.given_matches(columns) for part in parts[:-1]),
        "a list in which columns and indices agree",
    )
    facts.limits.expect_columns(sum(part.width for part in parts))
    for part in parts:
        expect_input_names(facts, part.step, None if names is None else names[part.indices])
    rebuild_columns(step, parts[:-1], parts[-1], names)
    # unless one block is sparse, scikit-learn cannot stack the blocks into a sparse matrix
    step.sparse_output_ = facts.flag("sparse_output_") and any(map(has_sparse_output, parts))
    return n


def _part(facts: Facts, name: str, inner: Any, given: Any, indices: Any) -> Part:
    facts.expect(
        "transformers",
        is_vector(indices, "i") and indices.dtype == np.int64,
        "a list with an array of indices for each step",
    )
    m = width([inner], len(indices)) if indices.size and not drops(inner) else 0
    return Part(name, inner, given, indices, m)


# ----------------------------------------------------- FeatureUnion, FunctionTransformer


def _union(step: Any) -> list[Operation]:
    weights, n = step.transformer_weights or {}, _union_inputs(step.transformer_list)
    if n is None:
        raise UnknownStepError("FeatureUnion is not fitted")
    branches = [
        Branch(range(n), _named_operations([(name, inner)], n, weights.get(name)))
        for name, inner in step.transformer_list
        if not drops(inner)
    ]
    return [Beside(tuple(branches), n)]


def _restore_union(step: Any, facts: Facts) -> int:
    facts.check("transformer_list", step.transformer_list, named_steps(2))
    used = [inner for _, inner in step.transformer_list if hasattr(inner, "get_params")]
    facts.expect("transformer_list", used, "a list of at least one step")
    expect_plain_options(facts, step)
    n = _union_inputs(step.transformer_list)
    if n is None:
        return 0  # not fitted
    for inner in used:
        width([inner], n)
        expect_input_names(facts, inner, getattr(used[0], "feature_names_in_", None))
    return n


def _union_inputs(transformers: Steps) -> int | None:
    """The number of input columns of the fitted steps."""
    found = (getattr(inner, "n_features_in_", None) for _, inner in transformers)
    return next((int(n) for n in found if n is not None), None)


def _function(step: Any) -> list[Operation]:
    if step.func is not None:
        raise UnknownStepError(f"FunctionTransformer contains Python code: {step.func!r}")
    return []


def _restore_function(step: Any, facts: Facts) -> int:
    for name in ("func", "inverse_func"):
        facts.expect(name, getattr(step, name) is None, "None")
    facts.expect(
        "feature_names_out", step.feature_names_out in (None, "one-to-one"), "None or 'one-to-one'"
    )
    return facts.count("n_features_in_", 1)


COMPOSED = [
    KnownStep(
        "sklearn.pipeline:Pipeline",
        ("steps",),
        facts=lambda step: {},
        restore=_restore_pipeline,
        operations=lambda step: list(_named_operations(step.steps)),
    ),
    KnownStep(
        "sklearn.compose:ColumnTransformer",
        ("sparse_threshold", "transformer_weights", "verbose_feature_names_out"),
        facts=column_facts,
        restore=_restore_columns,
        operations=_columns,
        absent={"transformers": [], "remainder": "drop"},
    ),
    KnownStep(
        "sklearn.pipeline:FeatureUnion",
        ("transformer_list", "transformer_weights", "verbose_feature_names_out"),
        facts=lambda step: {},
        restore=_restore_union,
        operations=_union,
    ),
    KnownStep(
        "sklearn.preprocessing:FunctionTransformer",
        ("func", "inverse_func", "feature_names_out", "validate", "accept_sparse", "check_inverse"),
        facts=attributes("n_features_in_"),
        restore=_restore_function,
        operations=_function,
    ),
]

STEPS = {
    known.name: known
    for known in [*SCALERS_AND_PROJECTIONS, *IMPUTERS, *ENCODERS, *SELECTORS, *COMPOSED]
}
