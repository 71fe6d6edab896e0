"""What the table knows about a class, and checks of the facts that define a fitted object of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from quadric._utils.arrays import Array
from quadric.pipelines._operations import Operation

MOST = 2**53  # counts are exact in float64 up to here


class FactError(ValueError):
    """A fact that no fitted step has; the message is a sentence without its full stop."""


def all_different(values: Array) -> bool:
    """Whether no value occurs twice; found by sorting, which takes less memory than a set."""
    ordered = np.sort(values)
    return bool((ordered[1:] != ordered[:-1]).all())


def attributes(*names: str) -> Callable[[Any], dict[str, Any]]:
    """A function that returns these attributes of a step, where it has them."""

    def facts(step: Any) -> dict[str, Any]:
        return {name: getattr(step, name) for name in names if hasattr(step, name)}

    return facts


class Facts:
    """The fitted attributes of one step, as a file gives them.

    Every method returns a checked value or raises FactError.

    Parameters
    ----------
    owner : str
        The name of the step's class, for messages.
    values : mapping
        By name; arrays are the reader's own copies.

    Attributes
    ----------
    unasked : set of str
        The names of those that no method has returned yet.
    """

    def __init__(self, owner: str, values: Mapping[str, Any]) -> None:
        self.owner = owner
        self.values = values
        self.unasked = {name for name, value in values.items() if value is not None}

    def get(self, name: str) -> Any:
        """The value as it is, or None."""
        self.unasked.discard(name)
        return self.values.get(name)

    def expect(self, name: str, true: object, expected: str) -> None:
        """Raise FactError unless `true`: "`name` of `owner` must be `expected`"."""
        if not true:
            raise FactError(f"{name} of {self.owner} must be {expected}")

    def count(self, name: str, least: int = 0) -> int:
        """A whole number, of any type that holds one."""
        value = self.get(name)
        whole = (
            isinstance(value, (int, float, np.integer, np.floating))
            and not isinstance(value, bool)
            and least <= value <= MOST
            and value == int(value)
        )
        self.expect(name, whole, f"a whole number, at least {least}")
        return int(value)

    def flag(self, name: str) -> bool:
        """True or False."""
        value = self.get(name)
        self.expect(name, isinstance(value, (bool, np.bool_)), "true or false")
        return bool(value)

    def number(self, name: str) -> Any:
        """One finite number, of its own type."""
        value = self.get(name)
        plain = isinstance(value, (int, float, np.integer, np.floating))
        self.expect(name, plain and not isinstance(value, bool), "a number")
        self.expect(name, np.isfinite(value), "finite")
        return value

    def vector(
        self,
        name: str,
        n: int | None = None,
        *,
        least: float = -np.inf,
        nan: bool = False,
        whole: bool = False,
    ) -> Array:
        """A vector of n finite numbers, none below `least`; `nan`: some may be NaN."""
        array = self.array(name, 1, whole=whole)
        if n is not None:
            self.expect(name, len(array) == n, f"a vector of {n} numbers")
        there = array[~np.isnan(array)] if nan and not whole else array
        self.expect(name, np.isfinite(there).all(), "finite")
        self.expect(name, (there >= least).all(), f"at least {least:g}")
        return array

    def matrix(self, name: str, columns: int | None = None) -> Array:
        """A matrix of finite numbers with at least one row."""
        array = self.array(name, 2)
        self.expect(name, array.size, "a matrix with rows and columns")
        if columns is not None:
            self.expect(name, array.shape[1] == columns, f"a matrix with {columns} columns")
        self.expect(name, np.isfinite(array).all(), "finite")
        return array

    def array(self, name: str, ndim: int, *, whole: bool = False) -> Array:
        """An array of numbers."""
        value = self.get(name)
        kinds = "iu" if whole else "f"
        right = isinstance(value, np.ndarray) and value.ndim == ndim and value.dtype.kind in kinds
        what = "whole numbers" if whole else "real numbers"
        self.expect(name, right, f"an array of {what} with {ndim} dimensions")
        return value

    def samples_seen(self, name: str, n: int) -> Any:
        """How many samples a step has seen: one number, or one for each of n columns."""
        value = self.get(name)
        if isinstance(value, np.ndarray) and value.ndim == 1:
            return self.vector(name, n, least=0, whole=value.dtype.kind in "iu")
        self.expect(name, self.number(name) > 0, "positive")  # not whole, if samples had weights
        return value  # of its own type, which partial_fit continues with

    def feature_names(self, n: int) -> Array | None:
        """The names of the n input columns, or None."""
        names = self.get("feature_names_in_")
        if names is None:
            return None
        right = isinstance(names, np.ndarray) and names.dtype == object and names.shape == (n,)
        self.expect("feature_names_in_", right, f"an array of {n} names")
        self.expect(
            "feature_names_in_", all(type(name) is str for name in names), "an array of strings"
        )
        self.expect("feature_names_in_", all_different(names), "an array of distinct names")
        return names


@dataclass(frozen=True)
class Known:
    """A class whose fitted objects can be stored and restored.

    Attributes
    ----------
    module, name : str
        Where the class is imported from.
    parameters : tuple of str
        Those that define the object. The others concern how it runs (memory, processes, output)
        and take their defaults when it is restored.
    facts : callable(fitted object) -> dict
        What `fit` has found that cannot be computed from the rest.
    restore : callable(object, Facts) -> int
        Gives an unfitted object, which has its parameters, the attributes that `fit` would have
        given it. Returns the number of input columns; raises FactError or another ValueError.
    absent : dict
        Parameters that the class demands and that follow from the facts.
    """

    module: str
    name: str
    parameters: tuple[str, ...]
    facts: Callable[[Any], dict[str, Any]]
    restore: Callable[[Any, Facts], int]
    absent: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def of(self) -> type[Any]:
        """The class itself, imported when first asked for."""
        return getattr(import_module(self.module), self.name)


@dataclass(frozen=True)
class KnownStep(Known):
    """A class of steps.

    Attributes
    ----------
    operations : callable(fitted step) -> list of Operation
        What the step does to its columns.
    typical : callable(fitted step) -> (means, standard deviations) or None
        What a scaler knows of its inputs.
    """

    operations: Callable[[Any], list[Operation]]
    typical: Callable[[Any], tuple[Array, Array] | None] = lambda step: None
