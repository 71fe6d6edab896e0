"""The one table of supported steps, and the one walker through pipelines.

Steps that hold other steps are here, too: what they do follows from the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.pipelines._column_transformer import Part, column_indices, record_columns
from quadric.pipelines._encoders import ENCODERS
from quadric.pipelines._imputers import IMPUTERS
from quadric.pipelines._known_steps import Facts, KnownStep, attributes
from quadric.pipelines._operations import Affine, Beside, Branch, Operation, width_after
from quadric.pipelines._projections import PROJECTIONS
from quadric.pipelines._scalers import SCALERS
from quadric.pipelines._selectors import SELECTED, SELECTORS, has_known_score

Steps = list[tuple[str, Any]]


class UnknownStepError(TypeError):
    """A step that is not in the table, or that holds code.

    Attributes
    ----------
    path : str
        The names of the steps that lead to it, joined by '__'.
    reason : str
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"step {path!r}: {reason}" if path else reason)
        self.reason, self.path = reason, path

    def inside(self, name: str) -> UnknownStepError:
        """The same error, of a step inside the step `name`."""
        return UnknownStepError(self.reason, f"{name}__{self.path}" if self.path else name)


def split(model: Any) -> tuple[Steps, Any]:
    """The steps of a model in their order, and what stands at its end.

    Pipelines inside the pipeline are opened; 'passthrough' is left out.
    """
    if not _is_pipeline(model):
        return [], model
    inside: Steps = []
    for name, step in model.steps:
        if _is_pipeline(step):
            front, last = split(step)
            inside += [(f"{name}__{inner}", s) for inner, s in front]
            if last is not None:
                inside.append((f"{name}__{step.steps[-1][0]}", last))
        elif not _passes(step):
            inside.append((name, step))
    return (inside[:-1], inside[-1][1]) if inside else ([], None)


def find(step: Any) -> KnownStep:
    """What the table says about a step; UnknownStepError if it is not there."""
    of, name = type(step), type(step).__name__
    known = STEPS.get(name)
    if of.__module__.startswith("sklearn.") and known is not None and has_known_score(step):
        return known
    if hasattr(step, "get_support") and _selects_only(step):
        return SELECTED
    raise UnknownStepError(f"{name} is not among the supported steps, {supported()}")


def _selects_only(step: Any) -> bool:
    """Whether a selector's `transform` is scikit-learn's, which does nothing but select."""
    return type(step).transform.__module__ == "sklearn.feature_selection._base"


def operations(step: Any) -> list[Operation]:
    """What a fitted step does to its columns."""
    if _passes(step):
        return []
    known = find(step)
    if known.name not in ("Pipeline", "FeatureUnion") and not hasattr(step, "n_features_in_"):
        raise UnknownStepError(f"{known.name} is not fitted")
    return known.operations(step)


def width(steps: Sequence[Any], n: int) -> int:
    """The number of columns that steps make of n; ValueError where they do not fit together."""
    for step in steps:
        expected = getattr(step, "n_features_in_", n)
        if expected != n:
            raise ValueError(f"{type(step).__name__} takes {expected} columns and is given {n}")
        n = width_after(operations(step), n)
    return n


def supported() -> str:
    """The names of all supported steps, for messages."""
    return f"{', '.join(STEPS)} and other feature selectors"


