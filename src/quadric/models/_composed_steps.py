"""Steps that contain other steps: checks, and the parts of a ColumnTransformer.

The functions in this module do not depend on the table of steps.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.preprocessing import FunctionTransformer

from quadric.checks import Array
from quadric.models._facts import Facts, Rules, are_numbers, as_array

LONGEST_NAME = 200  # characters of a step's name or of a format for names


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
        # a longer name would be repeated for every column or parameter
        f"a list of steps with names of at most {LONGEST_NAME} characters": lambda steps: all(
            len(entry[0]) <= LONGEST_NAME for entry in steps
        ),
        "a list of scikit-learn's steps": lambda steps: all(is_step(entry[1]) for entry in steps),
    }


def expect_input_names(facts: Facts, step: Any, names: Any) -> None:
    """Check that the feature names of a step are the names of its input columns."""
    known = getattr(step, "feature_names_in_", None)
    facts.expect(
        "feature_names_in_",
        known is None or names is None or np.array_equal(known, names),
        "the names of the columns that the step receives",
    )


def expect_plain_options(facts: Facts, step: Any) -> None:
    """Check `transformer_weights` and `verbose_feature_names_out`.

    A name format that contains other fields, or widths, could fail or produce names of any length.
    One that repeats a field would multiply the lengths of names in nested steps.
    """
    weights, form = step.transformer_weights, step.verbose_feature_names_out
    valid = weights is None or (isinstance(weights, dict) and are_numbers(weights.values()))
    facts.expect(
        "transformer_weights",
        valid and np.isfinite(list((weights or {}).values())).all(),
        "a dict of finite numbers",
    )
    if isinstance(form, str):
        rest = form.replace("{feature_name}", "", 1).replace("{transformer_name}", "", 1)
        facts.expect(
            "verbose_feature_names_out",
            len(form) <= LONGEST_NAME and not set(rest) & set("{}"),
            "a format string with the fields feature_name and transformer_name, each at most once",
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
        zeros = FunctionTransformer(lambda X: np.zeros((len(X), self.width), dtype=bool))
        return zeros if self.has_estimator else self.step

    def given_matches(self, columns: "Columns") -> bool:
        """Whether the columns as the user gave them match the part's indices."""
        if isinstance(self.given, (str, int, np.integer)):
            return False  # one column as a vector, which no supported step accepts
        try:
            return np.array_equal(columns.indices(self.given), self.indices)
        except (IndexError, KeyError, TypeError, ValueError):
            return False


def has_sparse_output(part: Part) -> bool:
    """Whether one of the steps returns a sparse matrix for dense data."""
    return any(
        getattr(step, "sparse_output", False) is True or getattr(step, "encode", "") == "onehot"
        for step in _every_step(part.step)
    )


def _every_step(step: Any) -> Iterator[Any]:
    """The step and all steps inside it (`get_params` would build a name for each parameter)."""
    yield step
    for attribute in ("steps", "transformers", "transformer_list"):
        for _, inner, *_ in getattr(step, attribute, ()):
            yield from _every_step(inner)
    if not isinstance(getattr(step, "remainder", ""), str):
        yield from _every_step(step.remainder)


class Columns:
    """The input columns of a ColumnTransformer.

    Parameters
    ----------
    n : int
        The number of columns.
    names : iterable of str, optional
        The names of the columns; '0', '1', ... if they have none.
    """

    def __init__(self, n: int, names: Iterable[str] | None = None) -> None:
        self.n = n
        self.names = names

    @classmethod
    def of(cls, step: Any) -> "Columns":
        """The input columns of a fitted ColumnTransformer."""
        return cls(step.n_features_in_, getattr(step, "feature_names_in_", None))

    @cached_property
    def _places(self) -> dict[str, int]:
        names = map(str, range(self.n) if self.names is None else self.names)
        return {name: i for i, name in enumerate(names)}

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
        if part.has_estimator:
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


def _output_slices(made: Iterable[str], parts: list[Part]) -> dict[str, slice]:
    """The output columns of each part; steps without any come last, as in scikit-learn."""
    widths, slices, start = {part.name: part.width for part in parts}, {}, 0
    for name in made:
        stop = start + widths[name]
        slices[name] = slice(start, stop) if widths[name] else slice(0, 0)
        start = stop
    return slices


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
