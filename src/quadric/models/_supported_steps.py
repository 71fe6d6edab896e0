"""The table of supported steps, and functions that walk through pipelines.

Steps that contain other steps (Pipeline, ColumnTransformer, FeatureUnion) are defined here, because
their operations follow from the table.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context, pipeline, preprocessing

from quadric.checks import Array
from quadric.errors import expect
from quadric.estimators import ScaledPipeline
from quadric.models._encoders import ENCODERS
from quadric.models._facts import (
    LONGEST_NUMBER,
    REMAINDER,
    Facts,
    Known,
    Limits,
    as_array,
    attributes,
    expect_input_names,
    expect_plain_options,
    is_vector,
    named_steps,
)
from quadric.models._operations import (
    Affine,
    Beside,
    Branch,
    Categories,
    Indicate,
    OneHot,
    Operation,
    Read,
    Select,
    drops,
    passes,
    width_after,
)
from quadric.models._scalers_imputers_selectors import (
    SCALERS_IMPUTERS_SELECTORS,
    SELECTED,
    has_known_score,
)
from quadric.models._table_columns import TABLE_COLUMNS, TableColumns

Steps = Sequence[tuple[str, Any]]
ONLY_STEPS = ("Pipeline", "FeatureUnion")  # their steps define them, and they have no facts
PIPELINES = (pipeline.Pipeline, ScaledPipeline)  # a file stores both as the first


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


def split(model: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The named steps of a model in order, and its final estimator.

    The steps of inner pipelines are listed one by one; 'passthrough' is omitted.
    """
    named = [("__".join(path), step) for path, step in flat(model)]
    return (named[:-1], named[-1][1]) if named else ([], None)