def _passes(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def _drops(step: Any) -> bool:
    return isinstance(step, str) and step == "drop"


def _is_pipeline(step: Any) -> bool:
    return type(step).__name__ == "Pipeline" and type(step).__module__.startswith("sklearn.")


def _named_operations(steps: Iterable[tuple[str, Any]]) -> list[Operation]:
    found: list[Operation] = []
    for name, step in steps:
        try:
            found += operations(step)
        except UnknownStepError as error:
            raise error.inside(name) from None
    return found


def _weighted(inner: Sequence[Operation], n: int, weight: float | None) -> tuple[Operation, ...]:
    if weight is None:
        return tuple(inner)
    m = width_after(inner, n)
    zeros = np.broadcast_to(0.0, m)  # takes no memory, whatever m a file may claim
    return (*inner, Affine(np.broadcast_to(float(weight), m), zeros, zeros))


def _expect_names(facts: Facts, what: str, steps: Any, length: int = 2) -> None:
    right = isinstance(steps, list) and all(
        isinstance(entry, tuple) and len(entry) == length for entry in steps
    )
    facts.expect(what, right and steps, "a list of named steps")
    names = [entry[0] for entry in steps]
    facts.expect(
        what, all(type(name) is str for name in names), "a list of steps with strings as names"
    )
    facts.expect(what, len(set(names)) == len(names), "a list of steps with distinct names")
    plain = not any("__" in name for name in names)
    facts.expect(what, plain, "a list of steps without '__' in their names")
    for _, step, *_ in steps:
        known = _passes(step) or _drops(step) or hasattr(step, "get_params")
        facts.expect(what, known, "a list of scikit-learn's steps")


def _expect_input_names(facts: Facts, step: Any, names: Any) -> None:
    """A step that knows its columns' names is given columns of these names."""
    known = getattr(step, "feature_names_in_", None)
    same = known is None or names is None or list(known) == list(names)
    facts.expect("feature_names_in_", same, "the names of the columns that the step is given")


def _expect_name_format(facts: Facts, step: Any) -> None:
    """A format with other fields or widths could fail, or make names of any length."""
    given = step.verbose_feature_names_out
    if isinstance(given, str):
        rest = given.replace("{feature_name}", "").replace("{transformer_name}", "")
        plain = len(given) <= 200 and not set(rest) & set("{}")
        facts.expect(
            "verbose_feature_names_out", plain, "a format of feature_name and transformer_name"
        )


def _expect_weights(facts: Facts, step: Any) -> None:
    weights = step.transformer_weights
    plain = (int, float, np.integer, np.floating)
    right = weights is None or (
        isinstance(weights, dict) and all(isinstance(w, plain) for w in weights.values())
    )
    facts.expect("transformer_weights", right, "a dict of numbers")
    finite = weights is None or np.isfinite(list(weights.values())).all()
    facts.expect("transformer_weights", finite, "finite")


# ------------------------------------------------------------------------------ Pipeline


def _restore_pipeline(step: Any, facts: Facts) -> int:
    """Only checks: a pipeline has nothing but its steps. Its last may be an estimator."""
    _expect_names(facts, "steps", step.steps)
    inner = [s for _, s in step.steps if not _passes(s)]
    facts.expect("steps", not any(_drops(s) for s in inner), "a list of steps without 'drop'")
    taken = [s.n_features_in_ for s in inner if hasattr(s, "n_features_in_")]
    if not taken:
        return 0  # nothing but 'passthrough': any number of columns
    n = int(taken[0])
    transforms = [s for s in inner if hasattr(s, "transform")]
    facts.expect(
        "steps", transforms in (inner, inner[:-1]), "transformers, except for the last one"
    )
    m = width(transforms, n)
    for before, after in pairwise(inner):
        if hasattr(after, "feature_names_in_") and hasattr(before, "get_feature_names_out"):
            _expect_input_names(facts, after, before.get_feature_names_out())
    if len(transforms) < len(inner):
        facts.expect("n_features_in_ of the last step", inner[-1].n_features_in_ == m, str(m))
    return n


# --------------------------------------------------------------------- ColumnTransformer


def _columns(step: Any) -> list[Operation]:
    weights = step.transformer_weights or {}
    names = [str(n) for n in getattr(step, "feature_names_in_", range(step.n_features_in_))]
    branches = []
    for name, inner, columns in step.transformers_:
        if _drops(inner):
            continue
        indices = np.asarray(column_indices(columns, names), dtype=np.int64)
        if not indices.size:
            continue
        found = _named_operations([(name, inner)])
        branches.append(Branch(indices, _weighted(found, len(indices), weights.get(name))))
    return [Beside(tuple(branches), step.n_features_in_)]


def _columns_facts(step: Any) -> dict[str, Any]:
    """The user's steps with their columns, as given and as indices; the rest."""
    indices = step._transformer_to_input_indices
    parts = []
    for i, (name, given, columns) in enumerate(step.transformers):
        fitted = step.transformers_[i][1]
        columns = step._columns[i] if callable(columns) else columns
        where = np.asarray(indices[name], dtype=np.int64)
        parts.append((name, given if isinstance(given, str) else fitted, columns, where))
    rest = step._remainder[2]
    remainder = step.remainder
    if len(rest) and not isinstance(remainder, str):
        remainder = step.transformers_[-1][1]
    return {
        "transformers": parts,
        "remainder": (remainder, np.asarray(indices["remainder"], dtype=np.int64)),
        "sparse_output_": step.sparse_output_,
    }


def _restore_columns(step: Any, facts: Facts) -> int:
    listed = facts.get("transformers")
    _expect_names(facts, "transformers", listed, 4)
    remainder = facts.get("remainder")
    facts.expect(
        "remainder", isinstance(remainder, tuple) and len(remainder) == 2, "a step and its columns"
    )
    known = _passes(remainder[0]) or _drops(remainder[0]) or hasattr(remainder[0], "get_params")
    facts.expect("remainder", remainder[0] is not None and known, "a step, 'passthrough' or 'drop'")
    _expect_weights(facts, step)
    _expect_name_format(facts, step)
    parts = [
        Part(name, inner, given, indices, _part_width(facts, inner, indices))
        for name, inner, given, indices in listed
    ]
    rest = Part("remainder", remainder[0], None, remainder[1], _part_width(facts, *remainder))
    # every column is listed, so that their number is bounded by the length of the lists
    every = np.unique(np.concatenate([part.indices for part in [*parts, rest]]))
    n = len(every)
    facts.expect(
        "transformers", n and np.array_equal(every, np.arange(n)), "a list that covers every column"
    )
    names = facts.feature_names(n)
    labels = [str(i) for i in range(n)] if names is None else list(names)
    for part in parts:
        same = _are(part.given, part.indices, labels)
        facts.expect("transformers", same, "a list in which columns and indices agree")
    for part in [*parts, rest]:
        _expect_input_names(facts, part.step, None if names is None else names[part.indices])
    record_columns(step, parts, rest, names, n)
    step.sparse_output_ = facts.flag("sparse_output_")
    return n


def _are(given: Any, indices: Array, names: list[str]) -> bool:
    """Whether columns as the user gave them have these indices."""
    if isinstance(given, (str, int, np.integer)):
        return False  # one column as a vector, which no supported step takes
    try:
        return column_indices(given, names) == indices.tolist()
    except (IndexError, TypeError, ValueError):
        return False


def _part_width(facts: Facts, inner: Any, indices: Any) -> int:
    right = isinstance(indices, np.ndarray) and indices.ndim == 1 and indices.dtype == np.int64
    facts.expect("transformers", right, "a list with an array of indices for each step")
    return width([inner], len(indices)) if indices.size and not _drops(inner) else 0


# -------------------------------------------------------- FeatureUnion, FunctionTransformer


def _union(step: Any) -> list[Operation]:
    weights, n = step.transformer_weights or {}, _union_inputs(step.transformer_list)
    if n is None:
        raise UnknownStepError("FeatureUnion is not fitted")
    every = range(n)
    return [
        Beside(
            tuple(
                Branch(every, _weighted(_named_operations([(name, inner)]), n, weights.get(name)))
                for name, inner in step.transformer_list
                if not _drops(inner)
            ),
            n,
        )
    ]


def _restore_union(step: Any, facts: Facts) -> int:
    _expect_names(facts, "transformer_list", step.transformer_list)
    _expect_weights(facts, step)
    used = [inner for _, inner in step.transformer_list if hasattr(inner, "get_params")]
    facts.expect("transformer_list", used, "a list of at least one step")
    _expect_name_format(facts, step)
    n = _union_inputs(step.transformer_list)
    if n is None:
        return 0  # not fitted
    for inner in used:
        width([inner], n)
        _expect_input_names(facts, inner, getattr(used[0], "feature_names_in_", None))
    return n


def _union_inputs(transformers: Steps) -> int | None:
    """The number of columns that the fitted steps take."""
    found = (getattr(inner, "n_features_in_", None) for _, inner in transformers)
    return next((int(n) for n in found if n is not None), None)


def _function(step: Any) -> list[Operation]:
    if step.func is not None:
        raise UnknownStepError(f"FunctionTransformer holds Python code: {step.func!r}")
    return []


def _restore_function(step: Any, facts: Facts) -> int:
    for name in ("func", "inverse_func"):
        facts.expect(name, getattr(step, name) is None, "None")
    known = step.feature_names_out in (None, "one-to-one")
    facts.expect("feature_names_out", known, "None or 'one-to-one'")
    return facts.count("n_features_in_", 1)


COMPOSED = [
    KnownStep(
        "sklearn.pipeline", "Pipeline", ("steps",),
        facts=lambda step: {}, restore=_restore_pipeline,
        operations=lambda step: _named_operations(step.steps),
    ),
    KnownStep(
        "sklearn.compose", "ColumnTransformer",
        ("sparse_threshold", "transformer_weights", "verbose_feature_names_out"),
        facts=_columns_facts, restore=_restore_columns, operations=_columns,
        absent={"transformers": [], "remainder": "drop"},
    ),
    KnownStep(
        "sklearn.pipeline", "FeatureUnion",
        ("transformer_list", "transformer_weights", "verbose_feature_names_out"),
        facts=lambda step: {}, restore=_restore_union, operations=_union,
    ),
    KnownStep(
        "sklearn.preprocessing", "FunctionTransformer",
        ("func", "inverse_func", "feature_names_out", "validate", "accept_sparse", "check_inverse"),
        facts=attributes("n_features_in_"), restore=_restore_function, operations=_function,
    ),
]  # fmt: skip

STEPS = {
    known.name: known
    for known in [*SCALERS, *PROJECTIONS, *IMPUTERS, *ENCODERS, *SELECTORS, *COMPOSED]
}
