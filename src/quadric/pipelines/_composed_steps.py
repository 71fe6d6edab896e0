"""Steps that contain other steps: checks, and the parts of a ColumnTransformer.

The functions in this module do not depend on the table of steps.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn import clone, config_context
from sklearn.preprocessing import FunctionTransformer

from quadric._utils.arrays import Array
from quadric.pipelines._known_steps import Facts, Rules, are_numbers


def passes(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def drops(step: Any) -> bool:
    return isinstance(step, str) and step == "drop"


def is_step(step: Any) -> bool:
    return passes(step) or drops(step) or hasattr(step, "get_params")


def named_steps(length: int) -> Rules:
    """The rules for a list of named steps, given as tuples of this length."""
    return {
        "a list of named steps": lambda steps: (
            isinstance(steps, list)
            and steps
            and all(isinstance(entry, tuple) and len(entry) == length for entry in steps)
        ),
        "a list of steps with strings as names": lambda steps: all(
            type(e[0]) is str for e in steps
        ),
        "a list of steps with distinct names": lambda steps: (
            len({e[0] for e in steps}) == len(steps)
        ),
        "a list of steps without '__' in their names": lambda steps: (
            not any("__" in entry[0] for entry in steps)
        ),
        "a list of scikit-learn's steps": lambda steps: all(is_step(entry[1]) for entry in steps),
    }


def expect_input_names(facts: Facts, step: Any, names: Any) -> None:
    """Check that the feature names of a step are the names of its input columns."""
    known = getattr(step, "feature_names_in_", None)
    facts.expect(
        "feature_names_in_",
        known is None or names is None or list(known) == list(names),
        "the names of the columns that the step receives",
    )


def expect_plain_options(facts: Facts, step: Any) -> None:
    """Check `transformer_weights` and `verbose_feature_names_out`.

    A name format that contains other fields, or widths, could fail or produce names of any length.
    """
    weights, form = step.transformer_weights, step.verbose_feature_names_out
    valid = weights is None or (isinstance(weights, dict) and are_numbers(weights.values()))
    facts.expect(
        "transformer_weights",
        valid and np.isfinite(list((weights or {}).values())).all(),
        "a dict of finite numbers",
    )
    if isinstance(form, str):
        rest = form.replace("{feature_name}", "").replace("{transformer_name}", "")
        facts.expect(
            "verbose_feature_names_out",
            len(form) <= 200 and not set(rest) & set("{}"),
            "a format string with the fields feature_name and transformer_name",
        )


REMAINDER: Rules = {
    "a step with its columns": lambda pair: isinstance(pair, tuple) and len(pair) == 2,
    "a step, 'passthrough' or 'drop'": lambda pair: pair[0] is not None and is_step(pair[0]),
}


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

    @property
    def has_estimator(self) -> bool:
        return hasattr(self.step, "get_params")

    def stand_in(self) -> Any:
        """A step with the same number of output columns."""
        zeros = FunctionTransformer(lambda X: np.zeros((len(X), self.width)))
        return zeros if self.has_estimator else self.step

    def given_matches(self, names: list[str]) -> bool:
        """Whether the columns as the user gave them match the part's indices."""
        if isinstance(self.given, (str, int, np.integer)):
            return False  # one column as a vector, which no supported step accepts
        try:
            return column_indices(self.given, names) == self.indices.tolist()
        except (IndexError, TypeError, ValueError):
            return False


def has_sparse_output(part: Part) -> bool:
    """Whether one of the steps returns a sparse matrix for dense data."""
    options = part.step.get_params() if part.has_estimator else {}
    return any(
        (name.rpartition("__")[2], value) in {("sparse_output", True), ("encode", "onehot")}
        for name, value in options.items()
        if isinstance(value, (bool, str))
    )


def column_indices(columns: Any, names: list[str]) -> list[int]:
    """The indices of columns that are given as names, indices, a slice or a mask."""
    match columns:
        case str():
            return [names.index(columns)]
        case slice(start=str()) | slice(stop=str()):
            start = None if columns.start is None else names.index(columns.start)
            stop = None if columns.stop is None else names.index(columns.stop) + 1  # inclusive
            return list(range(len(names))[start : stop : columns.step])
        case slice():
            return list(range(len(names))[columns])
    array = np.asarray(columns)
    if array.dtype.kind in "OUS":
        return [names.index(str(name)) for name in array]
    return np.atleast_1d(np.arange(len(names))[array]).tolist() if array.size else []


def column_facts(step: Any) -> dict[str, Any]:
    """The steps of a fitted ColumnTransformer, with their columns as given and as indices."""
    indices = step._transformer_to_input_indices
    parts = []
    for i, (name, given, columns) in enumerate(step.transformers):
        fitted = given if isinstance(given, str) else step.transformers_[i][1]
        columns = step._columns[i] if callable(columns) else columns
        parts.append((name, fitted, columns, np.asarray(indices[name], dtype=np.int64)))
    remainder = step.remainder
    if len(step._remainder[2]) and not isinstance(remainder, str):
        remainder = step.transformers_[-1][1]
    return {
        "transformers": parts,
        "remainder": (remainder, np.asarray(indices["remainder"], dtype=np.int64)),
        "sparse_output_": step.sparse_output_,
    }


def rebuild_columns(step: Any, parts: list[Part], rest: Part, names: Array | None, n: int) -> None:
    """Fit a ColumnTransformer to one row of n zeros, then insert its fitted steps.

    Its own `fit` records which columns go where. Stand-ins for the steps return as many columns as
    the steps do. `names` are the names of the columns.
    """
    step.transformers = [(part.name, part.stand_in(), part.indices) for part in parts]
    step.remainder = rest.stand_in()
    with config_context(transform_output="default"):
        step.fit(np.zeros((1, n)))
    fitted = []
    for part, (name, made, columns) in zip([*parts, rest], step.transformers_, strict=False):
        if part.has_estimator:
            made = part.step
        elif names is not None and part.step == "passthrough":
            made.feature_names_in_ = names[part.indices]
        fitted.append((name, made, columns if part is rest else part.given))
    step.transformers_ = fitted
    step.transformers = [(part.name, clone(part.step, safe=False), part.given) for part in parts]
    step.remainder = clone(rest.step, safe=False)