def flat(model: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the steps of a model in order, as in `split`, each with the names that lead to it."""
    if type(model) in PIPELINES:
        for name, inner in model.steps:
            yield from flat(inner, (*path, name))
    elif not passes(model):
        yield path, model


def find(step: Any) -> Known:
    """Return the entry of a step in the table; raise UnknownStepError if there is none."""
    of, name = type(step), type(step).__name__
    known = STEPS.get("Pipeline" if of is ScaledPipeline else name)
    ours = of in (ScaledPipeline, TableColumns) or of.__module__.startswith("sklearn.")
    if ours and known is not None and has_known_score(step):
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
    """The operations of a fitted step; raise UnknownStepError for other steps."""
    if passes(step):
        return []
    known = find(step)
    if not hasattr(step, "n_features_in_") and known.name not in ONLY_STEPS:
        raise UnknownStepError(f"{known.name} is not fitted")
    return known.operations(step)


def named_operations(steps: Steps) -> dict[str, list[Operation]]:
    """The operations of each step, by its name; raise UnknownStepError for other steps."""
    made = {}
    for name, step in steps:
        try:
            made[name] = operations(step)
        except UnknownStepError as error:
            path = f"{name}__{error.path}" if error.path else name
            raise UnknownStepError(error.reason, path) from None
    return made


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
        expect(
            expected == n,
            ValueError(f"{type(step).__name__} expects {expected} columns, but the input has {n}"),
        )
        n = width_after(operations(step), n)
    return n


def _beside(step: Any, parts: Iterable[tuple[str, Any, Any]], n: int) -> list[Operation]:
    """Named steps side by side, each on some of n columns and with its weight."""
    weights, form = step.transformer_weights or {}, step.verbose_feature_names_out
    around = len(form) if isinstance(form, str) else len("__")
    branches = []
    for name, inner, columns in parts:
        made = named_operations([(name, inner)])[name]
        if (weight := weights.get(name)) is not None:
            m = width_after(made, len(columns))
            zeros = np.broadcast_to(0.0, m)  # takes no memory, however large an m the file claims
            made = [*made, Affine(np.broadcast_to(float(weight), m), zeros, zeros)]
        branches.append(Branch(columns, tuple(made), len(name) + around if form else 0))
    return [Beside(tuple(branches), n)]


# ----------------------------------------------------------------- lengths of column names


def expect_short_names(steps: Sequence[Any], limits: Limits) -> None:
    """Raise ModelFileError if the names of the columns after a fitted step are too long."""
    names = getattr(steps[0], "feature_names_in_", None)
    n = n_inputs(steps[0]) if names is None else len(names)
    if n is None:
        return  # no step has a fixed number of columns
    lengths = (
        np.broadcast_to(np.int32(len(f"x{n}")), n)
        if names is None
        else np.fromiter(map(len, names), np.int32, n)
    )
    for step in steps:
        lengths = name_lengths(operations(step), lengths, limits)
        limits.expect_names(lengths)


def n_inputs(step: Any) -> int | None:
    """The number of input columns; a step that begins with 'passthrough' does not know it."""
    known = (int(s.n_features_in_) for s in _every_step(step) if hasattr(s, "n_features_in_"))
    return next(known, None)


def name_lengths(operations: Sequence[Operation], lengths: Array, limits: Limits) -> Array:
    """Upper bounds for the lengths of the output names, given the lengths of the input names.

    scikit-learn builds a name from the names of columns, steps and categories. A forged file could
    make the names of many columns as long as it likes. Raises ModelFileError if names after one of
    the operations exceed the limits.
    """
    for operation in operations:
        match operation:
            case Read():
                lengths = np.array([len(name) for some in operation.names for name in some])
            case Affine() if operation.A.ndim == 2:  # names made of the class and a number
                lengths = np.broadcast_to(np.int32(LONGEST_NUMBER), len(operation.A))
            case Select():
                lengths = lengths[operation.indices]
            case Indicate():
                lengths = lengths + np.int32(len("missingindicator_"))
            case OneHot():
                lengths = np.concatenate(
                    [
                        length + _category_lengths(column)
                        for length, column in zip(lengths, operation.columns, strict=True)
                    ]
                )
            case Beside():
                limits.expect_columns(width_after([operation], len(lengths)))  # before any copy
                parts = [
                    name_lengths(branch.operations, branch.part_of(lengths), limits)
                    + np.int32(branch.longer)
                    for branch in operation.branches
                ]
                lengths = np.concatenate([lengths[:0], *parts])
        limits.expect_names(lengths)
    return lengths


def _category_lengths(column: Categories) -> Array:
    """What each output column of a one-hot encoding adds to the name of its input."""
    shortest = len("_infrequent_sklearn") if column.grouped else len("_")
    longest, kept = np.full(column.width, shortest, dtype=np.int32), column.codes >= 0
    texts = (len(v) if isinstance(v, str) else LONGEST_NUMBER for v in column.values[kept])
    np.maximum.at(longest, column.codes[kept], np.fromiter(texts, np.int32) + np.int32(len("_")))
    return longest


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


class Part(NamedTuple):
    """One transformer of a ColumnTransformer.

    Attributes
    ----------
    name : str
    step : fitted step, 'passthrough' or 'drop'
    given : Any
        The columns as the user gave them.
    indices : array
    width : int
        The number of output columns.
    """

    name: str
    step: Any
    given: Any
    indices: Array
    width: int

    def stand_in(self) -> Any:
        """A step with the same number of output columns."""
        if not hasattr(self.step, "get_params"):
            return self.step
        return preprocessing.FunctionTransformer(
            lambda X: np.zeros((len(X), self.width), dtype=bool)
        )


def _every_step(step: Any) -> Iterator[Any]:
    """The step and all steps inside it (`get_params` would build a name for each parameter)."""
    yield step
    for attribute in ("steps", "transformers", "transformer_list"):
        for _, inner, *_ in getattr(step, attribute, ()):
            yield from _every_step(inner)
    if not isinstance(getattr(step, "remainder", ""), str):
        yield from _every_step(step.remainder)


@dataclass(frozen=True, eq=False)
class Columns:
    """The input columns of a ColumnTransformer.

    Parameters
    ----------
    n : int
        The number of columns.
    names : iterable of str, optional
        The names of the columns; '0', '1', ... if they have none.
    """

    n: int
    names: Iterable[str] | None = None

    @cached_property
    def _places(self) -> dict[str, int]:
        names = range(self.n) if self.names is None else self.names
        return {str(name): i for i, name in enumerate(names)}

    def indices(self, given: Any) -> Array:
        """The indices of columns that are given as names, indices, a slice or a mask.

        Raises KeyError for an unknown name and IndexError for an index that is out of range.
        """
        match given:
            case str():
                return np.array([self._places[given]])
            case slice(start=str()) | slice(stop=str()):
                start = None if given.start is None else self._places[given.start]
                stop = None if given.stop is None else self._places[given.stop] + 1  # inclusive
                given = slice(start, stop, given.step)
        if isinstance(given, slice):
            return np.arange(self.n)[given]
        array = as_array(given)
        if array.dtype.kind in "OUS":
            return np.fromiter((self._places[str(name)] for name in array), np.int64, len(array))
        return np.atleast_1d(np.arange(self.n)[array]) if array.size else np.empty(0, np.int64)


def input_indices(step: Any, name: str) -> Array:
    """The input columns of one of the steps of a fitted ColumnTransformer."""
    return np.asarray(step._transformer_to_input_indices[name], dtype=np.int64)


def column_facts(step: Any) -> dict[str, Any]:
    """The steps of a fitted ColumnTransformer, with their columns as given and as indices."""
    parts = [
        (
            name,
            given if isinstance(given, str) else step.transformers_[i][1],
            step._columns[i] if callable(columns) else columns,
            input_indices(step, name),
        )
        for i, (name, given, columns) in enumerate(step.transformers)
    ]
    remainder = step.remainder
    if len(step._remainder[2]) and not isinstance(remainder, str):
        remainder = step.transformers_[-1][1]
    return {
        "transformers": parts,
        "remainder": (remainder, input_indices(step, "remainder")),
        "sparse_output_": step.sparse_output_,
    }


def rebuild_columns(step: Any, parts: list[Part], rest: Part, names: Array | None) -> None:
    """Fit a ColumnTransformer to one row of zeros, then insert its fitted steps and columns.

    The row has one column per part, because `fit` takes much memory for each column. Stand-ins for
    the steps return as many columns as the steps do. `names` are the names of the columns.
    """
    used = [part for part in parts if part.indices.size]
    places = {part.name: [k] for k, part in enumerate(used)}
    step.transformers = [(part.name, part.stand_in(), places.get(part.name, [])) for part in parts]
    step.remainder = rest.stand_in()
    with config_context(transform_output="default"):
        step.fit(np.zeros((1, len(used) + bool(rest.indices.size)), dtype=bool))
    fitted, every = [], [*parts, rest]
    for part, (name, made, _) in zip(every, step.transformers_, strict=False):
        if hasattr(part.step, "get_params"):
            made = part.step
        elif part.step == "passthrough" and part.indices.size:
            made.n_features_in_ = len(part.indices)
            if names is not None:
                made.feature_names_in_ = names[part.indices]
        fitted.append((name, made, part.indices if part is rest else part.given))
    step.transformers_ = fitted
    step.transformers = [(part.name, unfitted(part.step), part.given) for part in parts]
    step.remainder = unfitted(rest.step)
    step._columns = [part.indices for part in parts]
    step._remainder = ("remainder", step.remainder, rest.indices)
    step._transformer_to_input_indices = {part.name: part.indices for part in every}
    step.output_indices_ = _output_slices(step.output_indices_, every)


def _output_slices(made: Collection[str], parts: list[Part]) -> dict[str, slice]:
    """The output columns of each part; steps without any come last, as in scikit-learn."""
    widths = {part.name: part.width for part in parts}
    ends = zip(made, accumulate(widths[name] for name in made), strict=True)
    return {
        name: slice(end - widths[name], end) if widths[name] else slice(0, 0) for name, end in ends
    }


def unfitted(step: Any) -> Any:
    """A step with the same parameters that is not fitted.

    Unlike `clone`, this does not copy the parameters, which nested steps would repeat.
    """
    if not hasattr(step, "get_params"):
        return step
    parameters = step.get_params(deep=False)
    for name in ("steps", "transformer_list"):  # `fit` replaces these steps by fitted ones
        if name in parameters:
            parameters[name] = [(label, unfitted(inner)) for label, inner in parameters[name]]
    return type(step)(**parameters)


def _columns(step: Any) -> list[Operation]:
    parts = [
        (name, inner, input_indices(step, name))
        for name, inner, _ in step.transformers_
        if not drops(inner)
    ]
    return _beside(step, [part for part in parts if part[2].size], step.n_features_in_)


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
    facts.expect(
        "transformers",
        _given_match(parts[:-1], Columns(n, names)),
        "a list in which columns and indices agree",
    )
    facts.limits.expect_columns(sum(part.width for part in parts))
    for part in parts:
        expect_input_names(facts, part.step, None if names is None else names[part.indices])
    rebuild_columns(step, parts[:-1], parts[-1], names)
    # unless one block is sparse, scikit-learn cannot stack the blocks into a sparse matrix
    step.sparse_output_ = facts.flag("sparse_output_") and any(
        getattr(inner, "sparse_output", False) is True or getattr(inner, "encode", "") == "onehot"
        for part in parts
        for inner in _every_step(part.step)
    )
    return n


def _given_match(parts: list[Part], columns: Columns) -> bool:
    """Whether the columns as the user gave them match the indices of each part."""
    try:
        return all(
            # one column as a vector is something that no supported step accepts
            not isinstance(part.given, (str, int, np.integer))
            and np.array_equal(columns.indices(part.given), part.indices)
            for part in parts
        )
    except (IndexError, KeyError, TypeError, ValueError):
        return False


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
    n = n_inputs(step)
    if n is None:
        raise UnknownStepError("FeatureUnion is not fitted")
    parts = [(name, inner, range(n)) for name, inner in step.transformer_list if not drops(inner)]
    return _beside(step, parts, n)


def _restore_union(step: Any, facts: Facts) -> int:
    facts.check("transformer_list", step.transformer_list, named_steps(2))
    used = [inner for _, inner in step.transformer_list if hasattr(inner, "get_params")]
    facts.expect("transformer_list", used, "a list of at least one step")
    expect_plain_options(facts, step)
    n = n_inputs(step)
    if n is None:
        return 0  # not fitted
    for inner in used:
        width([inner], n)
        expect_input_names(facts, inner, getattr(used[0], "feature_names_in_", None))
    return n


def _function(step: Any) -> list[Operation]:
    expect(
        step.func is None,
        UnknownStepError(f"FunctionTransformer contains Python code: {step.func!r}"),
    )
    return []


def _restore_function(step: Any, facts: Facts) -> int:
    for name in ("func", "inverse_func"):
        facts.expect(name, getattr(step, name) is None, "None")
    facts.expect(
        "feature_names_out", step.feature_names_out in (None, "one-to-one"), "None or 'one-to-one'"
    )
    return facts.count("n_features_in_", 1)


COMPOSED = [
    Known(
        "sklearn.pipeline:Pipeline",
        ("steps",),
        facts=lambda step: {},
        restore=_restore_pipeline,
        operations=lambda step: list(chain(*named_operations(step.steps).values())),
    ),
    Known(
        "sklearn.compose:ColumnTransformer",
        ("sparse_threshold", "transformer_weights", "verbose_feature_names_out"),
        facts=column_facts,
        restore=_restore_columns,
        operations=_columns,
        absent={"transformers": [], "remainder": "drop"},
    ),
    Known(
        "sklearn.pipeline:FeatureUnion",
        ("transformer_list", "transformer_weights", "verbose_feature_names_out"),
        facts=lambda step: {},
        restore=_restore_union,
        operations=_union,
    ),
    Known(
        "sklearn.preprocessing:FunctionTransformer",
        ("func", "inverse_func", "feature_names_out", "validate", "accept_sparse", "check_inverse"),
        facts=attributes("n_features_in_"),
        restore=_restore_function,
        operations=_function,
    ),
]

STEPS = {
    known.name: known
    for known in [TABLE_COLUMNS, *SCALERS_IMPUTERS_SELECTORS, *ENCODERS, *COMPOSED]
}
