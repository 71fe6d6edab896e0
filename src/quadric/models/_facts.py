"""The facts that define a fitted step or estimator, and how to check them.

`Known` is an entry of the tables of steps and estimators. `Facts` checks every value that a model
file gives for an object. The `restore` function of an entry uses nothing else from the file.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pkgutil import resolve_name
from typing import Any

import numpy as np

from quadric.checks import Array
from quadric.errors import expect
from quadric.models._operations import Operation, drops, passes
from quadric.network import Network

LARGEST_COUNT = 2**53  # float64 holds all smaller integers exactly
LONGEST_NUMBER = 32  # characters
LONGEST_NAME = 200  # characters of a step's name or of a format for names
NUMBERS = (int, float, np.integer, np.floating)

Rules = Mapping[str, Callable[[Any], object]]


@dataclass(frozen=True)
class Limits:
    """How many columns a step may return, and how long their names may be.

    A file that describes more than its size allows would need memory out of proportion to it.

    Attributes
    ----------
    columns : int
    characters : int
        The total length of the names of a step's output columns.
    declared : int
        The number of columns of a table, each of which takes more memory than other columns.
    """

    columns: int
    characters: int
    declared: int = 2**10

    @classmethod
    def of_file(cls, size: int) -> "Limits":
        """The limits for a file with this many bytes, which are generous for a small file."""
        return cls(size // 4 + 2**16, size + 2**17, size // 40 + 2**10)

    def expect_columns(self, n: int) -> None:
        expect(n <= self.columns, f"a step returns {n:,} columns, too many for a file of this size")

    def expect_names(self, lengths: Array) -> None:
        """Raise ModelFileError if names of these lengths would be too long in total."""
        self.expect_columns(len(lengths))
        expect(
            lengths.sum(dtype=np.int64) <= self.characters,
            "the names of a step's columns are too long for a file of this size",
        )


def is_vector(value: Any, kinds: str) -> bool:
    """Whether a value is a one-dimensional array whose `dtype.kind` is one of these letters."""
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in kinds


def as_array(values: Any) -> Array:
    """The values as an array of numbers, or else of objects.

    In an array of strings, one long string would make all the others as long.
    """
    several = isinstance(values, (list, tuple))
    numbers = not several or all(isinstance(value, (bool, *NUMBERS)) for value in values)
    return np.asarray(values, dtype=None if numbers else object)


def is_increasing(values: Array) -> bool:
    """Whether every value exceeds the previous one (np.diff wraps around for unsigned dtypes)."""
    return bool((values[1:] > values[:-1]).all())


def all_different(values: Array) -> bool:
    """Whether no value occurs twice. Sorting takes less memory than a set."""
    return is_increasing(np.sort(values))


def is_number(value: Any) -> bool:
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


def are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, NUMBERS) for value in values)


def attributes(*names: str) -> Callable[[Any], dict[str, Any]]:
    """A function that returns whichever of these attributes a step has."""
    return lambda step: {name: getattr(step, name) for name in names if hasattr(step, name)}


class Facts:
    """The fitted attributes of one step, as read from a file.

    Every method except `get` checks a value and raises ModelFileError if it is not valid.

    Parameters
    ----------
    owner : str
        The name of the step's class, for error messages.
    values : mapping
        Values by name. The arrays are copies that the step may keep.
    limits : Limits

    Attributes
    ----------
    unasked : set of str
        The names of the values that no method has returned yet.
    """

    def __init__(self, owner: str, values: Mapping[str, Any], limits: Limits) -> None:
        self.owner = owner
        self.values = values
        self.limits = limits
        self.unasked = {name for name, value in values.items() if value is not None}

    def get(self, name: str) -> Any:
        """The unchecked value, or None."""
        self.unasked.discard(name)
        return self.values.get(name)

    def expect(self, name: str, condition: object, expected: str) -> None:
        """Raise an error, "`name` of `owner` must be `expected`", unless the condition is true."""
        expect(condition, f"{name} of {self.owner} must be {expected}")

    def check(self, name: str, value: Any, rules: Rules) -> Any:
        """Return the value if it passes all rules, which map expectations to predicates."""
        for expected, holds in rules.items():
            self.expect(name, holds(value), expected)
        return value

    def require(self, name: str, rules: Rules, *, optional: bool = False) -> Any:
        """The value with this name, if it passes all rules; with `optional`, it may be None."""
        value = self.get(name)
        return value if optional and value is None else self.check(name, value, rules)

    def count(self, name: str, least: int = 0) -> int:
        """An integer, stored as any type of number."""
        value = self.number(name)
        self.expect(
            name,
            least <= value <= LARGEST_COUNT and value == int(value),
            f"an integer of at least {least}",
        )
        return int(value)

    def flag(self, name: str) -> bool:
        return bool(
            self.require(name, {"True or False": lambda value: isinstance(value, (bool, np.bool_))})
        )

    def number(self, name: str) -> Any:
        """A finite number, with its type unchanged."""
        return self.require(name, {"a number": is_number, "finite": np.isfinite})

    def array(self, name: str, ndim: int, kinds: str = "f") -> Array:
        """An array of numbers."""
        return self.require(
            name,
            {
                f"an array with {ndim} dimensions": lambda value: (
                    isinstance(value, np.ndarray) and value.ndim == ndim
                ),
                f"of dtype.kind {' or '.join(kinds)}": lambda array: array.dtype.kind in kinds,
            },
        )

    def vector(
        self,
        name: str,
        n: int | None = None,
        *,
        least: float = -np.inf,
        nan: bool = False,
        whole: bool = False,
    ) -> Array:
        """A vector of n finite numbers >= `least`; with `nan`, entries may also be NaN."""
        return self.check(
            name,
            self.array(name, 1, "iu" if whole else "f"),
            {
                f"a vector of {n} numbers": lambda array: n is None or len(array) == n,
                "finite": lambda array: (np.isfinite(array) | (np.isnan(array) & nan)).all(),
                f"at least {least:g}": lambda array: not (array < least).any(),
            },
        )

    def samples_seen(self, name: str, n: int) -> Any:
        """The number of samples seen: either one number or one number per column."""
        value = self.get(name)
        if is_vector(value, "iuf"):
            return self.vector(name, n, least=0, whole=value.dtype.kind in "iu")
        self.expect(name, self.number(name) > 0, "positive")  # not an integer for weighted samples
        return value  # not converted, because partial_fit continues from it

    def feature_names(self, n: int) -> Array | None:
        """The names of the n input columns, or None."""
        return self.require(
            "feature_names_in_",
            {
                f"an array of {n} strings": lambda names: (
                    is_vector(names, "O")
                    and len(names) == n
                    and all(type(name) is str for name in names)
                ),
                "an array of distinct names": all_different,
            },
            optional=True,
        )


def increasing_indices(n: int) -> Rules:
    """The rules for a vector of increasing indices below n."""
    return {
        "an array of indices": lambda indices: is_vector(indices, "iu"),
        f"increasing indices below {n}": lambda indices: (
            not indices.size or (indices[0] >= 0 and indices[-1] < n and is_increasing(indices))
        ),
    }


# --------------------------------------------------------------- rules for values of a file

NETWORK: Rules = {"a network": lambda value: type(value) is Network}
CURVE: Rules = {
    "a list of numbers": lambda values: (
        isinstance(values, list) and all(type(value) is float for value in values)
    ),
}
SELECTION: Rules = {
    "a list of dicts of strings and numbers": lambda tried: (
        isinstance(tried, list)
        and all(
            isinstance(candidate, dict)
            and all(type(value) in (str, bool, int, float) for value in candidate.values())
            for candidate in tried
        )
    ),
}
LOSS: Rules = {"a number": lambda value: isinstance(value, (float, np.floating))}
ALPHA: Rules = {
    "a number": is_number,
    "finite": np.isfinite,
    "not negative": lambda alpha: alpha >= 0,
}
LABELS: Rules = {
    "an array of labels": lambda labels: is_vector(labels, "OUbiuf") and labels.size,
    "strings or numbers": lambda labels: (
        labels.dtype != object
        or all(isinstance(label, (str, bool, int, float, np.generic)) for label in labels)
    ),
    "finite": lambda labels: labels.dtype.kind != "f" or np.isfinite(labels).all(),
    "in increasing order": lambda labels: all(a < b for a, b in pairwise(labels)),
}
PLAIN = (str, int, float, bool, type(None), np.generic)
STATISTICS: Rules = {
    "an array with an entry for each column": lambda value: is_vector(value, "iufO") and value.size,
    "numbers or strings": lambda array: (
        array.dtype != object or all(isinstance(value, PLAIN) for value in array)
    ),
    "not infinite": lambda array: (
        not any(isinstance(value, (float, np.floating)) and np.isinf(value) for value in array)
    ),
}
DTYPE: Rules = {
    "a dtype of numbers or objects": lambda value: (
        isinstance(value, np.dtype) and value.kind in "iufO"
    ),
}


def is_step(step: Any) -> bool:
    """Whether a value is a step, or stands in the place of one."""
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


@dataclass(frozen=True)
class Known:
    """A class whose fitted objects can be saved and restored: an estimator or a step.

    Attributes
    ----------
    path : str
        The full name, such as 'sklearn.preprocessing:StandardScaler'.
    parameters : tuple of str
        The parameters that define the object. All others control how it runs (memory, processes,
        output) and get their defaults when the object is restored.
    facts : callable(fitted object) -> dict
        The results of `fit` that cannot be computed from the rest.
    restore : callable(object, Facts) -> int
        Sets the attributes that `fit` would set, on an object that has only its parameters.
        Returns the number of input columns. Raises ModelFileError or another ValueError.
    absent : dict
        Placeholders for required parameters of the class, which `restore` sets from the facts.
    operations : callable(fitted step) -> list of Operation
        The operations of a step; an estimator has none.
    typical : callable(fitted step) -> (means, standard deviations) or None
        Location and spread of the inputs, if the step is a scaler that stores them.
    """

    path: str
    parameters: tuple[str, ...]
    facts: Callable[[Any], dict[str, Any]]
    restore: Callable[[Any, Facts], int]
    absent: Mapping[str, Any] = field(default_factory=dict)
    operations: Callable[[Any], list[Operation]] = lambda step: []
    typical: Callable[[Any], tuple[Array, Array] | None] = lambda step: None

    @property
    def name(self) -> str:
        return self.path.partition(":")[2]

    @property
    def of(self) -> type[Any]:
        """The class, imported on first use."""
        return resolve_name(self.path)
